"""RequestedDomain: the domains that sets ask for, as far as the sets themselves tell; whatever is there of them."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from engine.ids import ResourceId
from engine.paths import get
from engine.resource import Body
from resources.admission.annotations import GROUPS, annotations_of, cliques_of, mappings
from resources.model.view import MAX_REPLICAS
from resources.ports.fabric import INDEX, DomainRequest, Fabric


@dataclass(frozen=True, slots=True)
class RequestedDomain:
    """A domain that a set asks for, and what it asks it for."""

    root: ResourceId
    id: ResourceId
    request: DomainRequest
    pods: int
    """How many pods of that set are to be in it."""
    index: int | None = None
    """The replica whose it is; none where all replicas have it in common."""


def planned(root: ResourceId, body: Body, fabric: Fabric) -> Iterator[RequestedDomain]:
    """The domains of one set, each once. What cannot be understood asks for nothing."""
    cliques = members(body)
    count = replicas(body)
    copies = times(body)
    for request in fabric.domain_requests(root.name, annotations(body), cliques):
        own = sum(pods(cliques[name]) * copies.get(name, 1) for name in sorted(request.cliques) if name in cliques)
        if INDEX in request.name:
            for index in range(count):
                yield RequestedDomain(root, fabric.kind.id(root.namespace, request.name.replace(INDEX, str(index))), request, own, index)
        elif count:
            yield RequestedDomain(root, fabric.kind.id(root.namespace, request.name), request, own * count)


def planned_by(sets: Iterable[tuple[ResourceId, Body]], fabric: Fabric) -> tuple[RequestedDomain, ...]:
    """The domains of many sets; one that several share comes once for each of them."""
    return tuple(one for root, body in sets for one in planned(root, body, fabric))


def members(body: Body) -> Mapping[str, Body]:
    """The entries of a set's template by name."""
    return {entry["name"]: entry for entry in cliques_of(body) if isinstance(entry.get("name"), str)}


def annotations(body: Body) -> Mapping[str, str]:
    """A set's annotations, as far as they are text."""
    return {key: value for key, value in annotations_of(body).items() if isinstance(value, str)}


def times(body: Body) -> Mapping[str, int]:
    """Clique -> in how many replicas of a scaling group it is; those that stand alone are not in it."""
    found: dict[str, int] = {}
    for group in mappings(get(body, GROUPS, ())):
        names = group.get("cliqueNames")
        for name in names if isinstance(names, list | tuple) else ():
            if isinstance(name, str):
                found[name] = _count(group.get("replicas", 1))
    return found


def replicas(body: Body) -> int:
    """How many replicas a set asks for."""
    return _count(get(body, ("spec", "replicas"), 1))


def pods(clique: Body) -> int:
    """How many pods the template foresees of a clique."""
    return _count(get(clique, ("spec", "replicas"), 1))


def _count(value: object) -> int:
    """A number of replicas, within reason: whoever writes more is refused elsewhere."""
    return min(max(value, 0), MAX_REPLICAS) if isinstance(value, int) and not isinstance(value, bool) else 0
