"""Packing: one placement of pods, found by filling nodes. What it leaves over may fit otherwise."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from resources.placement.pod_demand import PodDemand
from resources.placement.room import PlacedPods, Room, suits


def left_over(room: Room, demands: Mapping[PodDemand, int]) -> Mapping[PodDemand, int]:
    """The pods that found no node when those with the fewest nodes and the largest requests were placed first; without zeros.

    Spread constraints are not honoured, and nodes that are not ready are not used.
    """
    nodes = [PlacedPods(each.node, each.capacity, each.others, Counter(each.used), each.held) for each in room.nodes()]
    suitable = {demand: [each for each in nodes if suits(demand, each.node, recovered=False)] for demand, count in demands.items() if count}
    taken: dict[str, set[str]] = {}
    left: dict[PodDemand, int] = {}
    together = Counter[str]()
    for demand in suitable:
        together.update({term.group: demands[demand] for term in demand.together[:1]})
    for demand in sorted(suitable, key=lambda demand: (not demand.together, len(suitable[demand]), -_size(demand, suitable[demand]))):
        rest = demands[demand]
        for area in _areas(demand, suitable[demand], together, taken):
            rest = _fill(demand, area, rest, taken)
        if rest:
            left[demand] = rest
    return left


def _size(demand: PodDemand, nodes: Iterable[PlacedPods]) -> float:
    """The largest part of a node that a pod takes. Used to order only."""
    return max((1 / copies for node in nodes if (copies := node.copies(demand, {}))), default=1.0)


def _areas(
    demand: PodDemand, nodes: list[PlacedPods], together: Mapping[str, int], taken: Mapping[str, Collection[str]]
) -> Iterable[Collection[PlacedPods]]:
    """The nodes to fill: all, or if the pods must be together, those at the value of the label where others of them are or most fit."""
    if not demand.together:
        return (nodes,)
    term = demand.together[0]
    by_value: dict[str, list[PlacedPods]] = {}
    for node in nodes:
        by_value.setdefault(node.node.labels.get(term.key, ""), []).append(node)
    if values := taken.get(term.group):
        return (by_value.get(value, ()) for value in values)
    count = together[term.group]
    room = {value: sum(node.copies(demand, node.used) for node in listed) for value, listed in by_value.items()}
    return [by_value[value] for value in sorted(room, key=lambda value: (room[value] < count, room[value], value))[:1]]


def _fill(demand: PodDemand, nodes: Iterable[PlacedPods], count: int, taken: dict[str, set[str]]) -> int:
    """Place so many pods, on nodes with the least room first. Returns how many are left."""
    copies = {node.node.name: node.copies(demand, node.used) for node in nodes}
    for node in sorted(nodes, key=lambda node: (copies[node.node.name], node.node.name)):
        labels = node.node.labels
        if not count or any(labels.get(term.key) in taken.get(term.group, ()) for term in demand.apart):
            continue
        placed = min(count, copies[node.node.name], 1 if demand.apart else count)
        if placed:
            node.used.update({resource: amount * placed for resource, amount in demand.requests.items()})
            for key, group in [(term.key, term.group) for term in demand.apart] + [(term.key, term.group) for term in demand.together]:
                if key in labels:
                    taken.setdefault(group, set()).add(labels[key])
            count -= placed
    return count
