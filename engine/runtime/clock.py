"""Clock: the only source of time. All other code is given a `Clock` or a time."""

import datetime
import time
from typing import Protocol

import anyio
import anyio.lowlevel


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
