"""Activity: what a process is doing at one moment, from the stacks of its threads and its requests in flight."""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

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
    """Of the server, for creates, patches and deletes."""
    WAITING_FOR_STATE = "waiting for statuses and Events"
    """Of the server, for writes that only report."""
    WAITING_FOR_CLUSTER = "waiting for the cluster"
    """No request is in flight: others schedule pods, start them and delete objects, or the pause between two passes is not over."""


class Call(NamedTuple):
    """One function on a stack."""

    module: str
    function: str


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
