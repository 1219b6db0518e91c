"""GangRoom: how much of a waiting gang has room now, what is missing, and which gangs have the rest."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from engine.report.printable import some
from engine.resource import Body
from resources.base import labels
from resources.base.fields import mapping
from resources.placement.cluster_room import ClusterRoom, RoomNode
from resources.placement.packing import left_over
from resources.placement.pod_demand import DemandBook, PodDemand
from resources.placement.refusal_text import refusal_text
from resources.placement.room import PlacedPods, Room

SHOWN: Final = 3
"""The most gangs that are named."""
GROUP_OF_SINGLE_PODS: Final = "podgroup-"
"""How the names of the groups begin that a scheduler's controller makes for pods that are in no gang."""
FREE: Final = "free or add nodes, or ask for less"


class GangRoom(Struct, frozen=True):
    """What room there is for the pods that a gang lacks."""

    lacking: int
    """How many pods have no node."""
    fit: int
    """How many of them have room now, in one placement that was tried."""
    why: str
    """Why the others have none, in one sentence; empty if all have."""
    holders: str
    """Which gangs have pods on full nodes that would have room without them, those with the most pods first; empty if none has."""


class GangHolders:
    """Counts the pods of each gang on each node, while pods are read."""

    def __init__(self) -> None:
        self._pods: dict[str, Counter[tuple[str, str]]] = {}
        """Node -> (namespace, gang) -> the pods."""

    def add(self, pod: Mapping[str, Any]) -> None:
        """Count a pod that is on a node and belongs to a gang: by its label of a PodGang, else by the name of its PodGroup."""
        metadata, spec = mapping(pod.get("metadata")), mapping(pod.get("spec"))
        names = (
            mapping(metadata.get("labels")).get(labels.PODGANG),
            mapping(spec.get("schedulingGroup")).get("podGroupName"),
            mapping(metadata.get("annotations")).get(labels.GROUP_NAME),
        )
        node, gang = spec.get("nodeName"), next(filter(None, names), None)
        if isinstance(node, str) and node and isinstance(gang, str) and not gang.startswith(GROUP_OF_SINGLE_PODS):
            self._pods.setdefault(node, Counter())[str(metadata.get("namespace", "")), gang] += 1

    def on(self, nodes: Iterable[str], own: tuple[str, str]) -> str:
        """The gangs other than `own` with pods on these nodes, each with their number."""
        counts: Counter[tuple[str, str]] = Counter()
        for node in nodes:
            counts.update(self._pods.get(node, {}))
        counts.pop(own, None)
        ranked = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
        return some((f"{namespace}/{gang} ({count} pod{'s' if count != 1 else ''})" for (namespace, gang), count in ranked), SHOWN)


def gang_room(
    pods: Sequence[tuple[Body, Mapping[str, int]]],
    level: str,
    placed: Iterable[str],
    own: tuple[str, str],
    cluster: ClusterRoom,
    holders: GangHolders,
) -> GangRoom:
    """The room for these pods of one gang, which wait for a node, each with the places in domains of fabrics that it takes.

    `level`: the node label of which all pods of the gang must have one value, empty if they need not; `placed`: the nodes of those that
    have one; `own`: namespace and name of the gang.
    """
    book = DemandBook(cluster.priorities)
    demands = Counter(demand for pod, places in pods if (demand := book.demand_of(pod, places)) is not None)
    areas = _areas(cluster, level, frozenset(placed))
    if not areas:
        return GangRoom(len(pods), 0, f"no node has the label {level}; label or add nodes", "")
    room, left = min((_left(area, demands) for area in areas), key=lambda each: each[1])
    if not left:
        return GangRoom(len(pods), len(pods), "", "")
    refusal = room.refusal(demands)
    why = refusal_text(refusal, room) if refusal is not None else f"their nodes have room for {len(pods) - left} of them together; {FREE}"
    where = f"no value of node label {level} has room for all of them: " if level and len(areas) > 1 else ""
    full = {placed.node.name: None for demand in demands for placed in room.suitable(demand) if _is_full(placed, demand)}
    return GangRoom(len(pods), len(pods) - left, where + why, holders.on(full, own))


def _is_full(placed: PlacedPods, demand: PodDemand) -> bool:
    """Whether a node has no room for such a pod, and would have if it were empty."""
    return not placed.copies(demand, placed.used) and placed.copies(demand, {}) > 0


def _areas(cluster: ClusterRoom, level: str, placed: frozenset[str]) -> list[ClusterRoom]:
    """The nodes among which the pods must be, once for each choice."""
    if not level:
        return [cluster]
    by_value: dict[str, list[RoomNode]] = {}
    for node in cluster.nodes:
        if level in node.labels:
            by_value.setdefault(node.labels[level], []).append(node)
    taken = {node.labels.get(level) for node in cluster.nodes if node.name in placed}
    chosen = [nodes for value, nodes in by_value.items() if not taken or value in taken]
    return [replace(cluster, nodes=tuple(nodes)) for nodes in chosen]


def _left(area: ClusterRoom, demands: Mapping[PodDemand, int]) -> tuple[Room, int]:
    """The nodes, and how many of the pods found no room on them."""
    room = Room(area)
    room.occupy_slots()
    return room, sum(left_over(room, demands).values())
