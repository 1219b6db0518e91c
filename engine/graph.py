"""Graph: everything one root should have, unique, without circles, in order."""

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from engine.errors import GraphError
from engine.ids import ResourceId
from engine.resource import Resource


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """The resources of one slice of a root (say, one replica), each after those it needs. Compared by identity."""

    key: str
    resources: Mapping[ResourceId, Resource]
    needs: frozenset[ResourceId]
    """What its resources come after, outside of the part."""
    outside: tuple[ResourceId, ...] = ()
    """Those that are found among the references: other roots may want them as well, or nothing but their owner tells whose they are."""


def part(key: str, resources: Iterable[Resource]) -> Part:
    """The resources as a part, in an order that depends on nothing but their names and edges.

    Raises `GraphError` for two resources of one name, and for a circle.
    """
    by_id: dict[ResourceId, Resource] = {}
    for resource in resources:
        if resource.id in by_id:
            raise GraphError(f"{resource.id} is wanted twice: {by_id[resource.id].why}; {resource.why}")
        by_id[resource.id] = resource
    edges = {id: edges_of(resource) for id, resource in by_id.items()}
    inside = {id: [need for need in needs if need in by_id] for id, needs in edges.items()}
    order = _sorted(inside)
    needs = frozenset(need for needs in edges.values() for need in needs if need not in by_id)
    return Part(key, {id: by_id[id] for id in order}, needs, tuple(id for id in order if _is_outside(by_id[id])))


def _is_outside(resource: Resource) -> bool:
    return resource.policy.shared or resource.policy.unlabelled


def edges_of(resource: Resource) -> frozenset[ResourceId]:
    """What a resource comes after: what it says, and its owners."""
    return resource.after.union(owner.id for owner in resource.owners)


def _sorted(needs: Mapping[ResourceId, list[ResourceId]]) -> list[ResourceId]:
    """Kahn's order, the smallest name first wherever there is a choice."""
    waiting = {id: len(of) for id, of in needs.items()}
    dependents: dict[ResourceId, list[ResourceId]] = {}
    for id, of in needs.items():
        for need in of:
            dependents.setdefault(need, []).append(id)
    ready = [id for id, count in waiting.items() if not count]
    heapq.heapify(ready)
    order: list[ResourceId] = []
    while ready:
        id = heapq.heappop(ready)
        order.append(id)
        for dependent in dependents.get(id, ()):
            waiting[dependent] -= 1
            if not waiting[dependent]:
                heapq.heappush(ready, dependent)
    if len(order) < len(needs):
        circle = sorted(str(id) for id in needs.keys() - set(order))
        raise GraphError(f"these wait for one another in a circle: {', '.join(circle)}")
    return order


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """The parts of a root, each needing only those before it."""

    parts: tuple[Part, ...]
    resources: Mapping[ResourceId, Resource]


def graph(parts: Iterable[Part]) -> Graph:
    """The union of parts. Raises `GraphError` for a name in two parts, and for a part that needs a later one."""
    listed = tuple(parts)
    resources: dict[ResourceId, Resource] = {}
    unmet: dict[ResourceId, str] = {}
    for one in listed:
        unmet.update((need, one.key) for need in one.needs if need not in resources)
        if not resources.keys().isdisjoint(one.resources):
            id = min(resources.keys() & one.resources.keys())
            raise GraphError(f"{id} is wanted twice: {resources[id].why}; {one.resources[id].why}")
        resources.update(one.resources)
    for need, key in unmet.items():
        if need in resources:
            raise GraphError(f"part {key!r} comes before {need}, which it needs")
    return Graph(listed, resources)
