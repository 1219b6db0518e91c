"""Thread: runs servers in one thread with an event loop of its own, so that a long computation elsewhere delays no request for long."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import anyio
from anyio import CapacityLimiter, to_thread

Started = Callable[[], None]
"""Called by the work, once, when it serves."""

Work = Callable[[Started, anyio.Event], Awaitable[None]]
"""What runs in the thread: it calls `started`, and returns soon after the event is set. The event belongs to the thread's own loop."""


class Stopped(RuntimeError):
    """The work ended although `stop` was not called."""


@asynccontextmanager
async def in_thread(work: Work) -> AsyncGenerator[None]:
    """Run the work in a thread while the block runs, which begins once the work has started. At the end it is stopped and awaited.

    An error of the work, also `Stopped`, is raised in an exception group: in place of the block, or after cancelling it.
    """
    thread = _Thread(work)
    async with anyio.create_task_group() as tasks:
        try:
            tasks.start_soon(thread.run)
            await thread.started.wait()
            yield
        finally:
            thread.stop()


class _Thread:
    """The thread, seen from the loop that has started it."""

    def __init__(self, work: Work) -> None:
        self.started = anyio.Event()
        self._work = work
        self._loop: asyncio.AbstractEventLoop | None = None
        """The thread's own loop, while it runs."""
        self._end: anyio.Event | None = None
        self._is_stopping = False

    async def run(self) -> None:
        """Run the thread to its end. Raises what its work raises."""
        loop = asyncio.get_running_loop()

        def started() -> None:
            loop.call_soon_threadsafe(self.started.set)

        # Not cancelled from outside: `stop` ends it, and a caller that waits for this task waits for the end.
        await to_thread.run_sync(anyio.run, self._main, started, limiter=CapacityLimiter(1))
        if not self._is_stopping:
            raise Stopped("the servers have ended unexpectedly")

    async def _main(self, started: Started) -> None:
        """The body of the thread."""
        self._end = anyio.Event()
        self._loop = asyncio.get_running_loop()
        try:
            if not self._is_stopping:
                await self._work(started, self._end)
        finally:
            self._loop = None

    def stop(self) -> None:
        """Let the work end."""
        self._is_stopping = True
        loop, end = self._loop, self._end
        if loop is not None and end is not None:
            with suppress(RuntimeError):  # The loop has just ended by itself.
                loop.call_soon_threadsafe(end.set)
