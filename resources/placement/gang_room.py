"""GangRoom: how much of a waiting gang has room now, what is missing, and which gangs have the rest."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from engine.report.printable import counted, some
from engine.resource import Body
from resources.base import labels
from resources.base.fields import mapping
from resources.placement.cluster_room import ClusterRoom, RoomNode
from resources.placement.node_fit import short_of
from resources.placement.packing import left_over
from resources.placement.pod_affinity import ENDED
from resources.placement.pod_demand import SLOT, DemandBook, PodDemand
from resources.placement.refusal_text import refusal_text
from resources.placement.room import PlacedPods, Room
from resources.placement.usage_totals import used_by

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
    """Which gangs use what full nodes lack that would suffice if they were empty, those with the most pods first, as a clause.

    Empty if none does.
    """


class GangHolders:
    """Counts the pods of each gang on each node, while pods are read."""

    def __init__(self) -> None:
        self._pods: dict[str, Counter[tuple[tuple[str, str], frozenset[str]]]] = {}
        """Node -> namespace and name of a gang, and the resources that its pods use -> how many of these."""

    def add(self, pod: Mapping[str, Any]) -> None:
        """Count a pod that is on a node and belongs to a gang: by its label of a PodGang, else by the name of its PodGroup.

        One that has ended or is being deleted uses nothing that lasts.
        """
        metadata, spec = mapping(pod.get("metadata")), mapping(pod.get("spec"))
        names = (
            mapping(metadata.get("labels")).get(labels.PODGANG),
            mapping(spec.get("schedulingGroup")).get("podGroupName"),
            mapping(metadata.get("annotations")).get(labels.GROUP_NAME),
        )
        node, gang = spec.get("nodeName"), next(filter(None, names), None)
        if mapping(pod.get("status")).get("phase") in ENDED or metadata.get("deletionTimestamp") is not None:
            return
        if isinstance(node, str) and node and isinstance(gang, str) and not gang.startswith(GROUP_OF_SINGLE_PODS):
            places = (SLOT,) if spec.get("resourceClaims") else ()
            uses = frozenset((*(resource for resource, amount in used_by(spec).items() if amount > 0), *places))
            self._pods.setdefault(node, Counter())[(str(metadata.get("namespace", "")), gang), uses] += 1

    def on(self, lacking: Mapping[str, Collection[str]], own: tuple[str, str]) -> str:
        """The gangs other than `own` with pods that use what these nodes lack, each with their number. `lacking`: node -> resources."""
        counts: Counter[tuple[str, str]] = Counter()
        for node, resources in lacking.items():
            missing = {SLOT if resource.startswith(SLOT) else resource for resource in resources}
            for (gang, uses), count in self._pods.get(node, {}).items():
                counts[gang] += count if missing & uses else 0
        ranked = sorted(((gang, count) for gang, count in counts.items() if count and gang != own), key=lambda each: (-each[1], each[0]))
        if not ranked:
            return ""
        names = some((f"{namespace}/{gang} ({counted(count, 'pod')})" for (namespace, gang), count in ranked), SHOWN)
        return f"on the full node{'s' if len(lacking) > 1 else ''} {'are gangs' if len(ranked) > 1 else 'is gang'} {names}"


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
    placed = frozenset(placed)
    areas = _areas(cluster, level, placed)
    if not areas:
        return GangRoom(len(pods), 0, f"no node has the label {level}; label or add nodes", "")
    room, left = min((_left(area, demands) for area in areas), key=lambda each: each[1])
    refusal = room.refusal(demands)
    if refusal is not None and refusal.beside is not None:
        left = max(left, refusal.wanted)
    if not left:
        return GangRoom(len(pods), len(pods), "", "")
    why = refusal_text(refusal, room) if refusal is not None else f"their nodes have room for {len(pods) - left} of them together; {FREE}"
    where = _where(level, areas, placed)
    lacking: dict[str, set[str]] = {}
    for demand in demands:
        for node in room.suitable(demand):
            if missing := _lacking(node, demand):
                lacking.setdefault(node.node.name, set()).update(missing)
    return GangRoom(len(pods), len(pods) - left, where + why, holders.on(lacking, own))


def _where(level: str, areas: Sequence[ClusterRoom], placed: Collection[str]) -> str:
    """Among which nodes there is no room; empty if that is said by their number."""
    if level and len(areas) > 1:
        return f"no value of node label {level} has room for all of them: "
    are_there = level and any(node.name in placed for node in areas[0].nodes)
    return f"others of them are at {level}={areas[0].nodes[0].labels[level]}: " if are_there else ""


def _lacking(placed: PlacedPods, demand: PodDemand) -> list[str]:
    """The resources that a node lacks for such a pod, for which it would have room if it were empty."""
    return short_of(demand.requests, placed.capacity, placed.used) if placed.copies(demand, {}) else []


def _areas(cluster: ClusterRoom, level: str, placed: frozenset[str]) -> list[ClusterRoom]:
    """The nodes among which the pods must be, once for each choice."""
    if not level:
        return [cluster]
    by_value: dict[str, list[RoomNode]] = {}
    for node in cluster.nodes:
        if level in node.labels:
            by_value.setdefault(node.labels[level], []).append(node)
    taken = {node.labels[level] for node in cluster.nodes if node.name in placed and level in node.labels}
    chosen = [nodes for value, nodes in by_value.items() if not taken or value in taken]
    return [replace(cluster, nodes=tuple(nodes)) for nodes in chosen]


def _left(area: ClusterRoom, demands: Mapping[PodDemand, int]) -> tuple[Room, int]:
    """The nodes, and how many of the pods found no room on them."""
    room = Room(area)
    room.occupy_slots()
    return room, sum(left_over(room, demands).values())
