"""RenewalThread: renews the Leases of a process in a thread with an event loop and a connection of its own, which no computation delays."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any, TypeVar

import anyio
from anyio.abc import TaskGroup
from anyio.from_thread import BlockingPortal, start_blocking_portal

from engine.runtime.provider import Client
from engine.runtime.renewal import Renewed

T = TypeVar("T")

Connect = Callable[[], AbstractAsyncContextManager[Client]]
"""Makes a connection, in the thread that uses it."""


@asynccontextmanager
async def renewal_thread(connect: Connect, on_stall: Callable[[str], None]) -> AsyncGenerator["RenewalThread"]:
    """A thread that lives while the block runs. It connects when the first Lease is renewed.

    `on_stall` ends the process: called in the thread when work hangs, after its Lease was released.
    """
    with start_blocking_portal() as portal:
        thread = RenewalThread(portal, connect, on_stall)
        try:
            yield thread
        finally:
            with anyio.CancelScope(shield=True):
                await thread.call(thread.disconnect)


class RenewalThread:
    """A `Renewal`."""

    def __init__(self, portal: BlockingPortal, connect: Connect, on_stall: Callable[[str], None]) -> None:
        self._portal, self._connect, self._on_stall = portal, connect, on_stall
        self._connection = AsyncExitStack()
        self._connecting: anyio.Lock | None = None
        self._client: Client | None = None

    async def call(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do work in the thread, and return its result."""
        return await asyncio.wrap_future(self._portal.start_task_soon(work))

    async def _connected(self) -> Client:
        """The connection of the thread. Raises `EngineError` if there is none."""
        self._connecting = self._connecting or anyio.Lock()
        async with self._connecting:
            if self._client is None:
                self._client = await self._connection.enter_async_context(self._connect())
            return self._client

    async def disconnect(self) -> None:
        """Close the connection. To be called in the thread."""
        self._client = None
        await self._connection.aclose()

    @asynccontextmanager
    async def renewing(self, leadership: Renewed) -> AsyncGenerator[None]:
        """Renew the Lease while the block runs. Raises `EngineError` before it if there is no connection."""
        loop = asyncio.get_running_loop()
        place = _RenewalPlace(leadership, await self.call(self._connected), loop, self._on_stall)
        leadership.renew_from(place)
        renewed = self._portal.start_task_soon(place.renew)
        renewed.add_done_callback(place.note_end)
        try:
            yield
        finally:
            self._portal.start_task_soon(place.end)
            with anyio.CancelScope(shield=True):
                await asyncio.wrap_future(renewed)
            leadership.renew_from(None)


class _RenewalPlace:
    """The thread, for the renewal of one Lease."""

    def __init__(self, leadership: Renewed, client: Client, loop: asyncio.AbstractEventLoop, on_stall: Callable[[str], None]) -> None:
        self.client = client
        self.stalled = on_stall
        self._leadership = leadership
        self._loop = loop
        """The event loop of the work."""
        self._turns = 0
        self._tasks: TaskGroup | None = None

    async def renew(self) -> None:
        """Renew the Lease until `end`, or until it is lost."""
        async with anyio.create_task_group() as self._tasks:
            self._tasks.start_soon(self._leadership.keep_renewing)
            self._tasks.start_soon(self._leadership.enforce_deadline)

    def end(self) -> None:
        """Let `renew` end. To be called in the thread, after `renew`."""
        if self._tasks is not None:
            self._tasks.cancel_scope.cancel()

    def note_end(self, renewed: "Future[Any]") -> None:
        """Cancel the work if an error ended the renewal; that is raised when the work has ended."""
        if not renewed.cancelled() and renewed.exception() is not None:
            self.cancel_work()

    def cancel_work(self) -> None:
        """Let the work be cancelled in its own event loop."""
        self._loop.call_soon_threadsafe(self._leadership.cancel_work)

    def turns(self) -> int:
        """How often the event loop of the work has made a turn after one of these calls."""
        self._loop.call_soon_threadsafe(self._note_turn)
        return self._turns

    def _note_turn(self) -> None:
        self._turns += 1
