"""A stage: an orchard, a clock that is turned by hand, and somebody who ripens leaves."""

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, cast

import anyio

from engine.runtime.client import Client
from engine.runtime.lease import Lease
from engine.runtime.passes import Engine
from engine.runtime.session import Report, sync
from providers.sandbox.clock import VirtualClock
from tests.engine.runtime.fakes import SCOPE, Shelf
from tests.engine.runtime.leases import Leases
from tests.engine.runtime.orchard import Orchard, ripen


class Stage:
    """A shelf, a clock, and somebody who ripens leaves."""

    def __init__(self, *bodies: dict[str, Any]) -> None:
        self.shelf = Shelf(*bodies)
        self.clock = VirtualClock()
        self.leases = Leases()
        self.engine = Engine(self.shelf, self.clock, SCOPE, (Orchard(),), None)
        self.lease = Lease(cast(Client, self.leases), self.clock, "default", "engine", "us")
        self.reports: list[Report] = []
        self.ripening: Callable[[], Coroutine[Any, Any, None]] = lambda: ripen(self.shelf, self.clock)

    async def sync(self, **options: Any) -> Report:
        """Run a session to its end, as fast as the clock can be turned."""
        return await self.play(lambda: sync(self.engine, self.lease, **options))

    async def play(self, session: Callable[[], Awaitable[Report]]) -> Report:
        """Run this session to its end."""
        reports: list[Report] = []

        async def note() -> None:
            reports.append(await session())

        async with anyio.create_task_group() as group:
            group.start_soon(self.ripening)
            group.start_soon(note)
            await self.clock.run_until(lambda: bool(reports))
            group.cancel_scope.cancel()
        return reports[0]

    async def never(self) -> None:
        """Nothing ripens."""
