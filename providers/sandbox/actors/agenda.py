"""Agenda: what an actor has yet to look at, each key once, in order of arrival; some of it only later."""

import heapq
import math
from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

import anyio

from engine.errors import ClusterError
from engine.runtime.clock import Clock

K = TypeVar("K", bound=Hashable)
Look = Callable[[K], Awaitable[float | None]]
"""Looks at one key and does what there is to do now; answers after how many seconds to look again, if at all."""

FIRST_RETRY, LAST_RETRY = 0.05, 30.0
"""Seconds until a look that failed is repeated: at first, and at most."""


class Agenda(Generic[K]):
    """A de-duplicated, timed queue. No key is looked at twice at once; one added meanwhile is looked at again."""

    def __init__(self, clock: Clock, *, first: float = FIRST_RETRY, last: float = LAST_RETRY) -> None:
        self._clock = clock
        self._first, self._last = first, last
        self._due: deque[K] = deque()
        self._queued: set[K] = set()
        self._busy: set[K] = set()
        self._idle: deque[anyio.Event] = deque()
        self._timers: list[tuple[float, int, K]] = []
        self._rings: dict[K, float] = {}
        self._turn = 0
        self._nap = anyio.CancelScope()
        self._failures: dict[K, int] = {}

    def add(self, key: K) -> None:
        """Look at the key as soon as a worker is free."""
        if key in self._queued:
            return
        self._queued.add(key)
        if key not in self._busy:
            self._due.append(key)
            if self._idle:
                self._idle.popleft().set()

    def later(self, key: K, seconds: float) -> None:
        """Look at the key after so many seconds, or before if it was already due earlier."""
        if seconds <= 0:
            return self.add(key)
        at = self._clock.monotonic() + seconds
        if self._rings.get(key, math.inf) <= at:
            return
        self._rings[key] = at
        self._turn += 1
        heapq.heappush(self._timers, (at, self._turn, key))
        if self._timers[0][2] == key:
            self._nap.cancel()

    async def work(self, look: Look[K], *, workers: int = 8) -> None:
        """Look at what comes up, for ever. Whatever the API server refused or failed at is looked at again, ever more slowly."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._ring)
            for _ in range(workers):
                tasks.start_soon(self._toil, look)

    async def _toil(self, look: Look[K]) -> None:
        while True:
            while not self._due:
                ticket = anyio.Event()
                self._idle.append(ticket)
                await ticket.wait()
            await self._take(self._due.popleft(), look)

    async def _take(self, key: K, look: Look[K]) -> None:
        self._queued.discard(key)
        self._busy.add(key)
        try:
            again = await look(key)
            self._failures.pop(key, None)
        except ClusterError as error:
            again = max(self._next_pause(key), error.retry_after or 0.0)
        finally:
            self._busy.discard(key)
        if key in self._queued:
            self._queued.discard(key)
            self.add(key)
        if again is not None:
            self.later(key, again)

    def _next_pause(self, key: K) -> float:
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        return min(self._first * (1 << min(failures - 1, 32)), self._last)

    async def _ring(self) -> None:
        """Move keys whose time has come to what is due; sleep exactly until the next one."""
        while True:
            now = self._clock.monotonic()
            while self._timers and self._timers[0][0] <= now:
                at, _, key = heapq.heappop(self._timers)
                if self._rings.get(key) == at:
                    del self._rings[key]
                    self.add(key)
            with anyio.CancelScope() as self._nap:
                await (self._clock.sleep(self._timers[0][0] - now) if self._timers else anyio.sleep_forever())
