"""RoomModel: what a forecast asks of the room on nodes. It is implemented only where a forecast knows the nodes."""

from collections.abc import Iterable, Mapping
from typing import Protocol

from engine.ids import ResourceId
from engine.observed import Live

Slots = Mapping[str, int]
"""Kind of domains -> the places in them that a pod takes."""


class RoomModel(Protocol):
    """The nodes in one forecast, with the pods that have a node, and those that wait for one."""

    @property
    def slot_kinds(self) -> frozenset[str]:
        """The kinds of domains of which it is known which nodes have a place."""
        ...

    def begin(self, pods: Iterable[tuple[Live, Slots]]) -> None:
        """Take note of the pods as they are."""
        ...

    def note_refused(self, pods: Iterable[tuple[Live, ResourceId, Slots]]) -> None:
        """Take note of pods, with their roots, that the scheduler says it cannot place."""
        ...

    def is_explained(self, uid: str) -> bool:
        """Whether the scheduler refuses this pod for want of room."""
        ...

    def ask(self, live: Live, root: ResourceId, slots: Slots) -> bool:
        """A pod may have a node if there is room. Returns false if nothing can be said about it."""
        ...

    def remove(self, uids: Iterable[str]) -> None:
        """These objects are gone."""
        ...

    def admitted(self) -> list[ResourceId]:
        """The waiting pods that have a node from now on."""
        ...
