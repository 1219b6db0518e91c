"""RoomFacts: what is known about the room on the nodes of a cluster, for a forecast."""

from typing import Final

from msgspec import Struct

from engine.forecast.cluster_model import Assumption
from resources.placement.cluster_room import ClusterRoom


class RoomFacts(Struct, frozen=True, eq=False):
    """The nodes with what runs on them, or why they are not known."""

    cluster: ClusterRoom | None = None
    """None: not known, or not asked for."""
    capacity: Assumption = Assumption.CAPACITY
    """What is assumed of new pods if the nodes are not known."""
    unchecked: str = ""
    """Why the nodes are not known, as a clause; empty if nothing needs them, or if there is no cluster."""


NO_ROOM: Final = RoomFacts()
NEW_NODES: Final = RoomFacts(capacity=Assumption.NEW_NODES)
"""Whatever room there is, nodes are added for pods that need them."""
