"""RecordedObjects: what passes have observed, in front of a provider that is asked for every other object."""

from collections.abc import Collection, Mapping
from typing import Any

from msgspec import Struct

from engine.errors import Forbidden
from engine.event import Event
from engine.ids import Kind, ResourceId
from engine.observed import Live
from engine.operation import Operation
from engine.runtime.provider import Observation, Provider, Scope, TakenNames
from providers.snapshot import Snapshot


class RecordedObjects(Struct, frozen=True):
    """The objects of a record, and those of another provider that it says nothing about. Read-only."""

    contents: Snapshot
    beneath: Provider
    replaced: frozenset[ResourceId]
    """The objects of the other provider in whose place the record is."""

    @property
    def recorded_at(self) -> str:
        """Empty: the record is of no cluster that there is, so an object that it does not contain may exist all the same."""
        return ""

    async def observe(self, scope: Scope) -> Observation:
        """What the record contains."""
        return await self.contents.observe(scope)

    async def get(self, id: ResourceId) -> Live | None:
        """The object, from the record or from beneath; None if neither has it."""
        recorded = await self.contents.get(id)
        return recorded if recorded is not None or id in self.replaced else await self.beneath.get(id)

    async def taken(self, ids: Collection[ResourceId]) -> TakenNames:
        """Which of the objects exist, in the record or beneath."""
        recorded = await self.contents.taken(ids)
        beneath = await self.beneath.taken(set(ids) - self.replaced - recorded.ids)
        return TakenNames(recorded.ids | beneath.ids, beneath.unread)

    async def serves(self, kind: Kind) -> bool:
        """Whether the other provider serves the kind."""
        return await self.beneath.serves(kind)

    async def execute(self, operation: Operation, uids: Mapping[ResourceId, str]) -> Mapping[str, Any] | None:
        """Raise `Forbidden`; nothing is sent."""
        raise Forbidden(f"this provider is read-only ({operation.key})")

    async def record(self, event: Event) -> None:
        """Drop the event."""
