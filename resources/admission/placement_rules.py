"""Placement rules: the annotation by which a set keeps the pods of each of its fabric domains together (N31)."""

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

KEY: Final = labels.DOMAIN_PLACEMENT
PATH: Final[Path] = ("metadata", "annotations", Child(KEY))
FIELD: Final = f"metadata.annotations[{KEY}]"
ALLOWED: Final = "must be " + " or ".join(f'"{placement}"' for placement in DomainPlacement)


def issues(new: Body, old: Body | None = None) -> Iterator[Issue]:
    """An invalid value; one that the stored set has already does not prevent updates."""
    annotations, previous = annotations_of(new), annotations_of(old or {})
    if KEY in annotations and placement_of(annotations) is None and annotations[KEY] != previous.get(KEY):
        yield Issue(PATH, ErrorType.INVALID, ALLOWED, annotations[KEY])


def warnings(body: Body, configuration: Configuration) -> Iterator[str]:
    """The annotation in a place or a spelling in which it has no effect, or on a set that cannot have what it asks for."""
    yield from misplaced(KEY, body, (Place.SET,))
    placement = placement_of(annotations_of(body))
    if placement is None:
        return
    members = _members(body, configuration)
    if not members:
        yield f"{FIELD} has no effect: no clique joins a domain that can be kept together"
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
        yield f"{FIELD} may have no effect: {name} is not known to observe pod affinity; {scheduler.instead_of_affinity}"
    if placement is DomainPlacement.REQUIRED and mappings(get(spec, ("affinity", "podAffinity", REQUIRED_TERMS), ())):
        yield (
            f"{field}.affinity.podAffinity.{REQUIRED_TERMS}: {FIELD} adds another required term, and a scheduler places a pod only beside "
            "pods that match all of them"
        )
