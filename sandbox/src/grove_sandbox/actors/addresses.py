"""Addresses: the IPs of simulated nodes and pods; no two pods have the same at a time."""

from ipaddress import IPv4Address, IPv4Network
from typing import Final

NODES: Final = IPv4Network("172.16.0.0/12")
PODS: Final = IPv4Network("10.64.0.0/10")


def node_address(number: int) -> str:
    """The address of the node of that number."""
    return str(NODES[number % (NODES.num_addresses - 2) + 1])


class Addresses:
    """The addresses of a network by owner. After a restart, `assign` those that pods have before any is asked for."""

    def __init__(self, network: IPv4Network = PODS) -> None:
        self._network = network
        self._by_owner: dict[str, str] = {}
        self._taken: set[str] = set()
        self._next = 1

    def assign(self, owner: str, address: str) -> None:
        """Record that the owner has this address."""
        self.release(owner)
        self._by_owner[owner] = address
        self._taken.add(address)

    def release(self, owner: str) -> None:
        """Make the owner's address free again."""
        self._taken.discard(self._by_owner.pop(owner, ""))

    def of(self, owner: str) -> str:
        """The address of the owner, the next free one if it has none yet."""
        if owner not in self._by_owner:
            self.assign(owner, self._free())
        return self._by_owner[owner]

    def _free(self) -> str:
        while True:
            address = str(IPv4Address(int(self._network.network_address) + self._next))
            self._next = self._next % (self._network.num_addresses - 2) + 1
            if address not in self._taken:
                return address
