"""WorkQueue: the keys that an actor still has to process, each once, in order of arrival, some of them after a delay."""

import heapq
import math
from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

import anyio

from grove_sandbox.product import Clock, ClusterError

K = TypeVar("K", bound=Hashable)
Process = Callable[[K], Awaitable[float | None]]
"""Processes one key. Returns the seconds after which to process it again; None: not until it is added again."""

FIRST_RETRY, LAST_RETRY = 0.05, 30.0
"""Seconds until a key is processed again after an error: at first, and at most."""


def _start_none() -> None:
    """The queue does not run."""


class WorkQueue(Generic[K]):
    """A de-duplicating queue with delays and retries. No key is processed twice at once; one added meanwhile is processed again."""

    def __init__(self, clock: Clock, *, first_retry: float = FIRST_RETRY, last_retry: float = LAST_RETRY) -> None:
        self._clock = clock
        self._first_retry, self._last_retry = first_retry, last_retry
        self._due: deque[K] = deque()
        self._queued: set[K] = set()
        self._processing: set[K] = set()
        self._idle_workers: deque[anyio.Event] = deque()
        self._missing_workers = 0
        """How many more workers may start: they start when there is work, since most queues need one, and many none."""
        self._start_worker: Callable[[], object] = _start_none
        self._timers: list[tuple[float, int, K]] = []
        self._due_at: dict[K, float] = {}
        self._timer_count = 0
        self._timer_sleep = anyio.CancelScope()
        self._failures: dict[K, int] = {}

    def add(self, key: K) -> None:
        """Process the key as soon as a worker is free."""
        if key in self._queued:
            return
        self._queued.add(key)
        if key not in self._processing:
            self._due.append(key)
            self._wake_worker()

    def add_after(self, key: K, seconds: float) -> None:
        """Process the key after so many seconds, or earlier if it is due earlier."""
        if seconds <= 0:
            return self.add(key)
        at = self._clock.monotonic() + seconds
        if self._due_at.get(key, math.inf) <= at:
            return
        self._due_at[key] = at
        self._timer_count += 1
        heapq.heappush(self._timers, (at, self._timer_count, key))
        if self._timers[0][2] == key:
            self._timer_sleep.cancel()

    async def run(self, process: Process[K], *, workers: int = 8) -> None:
        """Process keys until cancelled. After a `ClusterError` the key is retried with exponential back-off."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._run_timers)
            self._missing_workers, self._start_worker = workers, lambda: tasks.start_soon(self._work, process)
            for _ in self._due:
                self._wake_worker()
            try:
                await anyio.sleep_forever()
            finally:
                self._missing_workers = 0
                self._idle_workers.clear()

    def _wake_worker(self) -> None:
        """Let a worker look for work: an idle one, or else a new one. Without both the first that is free finds it."""
        if self._idle_workers:
            self._idle_workers.popleft().set()
        elif self._missing_workers:
            self._missing_workers -= 1
            self._start_worker()

    async def _work(self, process: Process[K]) -> None:
        while True:
            while not self._due:
                wake_up = anyio.Event()
                self._idle_workers.append(wake_up)
                await wake_up.wait()
            await self._process_one(self._due.popleft(), process)

    async def _process_one(self, key: K, process: Process[K]) -> None:
        self._queued.discard(key)
        self._processing.add(key)
        try:
            delay = await process(key)
            self._failures.pop(key, None)
        except ClusterError as error:
            delay = max(self._next_retry(key), error.retry_after or 0.0)
        finally:
            self._processing.discard(key)
        if key in self._queued:
            self._queued.discard(key)
            self.add(key)
        if delay is not None:
            self.add_after(key, delay)

    def _next_retry(self, key: K) -> float:
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        return min(self._first_retry * (1 << min(failures - 1, 32)), self._last_retry)

    async def _run_timers(self) -> None:
        """Add keys whose delay is over; sleep until the next one."""
        while True:
            now = self._clock.monotonic()
            while self._timers and self._timers[0][0] <= now:
                at, _, key = heapq.heappop(self._timers)
                if self._due_at.get(key) == at:
                    del self._due_at[key]
                    self.add(key)
            with anyio.CancelScope() as self._timer_sleep:
                await (self._clock.sleep(self._timers[0][0] - now) if self._timers else anyio.sleep_forever())
