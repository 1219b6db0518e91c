"""Node table: the nodes of a cluster with their GPUs, and the workloads whose pods sit on them. `engine top` shows it."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from msgspec import Struct

from engine.conditions import is_true
from engine.resource import Body
from resources.base import labels
from resources.base.fields import mapping
from resources.base.names import GPUS
from resources.placement.cluster_room import RoomNode
from resources.placement.pod_affinity import ENDED
from resources.placement.usage_totals import used_by

READY, NOT_READY, CORDONED, UNKNOWN = "ready", "not ready", "cordoned", "unknown"
THOUSANDTHS: Final = 1000


class Occupant(Struct, frozen=True, order=True):
    """Pods of one clique, in one replica of a set, on one node."""

    namespace: str
    workload: str
    """The name of the set."""
    replica: str
    """The index of the replica."""
    clique: str
    """The name of the PodClique without that of its set and replica."""
    pods: int
    gpus: int
    """The GPUs that they request together."""


class NodeRow(Struct, frozen=True):
    """One node."""

    name: str
    rack: str
    """The value of its label for racks; empty without one."""
    island: str
    """The island of the fabric that it is in, e.g. its NVLink clique; empty without one."""
    state: str
    """`ready`, `not ready` or `cordoned`; `unknown` if nodes could not be read."""
    gpus: int
    """The GPUs that pods can use."""
    used: int
    """The GPUs that its pods request, of other workloads too."""
    occupants: tuple[Occupant, ...]
    domain: str = ""
    """The domain whose pod it runs, of a fabric of which a node has one place: it takes no second one. Empty without one."""

    @property
    def free(self) -> int:
        """The GPUs that a new pod could have: none of a node that takes no pods."""
        return max(0, self.gpus - self.used) if self.state == READY else 0


class NodeTable(Struct, frozen=True):
    """The nodes of a cluster, sorted by rack, island and name."""

    rows: tuple[NodeRow, ...]
    noun: str
    """What an island is called, e.g. `NVLink clique`; empty where no fabric divides the nodes."""
    others: int = 0
    """How many nodes are left out: they have no GPUs and no pods of a set."""

    @property
    def racks(self) -> int:
        """The number of racks."""
        return len({row.rack for row in self.rows if row.rack})

    @property
    def islands(self) -> int:
        """The number of islands."""
        return len({row.island for row in self.rows if row.island})


class NodePods:
    """Adds up the pods on each node while they are read. It keeps no pod."""

    def __init__(self) -> None:
        self._used: Counter[str] = Counter()
        self._occupants: dict[str, dict[tuple[str, str, str, str], list[int]]] = {}

    def add(self, pod: Mapping[str, Any]) -> bool:
        """Count a pod. One without a node, or that has ended, uses nothing. Returns true: more may follow."""
        metadata, spec = mapping(pod.get("metadata")), mapping(pod.get("spec"))
        node = spec.get("nodeName")
        if not isinstance(node, str) or not node or mapping(pod.get("status")).get("phase") in ENDED:
            return True
        requests = used_by(spec)
        gpus = sum(requests.get(name, 0) for name in GPUS) // THOUSANDTHS
        self._used[node] += gpus
        if (place := place_of(metadata)) is not None:
            counted = self._occupants.setdefault(node, {}).setdefault(place, [0, 0])
            counted[0] += 1
            counted[1] += gpus
        return True

    def table(
        self,
        nodes: Iterable[RoomNode] | None,
        rack_label: str,
        island_label: str,
        noun: str,
        domains: Mapping[str, str] = MappingProxyType({}),
    ) -> NodeTable:
        """The nodes with these pods. `nodes`: None if they could not be read; then only those with pods of sets are known.

        `rack_label` and `island_label` are the labels of nodes that name where they are; empty if there is none. `domains`: node -> the
        domain whose pod it runs.
        """
        if nodes is None:
            occupied = ((name, self._of(name), domains.get(name, "")) for name in self._occupants)
            known = [NodeRow(name, "", "", UNKNOWN, 0, self._used[name], pods, domain) for name, pods, domain in occupied]
            return NodeTable(tuple(sorted(known, key=lambda row: row.name)), "")
        rows = [self._row(node, rack_label, island_label, domains.get(node.name, "")) for node in nodes]
        shown = [row for row in rows if row.gpus or row.occupants]
        return NodeTable(tuple(sorted(shown, key=_order)), noun, len(rows) - len(shown))

    def _row(self, node: RoomNode, rack_label: str, island_label: str, domain: str) -> NodeRow:
        gpus = sum(node.allocatable.get(name, 0) for name in GPUS) // THOUSANDTHS
        rack, island = str(node.labels.get(rack_label, "")), str(node.labels.get(island_label, ""))
        return NodeRow(node.name, rack, island, state_of(node.body), gpus, self._used[node.name], self._of(node.name), domain)

    def _of(self, node: str) -> tuple[Occupant, ...]:
        return tuple(sorted(Occupant(*place, *counts) for place, counts in self._occupants.get(node, {}).items()))


def _order(row: NodeRow) -> tuple[bool, str, bool, str, str]:
    """Nodes that are in no rack, or in no island, come last."""
    return not row.rack, row.rack, not row.island, row.island, row.name


def place_of(metadata: Mapping[str, Any]) -> tuple[str, str, str, str] | None:
    """Namespace, set, replica and clique of a pod; None if it belongs to no set."""
    of_pod = mapping(metadata.get("labels"))
    workload, clique = of_pod.get(labels.PART_OF), of_pod.get(labels.PODCLIQUE)
    if not (isinstance(workload, str) and isinstance(clique, str) and workload and clique):
        return None
    replica = str(of_pod.get(labels.REPLICA_INDEX, ""))
    return str(metadata.get("namespace", "")), workload, replica, clique.removeprefix(f"{workload}-{replica}-")


def state_of(node: Body) -> str:
    """Whether a node takes pods: `ready`, `not ready` or `cordoned`."""
    if mapping(node.get("spec")).get("unschedulable"):
        return CORDONED
    return READY if is_true(mapping(node.get("status")).get("conditions") or (), "Ready") else NOT_READY


def of_workloads(table: NodeTable, names: Sequence[str], namespace: str) -> NodeTable:
    """The nodes on which pods of these sets sit, of those in `namespace` alone unless that is empty; all nodes without names."""
    if not names and not namespace:
        return table

    def is_asked(occupant: Occupant) -> bool:
        return namespace in ("", occupant.namespace) and (not names or occupant.workload in names)

    rows = tuple(row for row in table.rows if any(map(is_asked, row.occupants)))
    return NodeTable(rows, table.noun, table.others + len(table.rows) - len(rows))
