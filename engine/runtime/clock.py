"""Clock: the only source of time. All other code is given a `Clock` or a time."""

import datetime
import time
from typing import Protocol

import anyio


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
