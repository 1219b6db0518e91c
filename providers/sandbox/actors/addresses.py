"""Addresses: the IPs of simulated nodes and pods, no two pods at once with the same."""

from ipaddress import IPv4Address, IPv4Network
from typing import Final

NODES: Final = IPv4Network("172.16.0.0/12")
PODS: Final = IPv4Network("10.64.0.0/10")


def node_address(number: int) -> str:
    """The address of the node of that number."""
    return str(NODES[number % (NODES.num_addresses - 2) + 1])


class Addresses:
    """Who has which address of a network. What pods have already is told by `hold`; so a restart loses nothing."""

    def __init__(self, network: IPv4Network = PODS) -> None:
        self._network = network
        self._by_holder: dict[str, str] = {}
        self._taken: set[str] = set()
        self._next = 1

    def hold(self, holder: str, address: str) -> None:
        """This holder has this address."""
        self.drop(holder)
        self._by_holder[holder] = address
        self._taken.add(address)

    def drop(self, holder: str) -> None:
        """The holder is gone."""
        self._taken.discard(self._by_holder.pop(holder, ""))

    def of(self, holder: str) -> str:
        """The address of the holder: the one it has, or the next free one."""
        if holder not in self._by_holder:
            self.hold(holder, self._free())
        return self._by_holder[holder]

    def _free(self) -> str:
        while True:
            address = str(IPv4Address(int(self._network.network_address) + self._next))
            self._next = self._next % (self._network.num_addresses - 2) + 1
            if address not in self._taken:
                return address
