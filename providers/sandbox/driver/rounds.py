"""Rounds: work that the driver does every so many seconds, and that is left out as long as it would find nothing changed."""

from collections.abc import Awaitable, Callable
from typing import Final

from engine.runtime.clock import Clock
from providers.sandbox.actors.agenda import Agenda

THE_ROUND: Final = "round"


class Rounds:
    """A fixed rhythm from the start on. A round is only waited for when something was noted since the one before."""

    def __init__(self, clock: Clock, period: float, work: Callable[[], Awaitable[None]]) -> None:
        self._clock, self._period, self._work = clock, period, work
        self._start = clock.monotonic()
        self._agenda: Agenda[str] = Agenda(clock, first=period, last=period)

    def note(self, *, at_once: bool = False) -> None:
        """There may be something to do in the next round, or (`at_once`) now."""
        since = (self._clock.monotonic() - self._start) % self._period
        self._agenda.later(THE_ROUND, 0 if at_once else self._period - since)

    async def go(self) -> None:
        """Make the rounds, for ever. What failed is tried again in the next one."""

        async def look(_: str) -> None:
            await self._work()

        await self._agenda.work(look, workers=1)
