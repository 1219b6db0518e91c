"""The only door to time: everybody else is handed a `Clock`."""

import datetime
import time
from typing import Protocol

import anyio


class Clock(Protocol):
    """What the shell knows of time. Tests and the sandbox bring one that is turned by hand."""

    def now(self) -> datetime.datetime:
        """The wall clock, in UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds that never run backwards, for measuring spans."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait that many seconds of this clock."""
        ...


class SystemClock:
    """The machine's own clock."""

    def now(self) -> datetime.datetime:
        """The wall clock, in UTC."""
        return datetime.datetime.now(datetime.UTC)

    def monotonic(self) -> float:
        """Seconds that never run backwards."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait that many seconds."""
        await anyio.sleep(seconds)
