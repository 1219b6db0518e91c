"""Event publishing: what the server refuses is dropped or sent later, and reported once."""

import io
import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from engine.errors import ClusterError, Forbidden, ServerFault, Throttled
from engine.event import Event, Publication, RootEvents, RootWarning
from engine.operation import Result
from engine.runtime.event_budget import BURST, MAX_NAMESPACES, OWN, RATE
from engine.runtime.event_publishing import FORBIDDEN_PAUSE, MAX_ATTEMPTS, EventPublisher
from engine.runtime.execution import WriterMemory, choose, execute
from engine.runtime.logs import logger
from engine.runtime.passes import Engine, observe_and_plan
from engine.runtime.sync_report import Ending
from engine.verb import Verb
from grove_sandbox.clock import VirtualClock
from tests.engine.runtime.fakes import ROOT, SCOPE, FakeProvider, root
from tests.engine.runtime.stage import Stage
from tests.engine.runtime.toy import Toy, make_ready, root_body

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
        for index in range(BURST // 5):  # So many roots that no limit of one object matters.
            await bench.publish(*(f"{number}-{index}-{event}" for event in range(5)), name=f"root-{index}")
    at_once = len(bench.written)
    await bench.clock.advance(1.5)
    for index in range(5):
        await bench.publish(*(f"late-{index}-{event}" for event in range(5)), name=f"root-{index}")

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


def storm(namespace: str, count: int, *, apart: bool = False, first: int = 0) -> list[RootEvents]:
    """Events about so many roots of a namespace that no limit of one object matters."""
    abouts = [ROOT.id(namespace, f"root-{number}") for number in range(first, first + count)]
    events = [Event(about, "uid", "Created", f"{namespace} {about.name}", warning=True, counted_apart=apart) for about in abouts]
    return [RootEvents(event.about, event.uid, (event,)) for event in events]


@pytest.mark.parametrize("apart", [False, True])
async def test_the_events_of_one_namespace_do_not_use_up_those_of_others(apart: bool) -> None:
    bench = Bench()
    await bench.publisher.publish(bench.provider, bench.clock, storm("loud", 2 * BURST, apart=apart))
    await bench.publisher.publish(bench.provider, bench.clock, [*storm("loud", 2 * BURST, apart=apart), *storm("quiet", OWN, apart=apart)])

    assert Counter(event.about.namespace for event in bench.provider.events) == {"loud": BURST, "quiet": OWN}


async def test_what_a_namespace_has_of_its_own_is_still_there_after_a_few_events_of_the_burst() -> None:
    bench = Bench()
    for turn, (namespace, count) in enumerate([("quiet", OWN), ("loud", 200), ("quiet", OWN), ("loud", 200), ("quiet", OWN)]):
        await bench.publisher.publish(bench.provider, bench.clock, storm(namespace, count, first=turn * 200))

    assert Counter(event.about.namespace for event in bench.provider.events) == {"loud": BURST - OWN, "quiet": 2 * OWN}


async def test_namespaces_share_what_may_be_written_and_all_together_have_a_limit() -> None:
    bench = Bench()
    await bench.publisher.publish(bench.provider, bench.clock, [*storm("loud", 5 * BURST), *storm("too", 5 * BURST), *storm("some", 20)])
    shared = Counter(event.about.namespace for event in bench.provider.events)
    assert shared == {"loud": 40, "too": 40, "some": 20}

    for number in range(MAX_NAMESPACES + 10):
        await bench.publisher.publish(bench.provider, bench.clock, storm(f"ns-{number}", 1))
    assert len(bench.written) == 2 * BURST
    assert len(bench.publisher._budget._own) == MAX_NAMESPACES


@pytest.mark.parametrize("leads", [True, False])
async def test_a_writer_that_has_lost_its_lease_writes_no_events(leads: bool) -> None:
    stage, memory = Stage(root_body(nonsense=True)), WriterMemory()
    stage.engine = Engine(stage.provider, stage.clock, SCOPE, (Toy(),), None, events_of=events_of_warnings)
    current = await observe_and_plan(stage.engine, memory)

    await execute(stage.engine, memory, current, choose(current, memory, stage.clock.monotonic()), may_write=lambda: leads)

    assert len(stage.provider.events) == leads


def events_of_warnings(warnings: Sequence[RootWarning], results: Sequence[Result]) -> tuple[Event, ...]:
    """One event for each warning, and none for results."""
    return tuple(
        Event(warning.root, warning.uid, warning.reason or "Invalid", f"{warning.generation}: {warning.text}", warning=True)
        for warning in warnings
    )


async def one_pass(stage: Stage, memory: WriterMemory) -> None:
    """One pass."""
    current = await observe_and_plan(stage.engine, memory)
    await execute(stage.engine, memory, current, choose(current, memory, stage.clock.monotonic()))


async def test_events_are_recorded_and_their_failure_does_not_matter() -> None:
    stage = Stage(root_body(leaves=2))

    def events_of_pass(warnings: Sequence[RootWarning], results: Sequence[Result]) -> tuple[Event, ...]:
        return tuple(Event(result.operation.id, "", "Created", "created") for result in results if result.operation.verb is Verb.CREATE)

    async def refuse(event: Event) -> None:
        stage.provider.events.append(event)
        raise ServerFault("etcdserver: request timed out")

    stage.provider.record = refuse  # type: ignore[method-assign]
    stage.engine = Engine(stage.provider, stage.clock, SCOPE, (Toy(),), None, events_of=events_of_pass)

    assert (await stage.sync()).ending is Ending.DONE
    assert {event.about.name for event in stage.provider.events} == {"root-0", "root-1"}


async def test_a_problem_becomes_an_event_once_and_again_after_the_root_was_edited() -> None:
    stage = Stage(root_body(nonsense=True), root_body("valid", leaves=1))
    stage.engine = Engine(stage.provider, stage.clock, SCOPE, (Toy(),), None, events_of=events_of_warnings)
    stage.background = lambda: make_ready(stage.provider, stage.clock, after=30)

    await stage.sync()
    uid = stage.provider.objects[root()]["metadata"]["uid"]
    (event,) = stage.provider.events
    assert (event.about, event.uid, event.message) == (root(), uid, "1: spec.nonsense: unknown field")

    memory = WriterMemory()
    await one_pass(stage, memory)
    stage.provider.put({**stage.provider.objects[root()], "metadata": {"name": "root", "namespace": "default", "generation": 2}})
    await one_pass(stage, memory)
    await one_pass(stage, memory)
    assert [event.message[:2] for event in stage.provider.events] == ["1:", "1:", "2:"]


async def test_a_problem_of_a_proposed_manifest_becomes_no_event() -> None:
    stage = Stage(root_body(leaves=1))
    stage.engine = Engine(stage.provider, stage.clock, SCOPE, (Toy(),), None, events_of=events_of_warnings)

    report = await stage.sync(manifests=[root_body(nonsense=True), root_body("new", nonsense=True)])

    assert len(report.problems) == 2
    assert stage.provider.events == []


async def test_an_internal_error_becomes_an_event_with_its_own_reason() -> None:
    stage = Stage(root_body(leaves=1, crash=True))
    stage.engine = Engine(stage.provider, stage.clock, SCOPE, (Toy(),), None, events_of=events_of_warnings)

    await stage.sync()

    (event,) = stage.provider.events
    assert (event.about, event.reason) == (root(), "InternalError")
    assert "KeyError: 'a defect'" in event.message


async def test_an_alarm_of_a_proposed_manifest_becomes_an_event_once_if_the_root_exists() -> None:
    stage = Stage(root_body(leaves=1))
    stage.engine = Engine(stage.provider, stage.clock, SCOPE, (Toy(),), None, events_of=events_of_warnings)

    await stage.sync(manifests=[root_body(leaves=2, alarm="a leaf is lost")])

    (event,) = stage.provider.events
    assert (event.about, event.uid) == (root(), stage.provider.objects[root()]["metadata"]["uid"])
    assert (event.reason, event.message) == ("LeavesFailed", "1: a leaf is lost")


async def test_an_alarm_of_a_root_that_a_manifest_creates_becomes_an_event_when_the_root_exists() -> None:
    stage = Stage()
    stage.engine = Engine(stage.provider, stage.clock, SCOPE, (Toy(),), None, events_of=events_of_warnings)

    await stage.sync(manifests=[root_body(leaves=2, alarm="a leaf is lost")])

    assert [(event.about, bool(event.uid), event.reason) for event in stage.provider.events] == [(root(), True, "LeavesFailed")]


async def test_an_internal_error_about_a_proposed_manifest_becomes_an_event_if_the_root_exists() -> None:
    stage = Stage(root_body(leaves=1))
    stage.engine = Engine(stage.provider, stage.clock, SCOPE, (Toy(),), None, events_of=events_of_warnings)

    await stage.sync(manifests=[root_body(leaves=1, crash=True), root_body("new", leaves=1, crash=True)])

    assert [(event.about, event.reason) for event in stage.provider.events] == [(root(), "InternalError")]
