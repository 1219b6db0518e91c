"""Pool: the nodes, what is taken of each, and where the next pod fits; kept up to date one placement at a time."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from providers.sandbox.actors.amounts import PODS, Amounts, offered
from providers.sandbox.actors.ask import Ask, refusal

DEVICES: Final = "device class "
"""Devices count as a resource of this name and that of their class."""


@dataclass(frozen=True, slots=True)
class Shortage:
    """The first pod of several that found no node: how many found one before it, and what each node lacks."""

    placed: int
    nodes: int
    lacks: Mapping[str, int]

    def __str__(self) -> str:
        """As kube-scheduler says it."""
        lacks = ", ".join(sorted(f"{count} {what}" for what, count in self.lacks.items()))
        return f"0/{self.nodes} nodes are available: {lacks}." if lacks else "no nodes are available."


class Pool:
    """Free resources by node. A placement stands from the moment it is decided; `remove` undoes it."""

    def __init__(self) -> None:
        self._nodes: dict[str, Mapping[str, Any]] = {}
        self._order: list[str] = []
        self._offered: dict[str, Amounts] = {}
        self._devices: Callable[[str], Mapping[str, int]] = lambda node: {}
        self._used: dict[str, Counter[str]] = {}
        self._placed: dict[str, tuple[str, Mapping[str, int]]] = {}
        # Nodes before this index have no room for pods of that shape: what is taken only grows until something is given back.
        self._first: dict[str, int] = {}

    def set_node(self, name: str, node: Mapping[str, Any] | None) -> None:
        """The node is like this now, or gone. What runs on it stays counted."""
        if node is None:
            self._nodes.pop(name, None)
        else:
            self._nodes[name] = node
            self._offered[name] = self._offer(name)
        self._order = sorted(self._nodes)
        self._first.clear()

    def offer_devices(self, devices: Callable[[str], Mapping[str, int]]) -> None:
        """The nodes have these devices now: how many of each class."""
        self._devices = devices
        self._offered = {name: self._offer(name) for name in self._nodes}
        self._first.clear()

    def _offer(self, name: str) -> Amounts:
        devices = {DEVICES + device_class: 1000 * count for device_class, count in self._devices(name).items()}
        return offered(self._nodes[name]) | devices

    def where(self, pod: str) -> str:
        """The node on which the pod of that uid has its place; empty: none yet."""
        return self._placed[pod][0] if pod in self._placed else ""

    def put(self, pod: str, node: str, requests: Mapping[str, int]) -> None:
        """The pod of that uid takes this much of that node."""
        self.remove(pod)
        self._placed[pod] = node, requests
        self._used.setdefault(node, Counter()).update(requests)

    def remove(self, pod: str) -> bool:
        """The pod takes nothing any more. Whether it did."""
        if pod not in self._placed:
            return False
        node, requests = self._placed.pop(pod)
        self._used[node].subtract(requests)
        self._first.clear()
        return True

    def place(self, asks: Sequence[tuple[str, Ask]]) -> dict[str, str] | Shortage:
        """A node for each of these pods (uid, need), or for none of them."""
        places: dict[str, str] = {}
        for pod, ask in asks:
            node = self._find(ask)
            if node is None:
                lacks = self._lacks(ask)
                for placed in places:
                    self.remove(placed)
                return Shortage(len(places), len(self._order), lacks)
            self.put(pod, node, ask.requests)
            places[pod] = node
        return places

    def _find(self, ask: Ask) -> str | None:
        """The first node, by name, where the pod fits: nodes fill up one after the other, and whole ones stay free for the greedy."""
        if ask.node or ask.beside:
            return next((name for name in self._order if not list(self._lacking(name, ask))), None)
        for index in range(self._first.get(ask.shape, 0), len(self._order)):
            name = self._order[index]
            if not self._short(name, ask) and not refusal(ask, self._nodes[name]):
                self._first[ask.shape] = index
                return name
        self._first[ask.shape] = len(self._order)
        return None

    def _short(self, node: str, ask: Ask) -> list[str]:
        there, used = self._offered[node], self._used.get(node, Counter[str]())
        return [resource for resource, amount in ask.requests.items() if amount > there.get(resource, 0) - used[resource]]

    def _lacks(self, ask: Ask) -> Counter[str]:
        return Counter(lack for name in self._order for lack in self._lacking(name, ask))

    def _lacking(self, node: str, ask: Ask) -> Iterable[str]:
        if {ask.node, self.where(ask.beside)} - {"", node}:
            return ["resourceclaim not available on the node"]
        against = refusal(ask, self._nodes[node])
        if against:
            return [against]
        short = self._short(node, ask)
        # Devices are looked for last, and on a node that has everything else.
        usual = [_too(resource) for resource in short if not resource.startswith(DEVICES)]
        return usual or ["cannot allocate all claims"] * bool(short)


def _too(resource: str) -> str:
    return "Too many pods" if resource == PODS else f"Insufficient {resource}"
