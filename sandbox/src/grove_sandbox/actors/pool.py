"""Pool: the nodes, what is reserved of each, and the node where the next pod fits."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from grove_sandbox.actors.body import labels_of
from grove_sandbox.product import HOST_PORT, PODS, Amounts, NodeFilter, PodAffinity, PodRequirements, allocatable, mismatch, short_of

DEVICES: Final = "device class "
"""Devices are counted as a resource of this name followed by that of their class."""

NO_AFFINITIES: Final[Mapping[str, PodAffinity]] = {}
ANYWHERE: Final[Mapping[str, str]] = {}


class Shortage(Struct, frozen=True):
    """The first pod of several that fits no node: how many were placed before it, and how many nodes lack what."""

    placed: int
    nodes: int
    reasons: Mapping[str, int]

    def __str__(self) -> str:
        """In kube-scheduler's words."""
        reasons = ", ".join(sorted(f"{count} {reason}" for reason, count in self.reasons.items()))
        return f"0/{self.nodes} nodes are available: {reasons}." if reasons else "no nodes are available."


class Pool:
    """Free resources by node. Reservations are of pods, and of claims, by their uid."""

    def __init__(self) -> None:
        self._nodes: dict[str, Mapping[str, Any]] = {}
        self._names: list[str] = []
        self._capacity: dict[str, Amounts] = {}
        self._devices_of: Callable[[str], Mapping[str, int]] = lambda node: {}
        self._used: dict[str, Counter[str]] = {}
        self._reserved: dict[str, tuple[str, Mapping[str, int]]] = {}
        # Nodes before this index have no room for pods of that shape: usage only grows until something is released.
        self._first: dict[tuple[object, ...], int] = {}

    def set_node(self, name: str, node: Mapping[str, Any] | None) -> None:
        """Add, update or (None) remove a node. Reservations on it stay."""
        if node is None:
            self._nodes.pop(name, None)
        else:
            self._nodes[name] = node
            self._capacity[name] = self._capacity_of(name)
        self._names = sorted(self._nodes)
        self._first.clear()

    def set_devices(self, devices_of: Callable[[str], Mapping[str, int]]) -> None:
        """Set how many devices of each class the nodes have."""
        self._devices_of = devices_of
        self._capacity = {name: self._capacity_of(name) for name in self._nodes}
        self._first.clear()

    def _capacity_of(self, name: str) -> Amounts:
        devices = {DEVICES + device_class: 1000 * count for device_class, count in self._devices_of(name).items()}
        return allocatable(self._nodes[name]) | devices

    def node_of(self, uid: str) -> str:
        """The node on which that uid has a reservation; empty: none."""
        return self._reserved[uid][0] if uid in self._reserved else ""

    def labels_of(self, node: str) -> Mapping[str, str]:
        """The labels of a node; none for a node that does not exist."""
        return labels_of(self._nodes[node]) if node in self._nodes else {}

    def names(self) -> Sequence[str]:
        """The names of all nodes, in order."""
        return self._names

    def values_of(self, label: str, within: Mapping[str, str] = ANYWHERE) -> list[str]:
        """The values that a label has on the nodes with these labels, in order."""
        return sorted({value for name in self._with(within) if (value := self.labels_of(name).get(label))})

    def _with(self, labels: Mapping[str, str]) -> Sequence[str]:
        """The names of the nodes with these labels, in order."""
        return [name for name in self._names if labels.items() <= self.labels_of(name).items()] if labels else self._names

    def reserve(self, uid: str, node: str, requests: Mapping[str, int]) -> None:
        """Reserve this much of a node for that uid, instead of what it had."""
        self.release(uid)
        self._reserved[uid] = node, requests
        self._used.setdefault(node, Counter()).update(requests)

    def release(self, uid: str) -> bool:
        """Release the reservation of that uid. Returns whether it had one."""
        if uid not in self._reserved:
            return False
        node, requests = self._reserved.pop(uid)
        self._used[node].subtract(requests)
        self._first.clear()
        return True

    def place(
        self,
        pods: Sequence[tuple[str, PodRequirements]],
        affinities: Mapping[str, PodAffinity] = NO_AFFINITIES,
        within: Mapping[str, str] = ANYWHERE,
    ) -> dict[str, str] | Shortage:
        """Reserve a node with the labels `within` for each of these pods (given by uid), or for none. Returns the nodes by uid."""
        names = self._with(within)
        nodes: dict[str, str] = {}
        for uid, requirements in pods:
            near = affinities[uid].among(self, requirements) if uid in affinities else None
            node = self._find(requirements, names, (requirements.shape, *within.items()), near)
            if node is None:
                reasons = Counter(reason for name in names for reason in self._reasons_against(name, requirements, near))
                for placed in nodes:
                    self.release(placed)
                return Shortage(len(nodes), len(names), reasons)
            self.reserve(uid, node, requirements.requests)
            nodes[uid] = node
        return nodes

    def _find(self, pod: PodRequirements, names: Sequence[str], shape: tuple[object, ...], near: NodeFilter | None = None) -> str | None:
        """The first of these nodes where the pod fits: nodes fill up one by one, so that empty ones stay free for large pods.

        Of the nodes that its affinity allows, those that it prefers come first. Pods of equal `shape` have the same choice.
        """
        if near is not None:
            names = sorted(names, key=lambda name: -near.score(self.labels_of(name)))
            return next((name for name in names if not list(self._reasons_against(name, pod, near))), None)
        if pod.node or pod.same_node_as:
            return next((name for name in names if not list(self._reasons_against(name, pod))), None)
        for index in range(self._first.get(shape, 0), len(names)):
            name = names[index]
            if not self._short_of(name, pod) and not mismatch(pod, self._nodes[name]):
                self._first[shape] = index
                return name
        self._first[shape] = len(names)
        return None

    def _short_of(self, node: str, pod: PodRequirements) -> list[str]:
        return short_of(pod.requests, self._capacity[node], self._used.get(node, Counter[str]()))

    def _reasons_against(self, node: str, pod: PodRequirements, near: NodeFilter | None = None) -> Iterable[str]:
        if {pod.node, self.node_of(pod.same_node_as)} - {"", node}:
            return ["resourceclaim not available on the node"]
        if reason := mismatch(pod, self._nodes[node]):
            return [reason]
        if near is not None and (refusal := near.refusal(self.labels_of(node))):
            return [refusal]
        lacking = self._short_of(node, pod)
        # kube-scheduler looks for devices only on a node that has everything else.
        resources = [_insufficient(resource) for resource in lacking if not resource.startswith(DEVICES)]
        return resources or ["cannot allocate all claims"] * bool(lacking)


def _insufficient(resource: str) -> str:
    if resource.startswith(HOST_PORT):
        return "node(s) didn't have free ports for the requested pod ports"
    return "Too many pods" if resource == PODS else f"Insufficient {resource}"
