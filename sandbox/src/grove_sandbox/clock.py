"""VirtualClock: time that a test advances, or that jumps to the next sleeper when all tasks wait."""

import asyncio
import datetime
import heapq
import itertools
from collections.abc import Callable

import anyio
import anyio.lowlevel

EPOCH = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
SETTLING = 50
"""Turns of the event loop without a new sleeper after which all tasks are assumed to wait for the clock."""


class VirtualClock:
    """A `Clock` that a test advances. It is for one event loop; sleepers of the same instant wake in the order in which they called."""

    def __init__(self, start: datetime.datetime = EPOCH) -> None:
        self._start = start
        self._elapsed = 0.0
        self._order = itertools.count()
        self._sleepers: list[tuple[float, int, anyio.Event]] = []

    def now(self) -> datetime.datetime:
        """The wall clock, in UTC."""
        return self._start + datetime.timedelta(seconds=self._elapsed)

    def monotonic(self) -> float:
        """Seconds since the clock was created."""
        return self._elapsed

    async def sleep(self, seconds: float) -> None:
        """Wait until the clock has been advanced that far."""
        if seconds <= 0:
            await anyio.lowlevel.checkpoint()
            return
        woken = anyio.Event()
        entry = (self._elapsed + seconds, next(self._order), woken)
        heapq.heappush(self._sleepers, entry)
        try:
            await woken.wait()
        finally:
            if entry in self._sleepers:
                self._sleepers.remove(entry)
                heapq.heapify(self._sleepers)

    async def advance(self, seconds: float) -> None:
        """Advance by that many seconds. Each sleeper wakes at its own instant, and may sleep again before the next one wakes."""
        until = self._elapsed + seconds
        await self._settle()
        while self._sleepers and self._sleepers[0][0] <= until:
            await self._wake_next()
        self._elapsed = until
        await self._settle()

    async def run_until(self, done: Callable[[], bool], *, within: float = 3600.0) -> None:
        """Jump from sleeper to sleeper until `done()`. Raises `TimeoutError` after `within` virtual seconds, or when there is no sleeper
        and time changes nothing."""
        until = self._elapsed + within
        await self._settle()
        while not done():
            if not self._sleepers:
                raise TimeoutError("no task waits for the clock, and the condition does not hold")
            if self._sleepers[0][0] > until:
                raise TimeoutError(f"not within {within:g} virtual seconds")
            await self._wake_next()

    async def _wake_next(self) -> None:
        instant, _, woken = heapq.heappop(self._sleepers)
        self._elapsed = max(self._elapsed, instant)
        woken.set()
        await self._settle()

    async def _settle(self) -> None:
        """Run the event loop until no task is ready, or, for what is cancelled and waits is ready all the time, no new sleeper has come."""
        ready = getattr(asyncio.get_running_loop(), "_ready", True)
        await anyio.lowlevel.checkpoint()
        quiet, known = 0, len(self._sleepers)
        while ready and quiet < SETTLING:
            await anyio.lowlevel.checkpoint()
            quiet = quiet + 1 if len(self._sleepers) == known else 0
            known = len(self._sleepers)
