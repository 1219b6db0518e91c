"""Clock: the only source of time, and of time-outs. All other code is given a `Clock` or a time."""

import datetime
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Protocol, TypeVar

import anyio
import anyio.lowlevel

from engine.errors import TimedOut


class Clock(Protocol):
    """Wall clock, monotonic clock and sleep. Tests and the sandbox use a virtual one."""

    def now(self) -> datetime.datetime:
        """The wall clock, in UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds that never run backwards, for measuring durations."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait that many seconds of this clock."""
        ...


class StandingClock:
    """A clock that always shows the same time: equal inputs give equal outputs."""

    def __init__(self, now: datetime.datetime) -> None:
        self._now = now

    def now(self) -> datetime.datetime:
        """The time that it was made with."""
        return self._now

    def monotonic(self) -> float:
        """Always 0."""
        return 0.0

    async def sleep(self, seconds: float) -> None:
        """Let other tasks run."""
        await anyio.lowlevel.checkpoint()


class SystemClock:
    """The clock of the machine."""

    def now(self) -> datetime.datetime:
        """The wall clock, in UTC."""
        return datetime.datetime.now(datetime.UTC)

    def monotonic(self) -> float:
        """Seconds that never run backwards."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait that many seconds."""
        await anyio.sleep(seconds)


T = TypeVar("T")


@asynccontextmanager
async def calling_when(happens: Callable[[], Awaitable[object]], act: Callable[[], None]) -> AsyncIterator[None]:
    """Call `act` if `happens` returns while the block runs. Errors of the block are raised as they are."""
    failure: Exception | None = None

    async def wait() -> None:
        await happens()
        act()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        try:
            yield
        except Exception as error:
            failure = error  # Raised outside the task group, which would wrap it.
        tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure


@asynccontextmanager
async def cancelled_at(clock: Clock, at: float) -> AsyncIterator[anyio.CancelScope]:
    """Cancel the block when the monotonic clock reaches `at`. Yields its scope, of which `cancelled_caught` says afterwards whether it was.

    What the block shields from cancellation, such as a write that was sent, ends first.
    """
    scope = anyio.CancelScope()

    async def expire() -> None:
        while (left := at - clock.monotonic()) > 0:
            await clock.sleep(left)

    if at <= clock.monotonic():
        scope.cancel()
    async with calling_when(expire, scope.cancel):
        with scope:
            yield scope


async def in_time(clock: Clock, at: float, work: Callable[[], Awaitable[T]], purpose: str) -> T:
    """The result of the work. Raises `TimedOut`, which names the purpose of the work, when the monotonic clock reaches `at` before."""
    async with cancelled_at(clock, at):
        return await work()
    raise TimedOut(f"the time was over before {purpose}; nothing was written")
