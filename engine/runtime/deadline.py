"""Deadline: a block of code that ends at a given time."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

import anyio

from engine.errors import TimedOut
from engine.runtime.clock import Clock

T = TypeVar("T")


@asynccontextmanager
async def cancelled_at(clock: Clock, at: float) -> AsyncIterator[anyio.CancelScope]:
    """Cancel the block when the monotonic clock reaches `at`. Yields its scope, of which `cancelled_caught` says afterwards whether it was.

    What the block shields from cancellation, such as a write that was sent, ends first.
    """
    scope, failure = anyio.CancelScope(), None

    async def expire() -> None:
        while (left := at - clock.monotonic()) > 0:
            await clock.sleep(left)
        scope.cancel()

    if at <= clock.monotonic():
        scope.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(expire)
        try:
            with scope:
                yield scope
        except Exception as error:
            failure = error  # Raised outside the task group, which would wrap it.
        tasks.cancel_scope.cancel()
    if failure:
        raise failure


async def in_time(clock: Clock, at: float, work: Callable[[], Awaitable[T]], purpose: str) -> T:
    """The result of the work. Raises `TimedOut`, which names the purpose of the work, when the monotonic clock reaches `at` before."""
    async with cancelled_at(clock, at):
        return await work()
    raise TimedOut(f"the time was over before {purpose}; nothing was written")
