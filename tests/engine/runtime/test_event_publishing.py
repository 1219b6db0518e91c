"""Event publishing: what the server refuses is dropped or sent later, and reported once."""

import io
import json
from typing import Any

import pytest

from engine.errors import ClusterError, Forbidden, ServerFault, Throttled
from engine.event import Event, Publication, RootEvents
from engine.runtime.event_publishing import BURST, FORBIDDEN_PAUSE, MAX_ATTEMPTS, MAX_NAMESPACES, RATE, EventPublisher
from engine.runtime.logs import logger
from grove_sandbox.clock import VirtualClock
from tests.engine.runtime.fakes import ROOT, FakeProvider

pytestmark = pytest.mark.anyio


class Bench:
    """A publisher over a provider that refuses on demand."""

    def __init__(self) -> None:
        self.provider, self.clock, self.publisher = FakeProvider(), VirtualClock(), EventPublisher()
        self.refuses: dict[str, ClusterError] = {}
        """Namespace -> what writing an event there raises."""
        self.sent: list[str] = []
        self.stream = io.StringIO()
        self.publications: list[Publication] = []
        self.provider.record = self.record  # type: ignore[method-assign]

    async def record(self, event: Event) -> None:
        self.sent.append(event.message)
        if error := self.refuses.get(event.about.namespace):
            raise error
        self.provider.events.append(event)

    async def publish(self, *messages: str, namespace: str = "default", name: str = "root") -> None:
        """Publish events about a root, each under a reason of its own."""
        about = ROOT.id(namespace, name)
        events = tuple(Event(about, "uid", message.title(), message) for message in messages)
        groups = [RootEvents(about, "uid", events)]
        self.publications.append(await self.publisher.publish(self.provider, self.clock, groups, logger(self.stream, format="json")))

    @property
    def written(self) -> list[str]:
        """The messages of the events that were written."""
        return [event.message for event in self.provider.events]

    @property
    def logged(self) -> list[dict[str, Any]]:
        """The log lines about dropped events."""
        return [json.loads(line) for line in self.stream.getvalue().splitlines()]


async def test_a_failed_write_is_not_repeated_and_logged_once_per_pass() -> None:
    bench = Bench()
    bench.refuses["default"] = ServerFault("etcdserver: request timed out")
    await bench.publish("one", "two")
    await bench.publish()

    assert bench.sent == ["one", "two"]
    assert [(line["event"], line["failed"]) for line in bench.logged] == [("events dropped", 2)]


async def test_many_events_are_written_at_once_and_then_some_in_each_second() -> None:
    bench = Bench()

    for number in range(2):
        for root in range(BURST // 5):  # So many roots that no limit of one object matters.
            await bench.publish(*(f"{number}-{root}-{event}" for event in range(5)), name=f"root-{root}")
    at_once = len(bench.written)
    await bench.clock.advance(1.5)
    for root in range(5):
        await bench.publish(*(f"late-{root}-{event}" for event in range(5)), name=f"root-{root}")

    assert at_once == BURST
    assert len(bench.written) == BURST + 15
    assert sum(publication.failed for publication in bench.publications) == BURST + 10


async def test_what_became_of_the_events_is_returned() -> None:
    bench = Bench()
    bench.refuses = {"closed": Forbidden("events is forbidden"), "slow": Throttled("wait", retry_after=1)}
    await bench.publish("one", "two")
    await bench.publish("three", "four", namespace="closed")
    await bench.publish("five", namespace="closed")
    await bench.publish("six", namespace="slow")

    assert bench.publications == [Publication(written=2), Publication(failed=2), Publication(failed=1), Publication()]


async def test_a_namespace_that_forbids_events_is_left_alone_for_ten_minutes() -> None:
    bench = Bench()
    bench.refuses["closed"] = Forbidden("events is forbidden")
    await bench.publish("one", "two", "three", namespace="closed")
    await bench.publish("four", namespace="closed")
    await bench.publish("five", namespace="open")
    assert (bench.sent, bench.written) == (["one", "five"], ["five"])
    refusals = [(line["namespace"], line["error"]) for line in bench.logged if line["event"] == "events forbidden"]
    assert refusals == [("closed", "events is forbidden")]

    bench.refuses.clear()
    await bench.clock.advance(FORBIDDEN_PAUSE)
    await bench.publish("six", namespace="closed")
    assert bench.written == ["five", "six"]


async def test_events_wait_as_long_as_the_server_asks_and_are_then_written() -> None:
    bench = Bench()
    bench.refuses["default"] = Throttled("too many requests", retry_after=30)
    await bench.publish("one", "two", "three")
    assert len(bench.sent) == 1

    bench.refuses.clear()
    await bench.clock.advance(29)
    await bench.publish("four")
    assert bench.written == []

    await bench.clock.advance(1)
    await bench.publish()
    assert sorted(bench.written) == ["four", "one", "three", "two"]
    assert bench.logged == []


async def test_a_server_that_asks_again_and_again_is_not_asked_for_ever() -> None:
    bench = Bench()
    bench.refuses["default"] = Throttled("too many requests", retry_after=1)
    await bench.publish("one")
    for _ in range(10):
        await bench.clock.advance(1)
        await bench.publish()

    assert bench.sent == ["one"] * MAX_ATTEMPTS
    assert [line["failed"] for line in bench.logged] == [1]


async def test_forbidden_namespaces_are_remembered_in_bounded_memory() -> None:
    bench = Bench()
    for number in range(MAX_NAMESPACES + 10):
        bench.refuses[f"ns-{number}"] = Forbidden("events is forbidden")
        await bench.publish("one", namespace=f"ns-{number}")
        await bench.clock.advance(1 / RATE)

    assert len(bench.publisher._forbidden_until) == MAX_NAMESPACES


async def test_events_that_are_counted_apart_are_written_after_a_burst_of_others() -> None:
    bench = Bench()
    for number in range(10):
        await bench.publish(*(f"{number}-{each}" for each in range(20)), name=f"root-{number}")
    assert len(bench.written) == BURST
    events = tuple(Event(ROOT.id("default", "root"), "uid", "Created", f"domain {number}", counted_apart=True) for number in range(30))

    await bench.publisher.publish(bench.provider, bench.clock, [RootEvents(events[0].about, "uid", events)])

    assert bench.written[BURST:] == [event.message for event in events]
