"""Event recording: what a pass has done and what is wrong with roots becomes events, once."""

from collections.abc import Sequence

import pytest

from engine.errors import ServerFault
from engine.event import Event, RootWarning
from engine.operation import Result
from engine.runtime.execution import WriterMemory, choose, execute
from engine.runtime.passes import Engine, observe_and_plan
from engine.runtime.sync_report import Ending
from engine.verb import Verb
from tests.engine.runtime.fakes import SCOPE, root
from tests.engine.runtime.stage import Stage
from tests.engine.runtime.toy import Toy, make_ready, root_body

pytestmark = pytest.mark.anyio


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
