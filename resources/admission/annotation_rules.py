"""Annotation rules: the annotations of a set that concern its fabric domains (N31, N33), and those that keep commands from removing it."""

from collections.abc import Iterator
from typing import Final

from engine.paths import get
from engine.resource import Body
from resources.admission.annotations import misplaced
from resources.base import labels
from resources.base.fields import annotations_of, cliques_of, mapping, mappings
from resources.model.domain import REQUIRED_TERMS, DomainPlacement, domain_requests_of, placement_of
from resources.ports.configuration import Configuration
from resources.ports.fabric import IslandFabric, Place
from resources.ports.scheduler import AffinityIgnoringScheduler
from resources.schema.issues import Child, ErrorType, Issue, Path

ANNOTATIONS: Final[Path] = ("metadata", "annotations")
PLACEMENT: Final = f"metadata.annotations[{labels.DOMAIN_PLACEMENT}]"
PLACEMENTS: Final = "must be " + " or ".join(f'"{placement}"' for placement in DomainPlacement)


def issues(new: Body, old: Body | None = None) -> Iterator[Issue]:
    """An issue for each annotation with a value that means nothing; one that the stored set has already does not prevent updates."""
    annotations, previous = annotations_of(new), annotations_of(old or {})
    placement = annotations.get(labels.DOMAIN_PLACEMENT)
    if placement is not None and placement_of(annotations) is None and placement != previous.get(labels.DOMAIN_PLACEMENT):
        yield Issue((*ANNOTATIONS, Child(labels.DOMAIN_PLACEMENT)), ErrorType.INVALID, PLACEMENTS, placement)
    release = annotations.get(labels.RELEASE_DOMAINS, labels.ON_COMPLETION)
    if release != labels.ON_COMPLETION and release != previous.get(labels.RELEASE_DOMAINS):
        yield Issue((*ANNOTATIONS, Child(labels.RELEASE_DOMAINS)), ErrorType.INVALID, f'must be "{labels.ON_COMPLETION}"', release)


def removal_warnings(body: Body) -> Iterator[str]:
    """The annotations in a place or a spelling in which they protect the set from nothing."""
    for key in (labels.PROTECT, labels.PRUNE):
        yield from misplaced(key, body, (Place.SET,))


def domain_warnings(body: Body, configuration: Configuration) -> Iterator[str]:
    """The annotations about domains in a place or a spelling without effect (N35), or that ask for what the set cannot have."""
    yield from misplaced(labels.DOMAIN_PLACEMENT, body, (Place.SET,))
    yield from _placement_warnings(body, configuration)
    yield from misplaced(labels.RELEASE_DOMAINS, body, (Place.SET,))


def _placement_warnings(body: Body, configuration: Configuration) -> Iterator[str]:
    """Why the pods of domains cannot be kept together as the set asks."""
    placement = placement_of(annotations_of(body))
    if placement is None:
        return
    members = _members(body, configuration)
    if not members:
        yield f"{PLACEMENT} has no effect: no clique joins a domain that can be kept together"
    for number, clique in enumerate(cliques_of(body)):
        if clique.get("name") in members:
            yield from _clique_warnings(f"spec.template.cliques[{number}].spec.podSpec", clique, placement, configuration)


def _members(body: Body, configuration: Configuration) -> frozenset[str]:
    """The cliques that join a domain of a fabric with islands."""
    name = str(mapping(body.get("metadata")).get("name") or "")
    fabrics = (fabric for fabric in configuration.fabrics if isinstance(fabric, IslandFabric))
    requested = (request for fabric in fabrics for request in domain_requests_of(fabric, name, body))
    return frozenset(clique for request in requested for clique in request.cliques)


def _clique_warnings(field: str, clique: Body, placement: DomainPlacement, configuration: Configuration) -> Iterator[str]:
    """What keeps the pods of one clique from being placed as the set asks."""
    spec = mapping(get(clique, ("spec", "podSpec"), {}))
    name = str(spec.get("schedulerName") or configuration.default_scheduler)
    scheduler: object = configuration.schedulers.get(name)
    if isinstance(scheduler, AffinityIgnoringScheduler):
        yield f"{PLACEMENT} may have no effect: {name} is not known to observe pod affinity; {scheduler.instead_of_affinity}"
    if placement is DomainPlacement.REQUIRED and mappings(get(spec, ("affinity", "podAffinity", REQUIRED_TERMS), ())):
        yield (
            f"{field}.affinity.podAffinity.{REQUIRED_TERMS}: {PLACEMENT} adds another required term, and a scheduler places a pod only "
            "beside pods that match all of them"
        )
