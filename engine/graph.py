"""Graph: the resources of one root, unique, without cycles, in order."""

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from engine.errors import GraphError
from engine.ids import ResourceId
from engine.resource import Resource


class Recomputable(Mapping[ResourceId, Resource]):
    """The resources of a part, in creation order, which a function of observed facts returns: once planned, only their ids are kept.

    Bodies take most of the memory of what is remembered, and while the facts are the same they are not compared again.
    """

    __slots__ = ("_compute", "_ids", "_resources")

    def __init__(self, resources: Mapping[ResourceId, Resource], compute: Callable[[], Mapping[ResourceId, Resource]]) -> None:
        """`compute` returns the same resources again."""
        self._ids = dict.fromkeys(resources)
        self._resources: Mapping[ResourceId, Resource] | None = resources
        self._compute = compute

    def __contains__(self, id: object) -> bool:
        return id in self._ids

    def __iter__(self) -> Iterator[ResourceId]:
        return iter(self._ids)

    def __len__(self) -> int:
        return len(self._ids)

    def __getitem__(self, id: ResourceId) -> Resource:
        if id not in self._ids:
            raise KeyError(id)
        if self._resources is None:
            self._resources = self._compute()
        return self._resources[id]

    def release(self) -> None:
        """Keep only the ids; the resources are computed again when they are asked for."""
        self._resources = None


class Part(Struct, frozen=True, eq=False):
    """The desired objects of one part of a root (for example one replica), in creation order. Compared by identity.

    The observed objects of the part are the `Slice` of the same key.
    """

    key: str
    resources: Mapping[ResourceId, Resource]
    needs: frozenset[ResourceId]
    """Resources of other parts that must be created before resources of this part."""
    found_elsewhere: tuple[ResourceId, ...] = ()
    """Resources whose live object is not in the slice: shared ones, those without our labels, and those of nested roots."""

    def release(self) -> None:
        """Release the memory of resources that can be computed again."""
        if isinstance(self.resources, Recomputable):
            self.resources.release()


def part(key: str, resources: Iterable[Resource]) -> Part:
    """The resources as a part, in an order that depends only on their names and edges.

    Raises `GraphError` for two resources of one name, and for a cycle.
    """
    by_id: dict[ResourceId, Resource] = {}
    for resource in resources:
        if resource.id in by_id:
            raise GraphError(f"{resource.id} is defined twice: {by_id[resource.id].why}; {resource.why}")
        by_id[resource.id] = resource
    edges = {id: edges_of(resource) for id, resource in by_id.items()}
    inner_edges = {id: [need for need in needs if need in by_id] for id, needs in edges.items()}
    order = _sorted(inner_edges)
    outer_needs = frozenset(need for needs in edges.values() for need in needs if need not in by_id)
    return Part(key, {id: by_id[id] for id in order}, outer_needs, tuple(id for id in order if _is_elsewhere(by_id[id])))


def _is_elsewhere(resource: Resource) -> bool:
    """Whether the live object is not in the slice: it has no controller, none of our labels, or belongs to a nested root."""
    return resource.policy.shared or resource.policy.unlabelled or resource.policy.nested


def edges_of(resource: Resource) -> frozenset[ResourceId]:
    """The resources that this one comes after: those in `after`, and its owners."""
    return resource.after.union(owner.id for owner in resource.owners)


def _sorted(needs: Mapping[ResourceId, list[ResourceId]]) -> list[ResourceId]:
    """Topological order by Kahn's algorithm; among ids that are ready, the smallest comes first. Raises `GraphError` for a cycle."""
    missing = {id: len(needed) for id, needed in needs.items()}
    dependents: dict[ResourceId, list[ResourceId]] = {}
    for id, needed in needs.items():
        for need in needed:
            dependents.setdefault(need, []).append(id)
    ready = [id for id, count in missing.items() if not count]
    heapq.heapify(ready)
    order: list[ResourceId] = []
    while ready:
        id = heapq.heappop(ready)
        order.append(id)
        for dependent in dependents.get(id, ()):
            missing[dependent] -= 1
            if not missing[dependent]:
                heapq.heappush(ready, dependent)
    if len(order) < len(needs):
        cycle = sorted(str(id) for id in needs.keys() - set(order))
        raise GraphError(f"these resources depend on one another in a cycle: {', '.join(cycle)}")
    return order


class _Union(Mapping[ResourceId, Resource]):
    """The resources of several parts, without asking for any of them."""

    __slots__ = ("_known", "_ordered")

    def __init__(self, parts: Sequence[Part]) -> None:
        self._ordered = parts
        self._known: Mapping[ResourceId, Part] | None = None

    @property
    def _parts(self) -> Mapping[ResourceId, Part]:
        """Resource -> its part. Made when somebody asks: a pass without operations does not."""
        if self._known is None:
            self._known = {id: part for part in self._ordered for id in part.resources}
        return self._known

    def __contains__(self, id: object) -> bool:
        return id in self._parts

    def __iter__(self) -> Iterator[ResourceId]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    def __getitem__(self, id: ResourceId) -> Resource:
        return self._parts[id].resources[id]


class Graph(Struct, frozen=True, eq=False):
    """The parts of a root, each needing only those before it."""

    parts: tuple[Part, ...]
    resources: Mapping[ResourceId, Resource]
    """The resources of all parts, in creation order."""


def graph(parts: Iterable[Part], previous: Sequence[Part] = ()) -> Graph:
    """The union of the parts. Raises `GraphError` for a name in two parts, and for a part that needs a resource of a later one.

    `previous` are the parts of an earlier graph: parts with the same names and needs are not checked again.
    """
    ordered = tuple(parts)
    if len(ordered) != len(previous) or not all(map(_has_same_names, ordered, previous)):
        _check(ordered)
    return Graph(ordered, _Union(ordered))


def _has_same_names(part: Part, previous: Part) -> bool:
    """Whether the parts have resources of the same names, and need the same."""
    return part is previous or (part.needs == previous.needs and list(part.resources) == list(previous.resources))


def _check(ordered: Sequence[Part]) -> None:
    """Raise `GraphError` for a name in two parts, and for a part that needs a resource of a later one."""
    part_of: dict[ResourceId, Part] = {}
    unmet: dict[ResourceId, str] = {}
    for part in ordered:
        unmet.update((need, part.key) for need in part.needs if need not in part_of)
        if not part_of.keys().isdisjoint(part.resources):
            id = min(part_of.keys() & part.resources.keys())
            raise GraphError(f"{id} is defined twice: {part_of[id].resources[id].why}; {part.resources[id].why}")
        part_of.update(dict.fromkeys(part.resources, part))
    for need, key in sorted(unmet.items()):
        if need in part_of:
            raise GraphError(f"part {key!r} comes before {need}, which it needs")
