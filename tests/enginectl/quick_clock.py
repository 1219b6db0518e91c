"""QuickClock: a clock that runs faster than the machine's, so that commands and sandbox clusters in this process wait for less time."""

from datetime import UTC, datetime, timedelta
from time import monotonic

import anyio

SPEED = 5
"""Seconds of this clock in one of the machine."""


class QuickClock:
    """A `Clock`, `SPEED` times as fast as the machine's, with the time of the machine at the last restart."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Show the time of the machine. Tests do so first: the certificates and files that they make have times of the machine."""
        self._wall, self._began = datetime.now(UTC), monotonic()

    def advance(self, seconds: float) -> None:
        """Show a later time from now on. Nothing that sleeps wakes up sooner."""
        self._wall += timedelta(seconds=seconds)

    def now(self) -> datetime:
        """The wall clock, in UTC."""
        return self._wall + timedelta(seconds=(monotonic() - self._began) * SPEED)

    def monotonic(self) -> float:
        """Seconds that never run backwards."""
        return monotonic() * SPEED

    async def sleep(self, seconds: float) -> None:
        """Wait that many seconds of this clock."""
        await anyio.sleep(seconds / SPEED)


QUICK = QuickClock()
"""The clock of the commands and of the clusters of a test, which compare times with one another."""
