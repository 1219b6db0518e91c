"""Checks: what `/healthz` and `/readyz` ask, each with an answer for people; the heartbeat of the main loop is one of them."""

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from engine.runtime.clock import Clock
from engine.runtime.observers import LoopObserver
from providers.cache_state import CacheState
from resources.ports.configuration import Configuration


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


MAX_KINDS = 10
"""Kinds that an answer names; of others the number is given."""
NOT_LEADING = "nothing is watched: this process does not lead"
"""The message of the caches of a process that watches nothing."""


class Health(Struct, frozen=True):
    """The answer of a check."""

    is_good: bool = True
    message: str = ""
    """What there is to say, in one line: the reason, or what the state is. No names of objects, no texts of others."""


class HealthCheck(Struct, frozen=True):
    """One thing to check. `judge` is called in the serving thread: it must return at once."""

    name: str
    judge: Callable[[], Health]


def ping() -> HealthCheck:
    """The serving thread answers."""
    return HealthCheck("ping", Health)


def main_loop(heartbeat: Heartbeat) -> HealthCheck:
    """The main loop has had time for its heartbeat within `LONGEST_PAUSE` seconds."""

    def judge() -> Health:
        age = heartbeat.age()
        return Health() if age <= LONGEST_PAUSE else Health(False, f"the main loop has not answered for {age:.0f} s")

    return HealthCheck("main-loop", judge)


def ready(name: str, is_ready: Callable[[], bool], otherwise: str) -> HealthCheck:
    """Something is ready; `otherwise` says what is not."""
    return HealthCheck(name, lambda: Health() if is_ready() else Health(False, otherwise))


def caches(read: Callable[[], Sequence[CacheState]], clock: Clock, *, name: str = "caches", if_none: str = NOT_LEADING) -> HealthCheck:
    """What is watched has been confirmed by the API server a short time ago (`FRESH_FOR`).

    A kind that the server does not permit us to read is told and does not count: webhooks that are out of service would not mend the
    permissions. A process that does not lead watches nothing, and is ready to take over.
    """

    def judge() -> Health:
        states, now = read(), clock.monotonic()
        if not states:
            return Health(message=if_none)
        stale = sorted({state.kind.key for state in states if state.is_stale(now) and not state.is_refused})
        if stale:
            return Health(False, f"not confirmed by the API server for {_longest(states, now):.0f} s: {_first(stale)}")
        refused = sorted({state.kind.key for state in states if state.is_refused})
        filling = sorted({state.kind.key for state in states if not state.is_filled and not state.is_refused})
        notes = [f"not permitted to read {_first(refused)}"] if refused else []
        notes += [f"still listing {_first(filling)}"] if filling else []
        return Health(message="; ".join(notes))

    return HealthCheck(name, judge)


def _longest(states: Sequence[CacheState], now: float) -> float:
    """The age of the oldest confirmation of a cache that counts."""
    return max(now - state.confirmed_at for state in states if not state.is_refused)


def _first(kinds: Sequence[str]) -> str:
    more = f" and {len(kinds) - MAX_KINDS} more" if len(kinds) > MAX_KINDS else ""
    return f"{', '.join(kinds[:MAX_KINDS])}{more}"


class LeadershipCheck(LoopObserver[Configuration]):
    """A `LoopObserver` that knows whether this process leads."""

    def __init__(self) -> None:
        self.leads = False

    def leading(self, leads: bool) -> None:
        """Take note."""
        self.leads = leads

    def check(self) -> HealthCheck:
        """Says whether this process leads. It is always good: a replica that waits for the lease serves reviews."""
        return HealthCheck("leader-election", lambda: Health(message="leads" if self.leads else "does not lead"))


INTERVAL: Final = 5.0
"""Seconds between two beats."""

LONGEST_PAUSE: Final = 180.0
"""Seconds without a beat after which the process does not work any more.

Large plans are computed in a thread of their own. What is left in the loop takes a few seconds for 100,000 objects.
"""
