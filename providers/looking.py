"""ReadOnlyProvider: a provider that only looks. What previews, reports and snapshots are handed, so that they could not write if they tried."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.errors import Forbidden
from engine.event import Event
from engine.ids import Kind, ResourceId
from engine.observed import Live
from engine.operation import Operation
from engine.runtime.provider import Observation, Provider, Scope


@dataclass(frozen=True, slots=True)
class ReadOnlyProvider:
    """Another provider's eyes, without its hands."""

    provider: Provider

    async def observe(self, scope: Scope) -> Observation:
        """What the other sees."""
        return await self.provider.observe(scope)

    async def look(self, id: ResourceId) -> Live | None:
        """What the other sees of that one object."""
        return await self.provider.look(id)

    async def serves(self, kind: Kind) -> bool:
        """Whether the other's cluster serves that kind."""
        return await self.provider.serves(kind)

    async def execute(self, operation: Operation, uids: Mapping[ResourceId, str]) -> Mapping[str, Any] | None:
        """Refuse, before anything is sent: raises `Forbidden`."""
        raise Forbidden(f"nothing is written here ({operation.key})")

    async def record(self, event: Event) -> None:
        """Tell nobody: an event is a write as well."""
