"""Annotation rules: the annotations of a set about its domains (N31, N33) and its removal, and keys that are a typing error of known ones.

A mistyped key has no effect: it is a warning at its own line.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache, partial
from typing import Final

from engine.paths import get
from resources.admission.annotations import misplaced
from resources.admission.cel import rule, text
from resources.admission.managed_rules import DISABLE_PROTECTION
from resources.base import labels
from resources.base.fields import mappings
from resources.model.domain import REQUIRED_TERMS, DomainPlacement, domain_requests_of, placement_of
from resources.ports.configuration import Configuration
from resources.ports.fabric import Place, PolicyRule, SpecifiedClique, SpecifiedSet, WrittenKeys
from resources.schema.issues import Child, ErrorType, Issue, Located, Path, spelled
from resources.schema.unknown_fields import nearest_name

ANNOTATIONS: Final[Path] = ("metadata", "annotations")
PLACEMENT: Final = f"metadata.annotations[{labels.DOMAIN_PLACEMENT}]"
PLACEMENTS: Final = "must be " + " or ".join(f'"{placement}"' for placement in DomainPlacement)
ON_COMPLETION: Final = f'must be "{labels.ON_COMPLETION}"'
OWN: Final = (
    labels.ALLOW_REPLACE,
    labels.TAKE_OVER,
    labels.DOMAIN_PLACEMENT,
    labels.RELEASE_DOMAINS,
    labels.PROTECT,
    labels.PRUNE,
    labels.KAI_QUEUE,
    DISABLE_PROTECTION,
)
"""The keys that users write and that no fabric reads."""
UNUSED: Final = "no {kind} is created for the replicas of the set, although it requests them: no pod requests an accelerator"
STAYS: Final = (
    "restartPolicy: {kind}s of pods that have completed stay until their replica or set goes; the annotation "
    f"{labels.RELEASE_DOMAINS}: {labels.ON_COMPLETION} on the set releases them then"
)
MOST_MISSING: Final = 2
"""How many characters a typing error adds or leaves out at most: with a word more it is another key."""
LONGEST_KEY: Final = 317
"""The most characters of a key that an API server accepts."""
MOST_COMPARED: Final = 500
"""The largest number of keys of one object that are compared with known ones."""


def issues(new: SpecifiedSet, old: SpecifiedSet | None = None) -> Iterator[Issue]:
    """An issue for each annotation with a value that means nothing; one that the stored set has already does not prevent updates."""
    annotations, previous = new.annotations, old.annotations if old is not None else {}
    placement = annotations.get(labels.DOMAIN_PLACEMENT)
    if placement is not None and placement_of(annotations) is None and placement != previous.get(labels.DOMAIN_PLACEMENT):
        yield Issue((*ANNOTATIONS, Child(labels.DOMAIN_PLACEMENT)), ErrorType.INVALID, PLACEMENTS, placement)
    release = annotations.get(labels.RELEASE_DOMAINS, labels.ON_COMPLETION)
    if release != labels.ON_COMPLETION and release != previous.get(labels.RELEASE_DOMAINS):
        yield Issue((*ANNOTATIONS, Child(labels.RELEASE_DOMAINS)), ErrorType.INVALID, ON_COMPLETION, release)


def policy_rules() -> Iterator[PolicyRule]:
    """The same as CEL."""
    placements = tuple(map(str, DomainPlacement))
    for key, values, reason in (
        (labels.DOMAIN_PLACEMENT, placements, PLACEMENTS),
        (labels.RELEASE_DOMAINS, (labels.ON_COMPLETION,), ON_COMPLETION),
    ):
        new, old = (f"variables.{which}[?{text(key)}]" for which in ("annotations", "oldAnnotations"))
        is_invalid = f"{new}.hasValue() && !({new}.value() in [{', '.join(map(text, values))}])"
        is_stored = f"request.operation == 'UPDATE' && {new} == {old}"
        yield rule(f"{is_invalid} && !({is_stored})", f"metadata.annotations.{key}", reason)


def removal_warnings(written: Sequence[WrittenKeys]) -> Iterator[str]:
    """The annotations in a place or a spelling in which they protect the set from nothing."""
    for key in (labels.PROTECT, labels.PRUNE):
        yield from misplaced(key, written, (Place.SET,))


def domain_warnings(specified: SpecifiedSet, written: Sequence[WrittenKeys], configuration: Configuration) -> Iterator[str]:
    """The annotations about domains in a place or a spelling without effect (N35), or that ask for what the set cannot have."""
    yield from misplaced(labels.DOMAIN_PLACEMENT, written, (Place.SET,))
    yield from _placement_warnings(specified, configuration)
    yield from misplaced(labels.RELEASE_DOMAINS, written, (Place.SET,))
    completing = {clique.name for clique in specified.cliques if clique.pod_spec.get("restartPolicy") not in (None, "", "Always")}
    for fabric in configuration.fabrics:
        requests = domain_requests_of(fabric, specified.name, specified)
        if any(not request.cliques for request in requests):
            yield UNUSED.format(kind=fabric.kind.name)
        if labels.RELEASE_DOMAINS not in specified.annotations and any(request.cliques & completing for request in requests):
            yield STAYS.format(kind=fabric.kind.name)


def fabric_warnings(written: Sequence[WrittenKeys], configuration: Configuration) -> Iterator[str]:
    """The warnings of each fabric: its annotations in a place or a spelling without effect (N35), then what it says itself."""
    for fabric in configuration.fabrics:
        for annotation in fabric.annotations:
            yield from misplaced(annotation.key, written, annotation.places, annotation.hint)
        yield from fabric.warnings(written)


def _placement_warnings(specified: SpecifiedSet, configuration: Configuration) -> Iterator[str]:
    """Why the pods of domains cannot be kept together as the set asks."""
    placement = placement_of(specified.annotations)
    if placement is None:
        return
    members = _members(specified, configuration)
    if not members:
        yield f"{PLACEMENT} has no effect: no clique joins a domain that can be kept together"
    for number, clique in enumerate(specified.cliques):
        if clique.name in members:
            yield from _clique_warnings(f"spec.template.cliques[{number}].spec.podSpec", clique, placement, configuration)


def _members(specified: SpecifiedSet, configuration: Configuration) -> frozenset[str]:
    """The cliques that join a domain of a fabric with islands."""
    fabrics = (fabric for fabric in configuration.fabrics if fabric.islands is not None)
    requested = (request for fabric in fabrics for request in domain_requests_of(fabric, specified.name, specified))
    return frozenset(clique for request in requested for clique in request.cliques)


def _clique_warnings(field: str, clique: SpecifiedClique, placement: DomainPlacement, configuration: Configuration) -> Iterator[str]:
    """What keeps the pods of one clique from being placed as the set asks."""
    name = str(clique.pod_spec.get("schedulerName") or configuration.default_scheduler)
    scheduler = configuration.schedulers.get(name)
    if scheduler is not None and scheduler.instead_of_affinity:
        yield f"{PLACEMENT} may have no effect: {name} is not known to observe pod affinity; {scheduler.instead_of_affinity}"
    if placement is DomainPlacement.REQUIRED and mappings(get(clique.pod_spec, ("affinity", "podAffinity", REQUIRED_TERMS), ())):
        yield (
            f"{field}.affinity.podAffinity.{REQUIRED_TERMS}: {PLACEMENT} adds another required term, and a scheduler places a pod only "
            "beside pods that match all of them"
        )


def known_keys(configuration: Configuration) -> frozenset[str]:
    """The keys that sets may have."""
    return frozenset((*OWN, *(annotation.key for fabric in configuration.fabrics for annotation in fabric.annotations)))


def mistyped_key_warnings(written: Iterable[WrittenKeys], configuration: Configuration, besides: Iterable[str] = ()) -> Iterator[Located]:
    """A warning for each mistyped key of a set, but for those that the warnings in `besides` are about."""
    known = {warning.path for warning in besides if isinstance(warning, Located)}
    paths: Iterator[Path] = ((*part.path, key) for part in written for key in part.keys)
    return mistyped((path for path in paths if path not in known), known_keys(configuration))


def mistyped(written: Iterable[Path], known: frozenset[str]) -> Iterator[Located]:
    """A warning for each of the written keys that is a typing error of a known one: in its name, in its prefix, or without its prefix."""
    prefixes = frozenset(key.partition("/")[0] for key in known)
    unknown = (path for path in written if path[-1] not in known and len(str(path[-1])) <= LONGEST_KEY)
    candidates = (path for path in unknown if _may_be_ours(str(path[-1]), prefixes))
    for _, path in zip(range(MOST_COMPARED), candidates, strict=False):
        if meant := _meant(str(path[-1]), known, prefixes):
            yield Located(f"{spelled(path)} has no effect; did you mean {meant}?", path)


@lru_cache(MOST_COMPARED)
def _may_be_ours(key: str, prefixes: frozenset[str]) -> bool:
    prefix, _, _ = key.rpartition("/")
    return not prefix or prefix in prefixes or nearest_name(prefix, prefixes) is not None


@lru_cache(MOST_COMPARED)
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
    is_as_long = abs(len(name) - len(known_name)) <= MOST_MISSING
    return is_prefix and is_as_long and nearest_name(name, (known_name,)) is not None
