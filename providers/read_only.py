"""ReadOnlyProvider: reads through another provider and refuses every write. Previews, reports and snapshots use it."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

from msgspec import Struct

from engine.errors import Forbidden, NotFound
from engine.event import Event
from engine.ids import Kind, ResourceId
from engine.observed import Live
from engine.operation import Operation
from engine.runtime.provider import DescribingProvider, Observation, Provider, ScanningProvider, Scope, TakenNames, TryingProvider


class ReadOnlyProvider(Struct, frozen=True):
    """Another provider without its writes."""

    provider: Provider

    async def observe(self, scope: Scope) -> Observation:
        """What the other provider lists."""
        return await self.provider.observe(scope)

    async def get(self, id: ResourceId) -> Live | None:
        """The object, read by the other provider; None if it does not exist."""
        return await self.provider.get(id)

    def trying(self) -> Provider | None:
        """What the other provider tries writes with: that stores nothing either. None if it cannot."""
        return self.provider.trying() if isinstance(self.provider, TryingProvider) else None

    async def openapi(self, version: str) -> Mapping[str, Any]:
        """What the server of the other provider publishes; empty if there is none."""
        return await self.provider.openapi(version) if isinstance(self.provider, DescribingProvider) else {}

    async def scan(self, kind: Kind, visit: Callable[[Mapping[str, Any]], bool], *, fields: str = "") -> None:
        """Call `visit` with each object of the kind. Raises `NotFound` if the other provider does not have them."""
        if not isinstance(self.provider, ScanningProvider):
            raise NotFound(f"there are no {kind.plural} in what is read")
        await self.provider.scan(kind, visit, fields=fields)

    async def taken(self, ids: Collection[ResourceId]) -> TakenNames:
        """Which of the objects exist, as the other provider finds out."""
        return await self.provider.taken(ids)

    async def serves(self, kind: Kind) -> bool:
        """Whether the cluster of the other provider serves that kind."""
        return await self.provider.serves(kind)

    async def execute(self, operation: Operation, uids: Mapping[ResourceId, str]) -> Mapping[str, Any] | None:
        """Raise `Forbidden`; nothing is sent."""
        raise Forbidden(f"this provider is read-only ({operation.key})")

    async def record(self, event: Event) -> None:
        """Drop the event: recording it would be a write."""
