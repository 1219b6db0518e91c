"""Island capacity: which requested domains need more nodes of one island than there are, or than are free (N30).

A fabric connects only nodes of the same island, e.g. of one NVLink clique; one pod of a domain takes one node.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct, field

from engine.ids import ResourceId
from engine.observed import Live
from engine.resource import Body
from resources.base.fields import annotations_of
from resources.base.labels import DOMAIN_PLACEMENT
from resources.base.texts import some
from resources.domains import requests
from resources.domains.capacity import NodeCapacity
from resources.model.domain import DomainPlacement, placement_of
from resources.ports.fabric import Fabric, IslandFabric


class Demand(Struct):
    """What one domain needs, summed over all sets that request it."""

    id: ResourceId
    pods: int = 0
    roots: dict[ResourceId, None] = field(default_factory=dict)
    """The sets that request it."""


def island_notes(
    fabric: Fabric,
    sets: Sequence[tuple[ResourceId, Body]],
    capacity: NodeCapacity | None,
    uids: Mapping[ResourceId, str],
    scaling_groups: Mapping[ResourceId, int] = requests.NO_GROUPS,
) -> Mapping[ResourceId, tuple[str, ...]]:
    """Set -> why pods of its domains cannot be in one island; sets without a problem are not included.

    `uids` maps the domains that exist to their uids. Without a capacity, or without known islands, only the fabric's own limit counts.
    """
    if not isinstance(fabric, IslandFabric):
        return {}
    demands = [demand for demand in _demands(requests.requested_by_sets(sets, fabric, scaling_groups)) if demand.pods > 1]
    placements = {root: placement_of(annotations_of(body)) for root, body in sets}
    domains_by_fault: dict[tuple[ResourceId, str], list[ResourceId]] = {}
    for demand, fault in _faults(fabric, demands, capacity, uids):
        for root in demand.roots:
            domains_by_fault.setdefault((root, f"{fault}; {_consequence(fabric, placements[root])}"), []).append(demand.id)
    notes: dict[ResourceId, list[str]] = {}
    for (root, fault), ids in domains_by_fault.items():
        notes.setdefault(root, []).append(f"{_subject(ids)} {fault}")
    for root in _unplaceable(demands, capacity, placements):
        notes.setdefault(root, []).append(
            f"no node has the label {fabric.island_label}: with {DOMAIN_PLACEMENT}: {DomainPlacement.REQUIRED} its pods stay Pending"
        )
    return {root: tuple(listed) for root, listed in notes.items()}


def islands_of(fabric: IslandFabric, nodes: Iterable[Live]) -> Mapping[str, str]:
    """Name of a node -> the island that its label names. Nodes without one are not included."""
    return {live.id.name: island for live in nodes if (island := live.labels.get(fabric.island_label))}


def _demands(requested: Sequence[requests.RequestedDomain]) -> list[Demand]:
    """The domains, those with the most pods first."""
    demands: dict[ResourceId, Demand] = {}
    for domain in requested:
        demand = demands.setdefault(domain.id, Demand(domain.id))
        demand.pods += domain.pods
        demand.roots[domain.root] = None
    return sorted(demands.values(), key=lambda demand: (-demand.pods, demand.id))


def _faults(
    fabric: IslandFabric, demands: Sequence[Demand], capacity: NodeCapacity | None, uids: Mapping[ResourceId, str]
) -> Iterator[tuple[Demand, str]]:
    """The domains that do not fit into one island, each with the reason as a predicate."""
    islands = capacity.islands if capacity is not None and capacity.islands else {}
    sizes = Counter(islands[node] for node in capacity.nodes if node in islands) if capacity is not None else Counter()
    largest = min(fabric.max_island_nodes, max(sizes.values(), default=fabric.max_island_nodes))
    small = []
    for demand in demands:
        if demand.pods <= largest:
            small.append(demand)
        elif largest == fabric.max_island_nodes:
            yield demand, f"{_need(fabric, demand)}, and a domain can have at most {largest} of one"
        else:
            yield demand, f"{_need(fabric, demand)}, and the largest has {largest}"
    if capacity is not None and sizes:
        yield from _without_room(fabric, small, capacity, islands, uids)


def _without_room(
    fabric: IslandFabric, demands: Sequence[Demand], capacity: NodeCapacity, islands: Mapping[str, str], uids: Mapping[ResourceId, str]
) -> Iterator[tuple[Demand, str]]:
    """The domains for which no island has enough free nodes, if each of the others takes the smallest island that suffices.

    Domains whose nodes are in several islands already are left out: their status reports that.
    """
    nodes = [node for node in sorted(capacity.nodes) if node in islands]
    free = Counter(islands[node] for node in nodes if node not in capacity.taken)
    most = max(free.values(), default=0)
    used: dict[str, Counter[str]] = {}
    for node in nodes:
        if node in capacity.taken:
            used.setdefault(capacity.taken[node], Counter())[islands[node]] += 1
    for demand in demands:
        own = used.get(uids.get(demand.id, ""), Counter[str]())
        if len(own) > 1:
            continue
        candidates = {island: free[island] + own[island] for island in own or free}
        suitable = [island for island, count in candidates.items() if count >= demand.pods]
        if suitable:
            island = min(suitable, key=lambda name: (candidates[name], name))
            free[island] -= max(0, demand.pods - own[island])
            continue
        available = max(candidates.values(), default=0)
        if own:
            yield demand, f"{_need(fabric, demand)}: at most {available} of the one that it is in are free or its own"
        elif available < most >= demand.pods:
            yield demand, f"{_need(fabric, demand)}: at most {available} are free in one when the larger domains have theirs"
        else:
            yield demand, f"{_need(fabric, demand)}: at most {available} are free in one"


def _unplaceable(
    demands: Sequence[Demand], capacity: NodeCapacity | None, placements: Mapping[ResourceId, DomainPlacement | None]
) -> Iterator[ResourceId]:
    """The sets whose pods must be in an island, if no node is in one."""
    if capacity is not None and capacity.islands is not None and not capacity.islands:
        roots = dict.fromkeys(root for demand in demands for root in demand.roots)
        yield from (root for root in roots if placements[root] is DomainPlacement.REQUIRED)


def _need(fabric: IslandFabric, demand: Demand) -> str:
    return f"needs {demand.pods} nodes of one {fabric.island_noun}"


def _consequence(fabric: IslandFabric, placement: DomainPlacement | None) -> str:
    if placement is DomainPlacement.REQUIRED:
        return "the pods that do not fit stay Pending"
    return f"its pods will not all reach one another over {fabric.link}"


def _subject(ids: Sequence[ResourceId]) -> str:
    kind = ids[0].kind
    return f"{kind} {ids[0].name}" if len(ids) == 1 else f"each of the {kind}s {some(id.name for id in ids)}"
