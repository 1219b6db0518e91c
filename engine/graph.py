"""Graph: the resources of one root, unique, without cycles, in order."""

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct, field

from engine.errors import GraphError
from engine.ids import ResourceId
from engine.resource import Resource

Resources = Mapping[ResourceId, Resource]
"""Resources in creation order."""


class Part(Struct, frozen=True, eq=False):
    """The desired objects of one part of a root (for example one replica). Compared by identity.

    The observed objects of the part are the `Slice` of the same key.
    """

    key: str
    ids: Mapping[ResourceId, object]
    """The keys are its resources, in creation order."""
    needs: frozenset[ResourceId]
    """Resources of other parts that must be created before resources of this part."""
    compute: Callable[[], Resources]
    """Returns the resources. Those of a part that is remembered are computed anew each time: bodies would take most of the memory, and
    are not compared while their facts are the same."""
    found_elsewhere: tuple[ResourceId, ...] = ()
    """Resources whose live object is not in the slice: shared ones, those without our labels, and those of nested roots."""

    @property
    def resources(self) -> Resources:
        """The resources. A caller that needs them twice keeps them."""
        return self.compute()


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
    ordered: Resources = {id: by_id[id] for id in order}
    return Part(key, ordered, outer_needs, lambda: ordered, tuple(id for id in order if _is_elsewhere(by_id[id])))


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


class Graph(Struct, frozen=True, eq=False):
    """The parts of a root, each needing only those before it."""

    parts: tuple[Part, ...]
    computed: Mapping[str, Resources] = field(default_factory=dict)
    """Key of a part -> its resources, where the part has just been made: they need not be computed again."""

    def resources_of(self, part: Part) -> Resources:
        """The resources of one of the parts. A caller that needs them twice keeps them."""
        known = self.computed.get(part.key)
        return known if known is not None else part.resources

    @property
    def resources(self) -> Resources:
        """The resources of all parts. A caller that needs them twice keeps them."""
        return {id: resource for part in self.parts for id, resource in self.resources_of(part).items()}


NOTHING_COMPUTED: Final[Mapping[str, Resources]] = {}


def graph(parts: Iterable[Part], previous: Sequence[Part] = (), computed: Mapping[str, Resources] = NOTHING_COMPUTED) -> Graph:
    """The union of the parts. Raises `GraphError` for a name in two parts, and for a part that needs a resource of a later one.

    `previous` are the parts of an earlier graph: parts with the same names and needs are not checked again.
    """
    ordered = tuple(parts)
    if len(ordered) != len(previous) or not all(map(_has_same_names, ordered, previous)):
        _check(ordered)
    return Graph(ordered, computed)


def _has_same_names(part: Part, previous: Part) -> bool:
    """Whether the parts have resources of the same names, and need the same."""
    return part is previous or (part.needs == previous.needs and list(part.ids) == list(previous.ids))


def _check(ordered: Sequence[Part]) -> None:
    """Raise `GraphError` for a name in two parts, and for a part that needs a resource of a later one."""
    part_of: dict[ResourceId, Part] = {}
    unmet: dict[ResourceId, str] = {}
    for part in ordered:
        unmet.update((need, part.key) for need in part.needs if need not in part_of)
        if not part_of.keys().isdisjoint(part.ids):
            id = min(part_of.keys() & part.ids.keys())
            raise GraphError(f"{id} is defined twice: {part_of[id].resources[id].why}; {part.resources[id].why}")
        part_of.update(dict.fromkeys(part.ids, part))
    for need, key in sorted(unmet.items()):
        if need in part_of:
            raise GraphError(f"part {key!r} comes before {need}, which it needs")
