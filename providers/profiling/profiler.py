"""Profiler: samples what this process is doing, and appends to a file how long it did what."""

import json
import resource
import sys
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from types import FrameType
from typing import Final, NamedTuple, TextIO

from engine.errors import InputError
from engine.runtime.clock import Clock
from providers.kubernetes.request_observer import RequestAttempt, RequestObserver, RequestObservers


class Call(NamedTuple):
    """One function on a stack."""

    module: str
    function: str


PERIOD: Final = 0.005
"""Seconds between two samples."""
SLICE: Final = 0.1
"""Seconds that one line of the file covers at least."""


class Profiler(RequestObserver):
    """A `RequestObserver` that also samples the stacks of all threads. The time between two samples counts as what the later one shows.

    A line of the file is a JSON object: `since` and `until`, on the monotonic clock of the machine, `seconds` by activity, which add up to
    the difference, and the CPU seconds of the process.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._in_flight: Counter[Activity] = Counter()
        self._stop = threading.Event()

    def sent(self, method: str, path: str) -> None:
        """Count a request as being in flight."""
        self._count(method, path, 1)

    def abandoned(self, method: str, path: str) -> None:
        """Count it no longer."""
        self._count(method, path, -1)

    def answered(self, attempt: RequestAttempt) -> None:
        """Count it no longer."""
        self._count(attempt.method, attempt.path, -1)

    def _count(self, method: str, path: str, difference: int) -> None:
        if (activity := awaited(method, path)) is not None:
            self._in_flight[activity] += difference

    @contextmanager
    def running(self, file: TextIO) -> Iterator[None]:
        """Sample while the block runs, whose thread is the one of the loop, and append to the file."""
        thread = threading.Thread(target=self._sample, args=(file, threading.get_ident()), name="profiler", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join()

    def _sample(self, file: TextIO, main: int) -> None:
        """Write a line for each slice until the end; `main` is the thread of the loop."""
        seconds: defaultdict[Activity, float] = defaultdict(float)
        since = last = self._clock.monotonic()
        cpu = _cpu()
        is_running = True
        while is_running:
            is_running = not self._stop.wait(PERIOD)
            now = self._clock.monotonic()
            for activity, share in doing(_stacks(main), self._in_flight).items():
                seconds[activity] += share * (now - last)
            last = now
            if now - since >= SLICE or not is_running:
                used = _cpu()
                file.write(json.dumps({"since": since, "until": now, "seconds": seconds, "cpu": round(used - cpu, 4)}) + "\n")
                file.flush()
                seconds, since, cpu = defaultdict(float), now, used


@contextmanager
def profiled(path: Path | None, clock: Clock, observer: RequestObserver) -> Iterator[RequestObserver]:
    """Profile this process into that file while the block runs; None: do not. Yields the observer that requests are to be reported to.

    Raises `InputError` if the file cannot be written.
    """
    if path is None:
        yield observer
        return
    try:
        file = path.open("a")
    except OSError as error:
        raise InputError(f"--profile {path}: {(error.strerror or 'it cannot be written').lower()}") from error
    profiler = Profiler(clock)
    with file, profiler.running(file):
        yield RequestObservers(observer, profiler)


def _stacks(main: int) -> list[Iterator[Call]]:
    """The stacks of all threads but this one, that of `main` first."""
    frames = sys._current_frames()
    frames.pop(threading.get_ident(), None)
    return [_calls(frame) for _, frame in sorted(frames.items(), key=lambda item: item[0] != main)]


def _calls(frame: FrameType | None) -> Iterator[Call]:
    """The calls of a stack, the innermost first."""
    while frame is not None:
        yield Call(frame.f_globals.get("__name__", ""), frame.f_code.co_name)
        frame = frame.f_back


def _cpu() -> float:
    """The CPU seconds of this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


IDLE: Final = frozenset(
    {
        ("selectors", "select"),
        ("threading", "wait"),
        ("threading", "_wait_for_tstate_lock"),
        ("queue", "get"),
        ("concurrent.futures.thread", "_worker"),
        ("socket", "accept"),
    }
)
"""Functions in which a thread waits."""


class Activity(StrEnum):
    """What the time of a process is spent on."""

    PLANNING = "planning"
    CODING = "parsing and encoding"
    """Bytes become objects, and objects bytes."""
    SENDING = "requests and events"
    """The client and the event loop at work."""
    APPLYING = "passes"
    """What is between plans and requests: the loop, the order of operations, logs."""
    OTHER = "other"
    WAITING_FOR_READS = "waiting for reads"
    WAITING_FOR_WRITES = "waiting for writes"
    """The server carries out creates, patches and deletes."""
    WAITING_FOR_STATE = "waiting for statuses and Events"
    """The server carries out writes that only report."""
    WAITING_FOR_CLUSTER = "waiting for the cluster"
    """No request is in flight: others schedule pods, start them and delete objects, or the pause between two passes is not over."""


ACTIVITIES: Final[Mapping[str, Activity]] = {
    "aiohttp": Activity.SENDING,
    "anyio": Activity.SENDING,
    "asyncio": Activity.SENDING,
    "engine": Activity.PLANNING,
    "engine.observed": Activity.CODING,
    "engine.runtime": Activity.APPLYING,
    "enginectl": Activity.APPLYING,
    "providers": Activity.APPLYING,
    "providers.fabrics": Activity.PLANNING,
    "providers.informer": Activity.CODING,
    "providers.kubernetes": Activity.SENDING,
    "providers.kubernetes.wire": Activity.CODING,
    "providers.listing": Activity.CODING,
    "providers.live_store": Activity.CODING,
    "providers.schedulers": Activity.PLANNING,
    "resources": Activity.PLANNING,
    "structlog": Activity.APPLYING,
}
"""Package or module -> what its functions do; the longest name counts. Modules that are not listed work for their callers."""


def activity_of(stack: Iterable[Call]) -> Activity | None:
    """What a thread is doing, from its stack, the innermost call first; None if it is waiting."""
    for position, call in enumerate(stack):
        if position == 0 and call in IDLE:
            return None
        activity = _of_module(call.module)
        if activity is not None:
            return activity
    return Activity.OTHER


def _of_module(name: str) -> Activity | None:
    while name:
        if name in ACTIVITIES:
            return ACTIVITIES[name]
        name = name.rpartition(".")[0]
    return None


def waiting_for(in_flight: Mapping[Activity, int]) -> Mapping[Activity, float]:
    """What an idle process waits for, as shares that add up to 1; `in_flight`: how many requests there are of each kind."""
    total = sum(in_flight.values())
    if not total:
        return {Activity.WAITING_FOR_CLUSTER: 1.0}
    return {activity: count / total for activity, count in in_flight.items() if count}


def awaited(method: str, path: str) -> Activity | None:
    """What waiting for the answer to that request is; None for Leases, which nothing waits for."""
    segments = path.partition("?")[0].split("/")
    if "leases" in segments:
        return None
    if method == "GET":
        return Activity.WAITING_FOR_READS
    return Activity.WAITING_FOR_STATE if segments[-1] in ("status", "events") or "events" in segments else Activity.WAITING_FOR_WRITES


def doing(stacks: Sequence[Iterable[Call]], in_flight: Mapping[Activity, int]) -> Mapping[Activity, float]:
    """What the process is doing, as shares that add up to 1: the first thread that works counts, in the order of the stacks."""
    for stack in stacks:
        if (activity := activity_of(stack)) is not None:
            return {activity: 1.0}
    return waiting_for(in_flight)
