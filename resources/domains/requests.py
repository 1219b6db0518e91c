"""Requests: the domains that sets request, read from the sets alone, whether the domains exist or not."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from engine.ids import ResourceId
from engine.paths import get
from engine.resource import Body
from resources.base.fields import GROUPS, cliques_of, mappings
from resources.model.domain_requests import domain_requests_of
from resources.model.view import MAX_REPLICAS
from resources.ports.fabric import INDEX, DomainRequest, Fabric


@dataclass(frozen=True, slots=True)
class RequestedDomain:
    """A domain that a set requests."""

    root: ResourceId
    """The set."""
    id: ResourceId
    request: DomainRequest
    pods: int
    """The number of pods of the set that join it."""
    index: int | None = None
    """The index of the replica that requests it; None if all replicas of the set use the same domain."""


def requested_by_set(root: ResourceId, body: Body, fabric: Fabric) -> Iterator[RequestedDomain]:
    """The domains that one set requests, each once. Fields of the wrong shape count as absent or as 0.

    The set may lack its defaults: they are the same here as in `resources.admission.defaults`.
    """
    count = replicas(body)
    for request in domain_requests_of(fabric, root.name, body):
        pods = pods_per_replica(body, request.cliques)
        if INDEX in request.name:
            for index in range(count):
                yield RequestedDomain(root, fabric.kind.id(root.namespace, request.name.replace(INDEX, str(index))), request, pods, index)
        elif count:
            yield RequestedDomain(root, fabric.kind.id(root.namespace, request.name), request, pods * count)


def requested_by_sets(sets: Iterable[tuple[ResourceId, Body]], fabric: Fabric) -> tuple[RequestedDomain, ...]:
    """The domains that these sets request; one that several sets share occurs once for each set."""
    return tuple(requested for root, body in sets for requested in requested_by_set(root, body, fabric))


def cliques_by_name(body: Body) -> Mapping[str, Body]:
    """Clique name -> its entry in the set's template."""
    return {entry["name"]: entry for entry in cliques_of(body) if isinstance(entry.get("name"), str)}


def group_replicas(body: Body) -> Mapping[str, int]:
    """Clique name -> the replicas of its scaling group. Cliques without a group are not included."""
    counts: dict[str, int] = {}
    for group in mappings(get(body, GROUPS, ())):
        names = group.get("cliqueNames")
        for name in names if isinstance(names, list | tuple) else ():
            if isinstance(name, str):
                counts[name] = _count(group.get("replicas"), 1)
    return counts


def replicas(body: Body) -> int:
    """The number of replicas of a set; by default 0."""
    return _count(get(body, ("spec", "replicas")), 0)


def pods_of(clique: Body) -> int:
    """The number of pods of one clique of the template; by default 1, and 0 counts as absent."""
    return _count(get(clique, ("spec", "replicas")) or None, 1)


def pods_per_replica(body: Body, names: Iterable[str]) -> int:
    """The number of pods that the cliques of these names have in one replica of the set, replicas of scaling groups included."""
    cliques, copies = cliques_by_name(body), group_replicas(body)
    return sum(pods_of(cliques[name]) * copies.get(name, 1) for name in names if name in cliques)


def _count(value: object, default: int) -> int:
    """A number of replicas: `default` if it is absent, 0 if it is negative or no integer, and at most `MAX_REPLICAS`."""
    if value is None:
        return default
    return min(max(value, 0), MAX_REPLICAS) if isinstance(value, int) and not isinstance(value, bool) else 0
