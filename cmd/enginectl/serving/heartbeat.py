"""Heartbeat: shows that the main loop of the process still runs, to whoever asks in another thread."""

from typing import Final

from engine.runtime.clock import Clock

INTERVAL: Final = 5.0
"""Seconds between two beats."""

LONGEST_PAUSE: Final = 180.0
"""Seconds without a beat after which the process does not work any more.

Large plans are computed in a thread of their own. What is left in the loop takes a few seconds for 100,000 objects.
"""


class Heartbeat:
    """The time of the last beat. `run` beats in the main loop."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._beaten_at = clock.monotonic()

    async def run(self) -> None:
        """Beat until cancelled."""
        while True:
            self._beaten_at = self._clock.monotonic()
            await self._clock.sleep(INTERVAL)

    def age(self) -> float:
        """Seconds since the last beat. May be called in any thread."""
        return self._clock.monotonic() - self._beaten_at
