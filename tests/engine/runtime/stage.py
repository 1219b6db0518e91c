"""A stage: a fake provider, a virtual clock, a lease and an engine with the toy blueprint."""

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, cast

import anyio

from engine.runtime.lease import Lease
from engine.runtime.passes import Engine
from engine.runtime.provider import Client
from engine.runtime.session import sync
from engine.runtime.sync_report import SyncReport
from grove_sandbox.clock import VirtualClock
from tests.builders import applying
from tests.engine.runtime.fakes import SCOPE, FakeProvider
from tests.engine.runtime.leases import Leases
from tests.engine.runtime.toy import Toy, make_ready


class Stage:
    """Everything that a session or a loop needs, and a background task that makes leaves ready."""

    def __init__(self, *bodies: dict[str, Any]) -> None:
        self.provider = FakeProvider(*bodies)
        self.clock = VirtualClock()
        self.leases = Leases()
        self.engine: Engine[int | None] = Engine(self.provider, self.clock, SCOPE, (Toy(),), None)
        self.lease = Lease(cast(Client, self.leases), self.clock, "default", "engine", "us")
        self.background: Callable[[], Coroutine[Any, Any, None]] = lambda: make_ready(self.provider, self.clock)

    async def sync(self, **options: Any) -> SyncReport[object]:
        """Run a session to its end in virtual time."""
        intent = applying(options.pop("manifests", ()))
        return await self.play(lambda: sync(self.engine, self.lease, intent, **options))

    async def play(self, session: Callable[[], Awaitable[SyncReport[object]]]) -> SyncReport[object]:
        """Run this session to its end in virtual time, beside the background task."""
        reports: list[SyncReport[object]] = []

        async def run() -> None:
            reports.append(await session())

        async with anyio.create_task_group() as group:
            group.start_soon(self.background)
            group.start_soon(run)
            await self.clock.run_until(lambda: bool(reports))
            group.cancel_scope.cancel()
        return reports[0]

    async def never(self) -> None:
        """A background task in which no leaf becomes ready."""
