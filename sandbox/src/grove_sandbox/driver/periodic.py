"""PeriodicTask: work that the driver does at fixed intervals, skipped while nothing has changed."""

from collections.abc import Awaitable, Callable
from typing import Final

from grove_sandbox.actors.work_queue import WorkQueue
from grove_sandbox.product import Clock

ROUND: Final = "round"


class PeriodicTask:
    """Does the work at multiples of the period after its creation, if that was requested since the last time."""

    def __init__(self, clock: Clock, period: float, work: Callable[[], Awaitable[None]]) -> None:
        self._clock, self._period, self._work = clock, period, work
        self._start = clock.monotonic()
        self._queue: WorkQueue[str] = WorkQueue(clock, first_retry=period, last_retry=period)

    def request(self, *, now: bool = False) -> None:
        """Do the work at the next multiple of the period, or (`now`) immediately."""
        elapsed = (self._clock.monotonic() - self._start) % self._period
        self._queue.add_after(ROUND, 0 if now else self._period - elapsed)

    async def run(self) -> None:
        """Work until cancelled. After an error the work is done again in the next round."""

        async def process(_: str) -> None:
            await self._work()

        await self._queue.run(process, workers=1)
