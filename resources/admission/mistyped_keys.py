"""Mistyped keys: annotations of a set or a graph whose key is a typing error of one that the engine reads, so that they have no effect."""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Final

from engine.resource import Body
from resources.admission.annotations import written_keys
from resources.admission.managed_rules import DISABLE_PROTECTION
from resources.base import labels
from resources.ports.configuration import Configuration
from resources.ports.fabric import AnnotatedFabric
from resources.schema.issues import Located, Path, spelled
from resources.schema.unknown_fields import nearest_name

OWN: Final = (
    labels.ALLOW_REPLACE,
    labels.DOMAIN_PLACEMENT,
    labels.RELEASE_DOMAINS,
    labels.PROTECT,
    labels.PRUNE,
    labels.KAI_QUEUE,
    DISABLE_PROTECTION,
)
"""The keys that users write and that no fabric reads."""
MOST_COMPARED: Final = 500
"""The largest number of keys of one object that are compared with known ones."""


def known_keys(configuration: Configuration) -> frozenset[str]:
    """The keys that sets may have."""
    fabrics = (fabric for fabric in configuration.fabrics if isinstance(fabric, AnnotatedFabric))
    return frozenset((*OWN, *(annotation.key for fabric in fabrics for annotation in fabric.annotations)))


def set_warnings(body: Body, configuration: Configuration, besides: Iterable[str] = ()) -> Iterator[Located]:
    """A warning for each mistyped key of a set, but for those that the warnings in `besides` are about."""
    paths = {warning.path for warning in besides if isinstance(warning, Located)}
    keys = (path for path in written_keys(body) if path not in paths)
    return mistyped(keys, known_keys(configuration))


def mistyped(written: Iterable[Path], known: frozenset[str]) -> Iterator[Located]:
    """A warning for each of the written keys that is a typing error of a known one: in its name, in its prefix, or without its prefix."""
    prefixes = frozenset(key.partition("/")[0] for key in known)
    candidates = (path for path in written if path[-1] not in known and _may_be_ours(str(path[-1]), prefixes))
    for _, path in zip(range(MOST_COMPARED), candidates, strict=False):
        if meant := _meant(str(path[-1]), known, prefixes):
            yield Located(f"{spelled(path)} has no effect; did you mean {meant}?", path)


def _may_be_ours(key: str, prefixes: frozenset[str]) -> bool:
    prefix, _, _ = key.rpartition("/")
    return not prefix or prefix in prefixes or nearest_name(prefix, prefixes) is not None


def _meant(key: str, known: frozenset[str], prefixes: frozenset[str]) -> str:
    """The known key that is meant, rather one with the same prefix; empty if none is near."""
    prefix, _, name = key.rpartition("/")
    by_prefix = sorted(known, key=lambda each: (not each.startswith(f"{prefix}/"), each))
    return next(filter(partial(_is_near, prefix, name, prefixes), by_prefix), "")


def _is_near(prefix: str, name: str, prefixes: frozenset[str], known: str) -> bool:
    """Whether a key is a known one with a typing error. Without a prefix it is one if it has that name and a hyphen: words are common."""
    known_prefix, _, known_name = known.partition("/")
    if not prefix:
        return name == known_name and "-" in name
    is_prefix = prefix == known_prefix or prefix in prefixes or nearest_name(prefix, (known_prefix,)) is not None
    return is_prefix and nearest_name(name, (known_name,)) is not None
