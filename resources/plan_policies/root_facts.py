"""Root facts: what a root is and should be, independent of the operations on it."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

from engine.mask import LAST_APPLIED
from engine.observed import Observed
from engine.paths import get, overlay
from engine.resource import Body
from resources.base import kinds
from resources.base.fields import mapping, mappings

CONTAINERS: Final = ("containers", "initContainers", "ephemeralContainers")
"""Fields of pod specs that list containers."""


class RootFacts(Struct, frozen=True):
    """What rules see of a root besides operations."""

    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    images: tuple[str, ...]
    exists: bool
    """Whether the cluster has it."""
    is_leaving: bool
    """Whether it is being deleted."""
    replicas_before: int
    replicas_after: int


GONE: Final = RootFacts({}, {}, (), exists=False, is_leaving=True, replicas_before=0, replicas_after=0)
"""A root that does not exist and that nobody wants: objects of it are left."""


def root_facts(observed: Observed) -> RootFacts:
    """The facts of one root, as if its proposal were applied."""
    root = observed.root
    exists, is_leaving = bool(root.uid), root.deleting_since is not None
    body = overlay(root.body, observed.proposal) if observed.proposal is not None else root.body
    return RootFacts(
        texts(get(body, ("metadata", "labels"))),
        texts(get(body, ("metadata", "annotations"))),
        tuple(sorted(set(images(body.get("spec"))))),
        exists,
        is_leaving,
        replicas_of(root.id.kind, root.body) if exists else 0,
        0 if is_leaving else replicas_of(root.id.kind, body),
    )


def texts(value: Any) -> dict[str, str]:
    """The entries of labels or annotations that are texts, without kubectl's copy of the manifest, which has the data of Secrets."""
    return {str(key): each for key, each in mapping(value).items() if isinstance(each, str) and key != LAST_APPLIED}


def replicas_of(kind: str, body: Body) -> int:
    """How many replicas a root asks for; 1 if its kind has none."""
    replicas = mapping(body.get("spec")).get("replicas", 1) if kind == kinds.PODCLIQUESET.name else 1
    return replicas if isinstance(replicas, int) else 1


def images(value: Any) -> Iterator[str]:
    """The images of every container in a value, at any depth, and of volumes that are images."""
    if isinstance(value, list | tuple):
        for item in value:
            yield from images(item)
    elif isinstance(value, Mapping):
        named = [container.get("image") for field in CONTAINERS for container in mappings(value.get(field))]
        named += [mapping(value.get("mainContainer")).get("image")]
        named += [mapping(volume.get("image")).get("reference") for volume in mappings(value.get("volumes"))]
        yield from (image for image in named if isinstance(image, str) and image)
        for item in value.values():
            yield from images(item)
