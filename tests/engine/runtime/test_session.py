"""Session: when a sync acts, when it waits, when it ends, and what it reports then."""

import io
import json
from collections.abc import Sequence
from typing import cast

import anyio
import pytest

from engine.errors import Forbidden, LeaseTaken, ServerFault, Unreachable
from engine.guard import Limits
from engine.operation import Outcome, Result
from engine.plan import Plan
from engine.resource import Body
from engine.runtime.lease import Lease, held
from engine.runtime.lease_holder import LeaseHolder
from engine.runtime.logs import logger
from engine.runtime.passes import Engine, preview
from engine.runtime.provider import Client
from engine.runtime.rejections import MAX_REVERTED
from engine.runtime.session import sync
from engine.runtime.sync_report import Ending
from engine.verb import Verb
from tests.engine.runtime.fakes import LEAF, SCOPE, body, create, delay, leaf, root
from tests.engine.runtime.leases import record
from tests.engine.runtime.stage import Stage
from tests.engine.runtime.toy import Toy, make_ready, root_body

pytestmark = pytest.mark.anyio


async def test_a_sync_creates_the_desired_objects_and_ends_when_they_are_ready() -> None:
    stage = Stage(root_body(leaves=3))

    report = await stage.sync()

    assert report.ending is Ending.DONE
    assert stage.provider.writes[Verb.CREATE] == 3
    assert stage.provider.objects[root()]["status"]["ready"] == 3
    assert report.pending == ()


async def test_a_second_sync_writes_nothing_and_ends_at_once() -> None:
    stage = Stage(root_body(leaves=3))
    await stage.sync()
    stage.provider.writes.clear()
    before = stage.clock.monotonic()

    report = await stage.sync()

    assert report.ending is Ending.DONE
    assert stage.provider.writes.total() == 0
    assert stage.clock.monotonic() == before


async def test_workloads_that_are_not_begun_soon_are_begun_by_the_next_pass_which_sees_what_the_first_ones_have_become() -> None:
    stage = Stage(*(root_body(f"root-{number:02}", leaves=24) for number in range(20)))
    stage.background = lambda: make_ready(stage.provider, stage.clock, apart=0.02)
    delay(stage.provider, stage.clock, 0.4)
    names: list[str] = []
    stage.provider.on_call = lambda key: names.append(key)

    report = await stage.sync()

    created = [position for position, key in enumerate(names) if key.startswith("create")]
    reported = [position for position, key in enumerate(names) if key.startswith("status")]
    assert report.ending is Ending.DONE
    assert stage.provider.writes[Verb.CREATE] == 480
    assert reported[0] < created[-1], "the first workloads are reported as ready before the last ones are created"


async def test_a_status_is_written_when_it_has_stopped_changing() -> None:
    stage = Stage(root_body(leaves=40))
    stage.background = lambda: make_ready(stage.provider, stage.clock, apart=0.1)

    report = await stage.sync()

    assert report.ending is Ending.DONE
    assert stage.provider.writes[Verb.STATUS] <= 2


async def test_a_status_that_keeps_changing_is_written_every_ten_seconds() -> None:
    stage = Stage(root_body(leaves=400))
    stage.background = lambda: make_ready(stage.provider, stage.clock, apart=0.5)

    report = await stage.sync(patience=100)

    assert report.timed_out
    assert 8 <= stage.provider.writes[Verb.STATUS] <= 12


async def test_a_final_status_is_written_without_delay() -> None:
    stage = Stage(root_body(leaves=1))
    await stage.sync()
    provider = stage.provider
    provider.objects[root()]["status"] = {"ready": 0}
    provider.put(provider.objects[root()])
    before = stage.clock.monotonic()

    await stage.sync()

    assert provider.objects[root()]["status"]["ready"] == 1
    assert stage.clock.monotonic() - before < 0.5


async def test_a_root_from_a_manifest_is_created_before_its_children() -> None:
    stage = Stage()

    report = await stage.sync(manifests=[root_body(leaves=2)])

    assert report.ending is Ending.DONE
    assert stage.provider.started[0].endswith("Root/default/root")
    owners = {stage.provider.objects[leaf(f"root-{number}")]["metadata"]["ownerReferences"][0]["uid"] for number in range(2)}
    assert owners == {stage.provider.objects[root()]["metadata"]["uid"]}


async def test_what_does_not_settle_in_time_is_reported_as_pending() -> None:
    stage = Stage(root_body(leaves=2))
    stage.background = stage.never

    report = await stage.sync(patience=30)

    assert (report.ending, report.timed_out) == (Ending.TIMED_OUT, True)
    assert [f"{wait.id}: {wait.why}" for wait in report.pending] == [
        "Leaf/default/root-0: not ready",
        "Leaf/default/root-1: not ready",
    ]
    assert 30 <= stage.clock.monotonic() < 31


async def test_without_waiting_a_sync_ends_when_nothing_is_left_to_do() -> None:
    stage = Stage(root_body(leaves=2))
    stage.background = stage.never

    report = await stage.sync(wait=False)

    assert report.ending is Ending.DONE
    assert len(report.pending) == 2
    assert stage.clock.monotonic() < 3


async def test_while_nothing_changes_passes_become_rare() -> None:
    stage = Stage(root_body(leaves=1))
    stage.background = stage.never
    passes = 0

    class Counting:
        def waiting_for_lease(self, holder: LeaseHolder) -> None: ...
        def planned(self, plans: Sequence[Plan], operations: int) -> None:
            nonlocal passes
            passes += 1

        def applied(self, result: Result) -> None: ...
        def idle(self, plans: Sequence[Plan], seconds: float) -> None: ...

    await stage.sync(patience=100, progress=Counting())

    assert 50 <= passes <= 65


async def test_a_preview_writes_nothing_and_takes_no_lease() -> None:
    stage = Stage(root_body(leaves=2))

    current = await preview(stage.engine)

    assert [operation.verb for plan in current.planned.plans for operation in plan.operations].count(Verb.CREATE) == 2
    assert stage.provider.started == []
    assert stage.leases.requests == []


async def test_a_sync_executes_only_what_the_preview_shows() -> None:
    stage = Stage(root_body(leaves=3), root_body("other", leaves=1))
    previewed = {operation.key for plan in (await preview(stage.engine)).planned.plans for operation in plan.operations}

    await stage.sync(wait=False)

    assert set(stage.provider.started) <= previewed


async def test_when_no_root_exists_orphans_are_left_alone() -> None:
    orphan = body(LEAF, "orphan", labels={"app": "ours", "root": "gone"})
    stage = Stage(orphan)

    report = await stage.sync()

    assert report.ending is Ending.DENIED
    assert [objection.rule for objection in report.objections] == ["no-roots"]
    assert stage.provider.started == []


async def test_a_plan_over_its_budget_is_not_executed_and_the_others_are() -> None:
    stage = Stage(root_body("other", leaves=1))
    uid = stage.provider.put(root_body("big", leaves=0))["metadata"]["uid"]
    for number in range(3):
        extra = body(LEAF, f"extra-{number}", labels={"app": "ours", "root": "big"})
        extra["metadata"]["ownerReferences"] = [{"kind": "Root", "name": "big", "uid": uid, "controller": True}]
        stage.provider.put(extra)
    stage.engine = Engine(stage.provider, stage.clock, SCOPE, (Toy(),), None, Limits(max_deletes=2))

    report = await stage.sync()

    assert report.ending is Ending.DENIED
    assert stage.provider.writes[Verb.DELETE] == 0
    assert leaf("other-0") in stage.provider.objects


async def test_an_invalid_root_does_not_affect_the_others() -> None:
    stage = Stage(root_body("bad", leaves=1, nonsense=True), root_body("good", leaves=1))

    report = await stage.sync()

    assert report.ending is Ending.FAILED
    assert report.problems == ("spec.nonsense: unknown field",)
    assert stage.provider.objects[root("good")]["status"]["ready"] == 1


async def test_an_internal_error_fails_the_sync_and_is_logged_once_with_its_traceback() -> None:
    stage, stream = Stage(root_body("bad", leaves=1, crash=True), root_body("good", leaves=1)), io.StringIO()

    report = await stage.sync(log=logger(stream, format="json"))

    assert (report.ending, report.problems) == (Ending.FAILED, ())
    assert stage.provider.objects[root("good")]["status"]["ready"] == 1
    (line,) = map(json.loads, stream.getvalue().splitlines())
    assert (line["event"], line["root"]) == ("internal error", str(root("bad")))
    assert "Traceback" in line["exception"] and "KeyError: 'a defect'" in line["exception"]


async def test_without_a_lease_a_sync_writes_and_requests_no_lease() -> None:
    stage = Stage(root_body(leaves=1))

    report = await stage.play(lambda: sync(stage.engine, None))

    assert (report.ending, stage.leases.requests) == (Ending.DONE, [])
    assert stage.provider.objects[root()]["status"]["ready"] == 1


async def test_a_kind_that_cannot_be_listed_is_left_alone_and_reported() -> None:
    stage = Stage(root_body(leaves=2))
    stage.provider.incomplete = {"Leaf": "forbidden"}

    report = await stage.sync()

    assert report.ending is Ending.INCOMPLETE
    assert report.incomplete == {"Leaf": "forbidden"}
    assert stage.provider.writes[Verb.CREATE] == 0
    assert stage.clock.monotonic() < 15


async def test_a_paused_root_is_no_reason_to_wait() -> None:
    stage = Stage(root_body(leaves=2, paused=True))

    report = await stage.sync()

    assert report.ending is Ending.DONE
    assert sum(len(plan.deferred) for plan in report.plans) == 2
    assert stage.clock.monotonic() < 2


async def test_a_paused_root_is_no_reason_to_wait_although_the_cluster_keeps_changing() -> None:
    stage = Stage(root_body(leaves=2, paused=True))

    async def keep_changing() -> None:
        while True:
            stage.provider.put(stage.provider.objects[root()])
            await stage.clock.sleep(0.1)

    stage.background = keep_changing
    report = await stage.sync()

    assert report.ending is Ending.DONE
    assert stage.clock.monotonic() < 15


async def test_a_forbidden_operation_is_sent_once_and_ends_the_session() -> None:
    stage = Stage(root_body(leaves=2))
    denied = create("root-1")
    stage.provider.failing[denied.key] = [Forbidden("leaves is forbidden") for _ in range(100)]

    report = await stage.sync()

    assert report.ending is Ending.FAILED
    assert [(result.operation.id.name, str(result.error)) for result in report.failures] == [("root-1", "leaves is forbidden")]
    assert stage.provider.started.count(denied.key) == 1
    assert stage.clock.monotonic() < 10


@pytest.mark.parametrize("reset_fields", [{"ready": 0}, {"ready": 0, "counted": {}}], ids=["a number", "a time"])
async def test_a_status_that_another_writer_always_resets_is_reported_as_a_failure(reset_fields: Body) -> None:
    stage = Stage(root_body(leaves=1))
    await stage.sync()
    provider = stage.provider

    async def reset() -> None:
        while True:
            live = provider.objects[root()]
            if live["status"].get("ready"):
                provider.put({**live, "status": {**live["status"], **reset_fields}})
            await stage.clock.sleep(0.05)

    stage.background = reset
    provider.writes.clear()

    report = await stage.sync()

    assert report.ending is Ending.FAILED
    assert "reverted each time" in str(report.failures[0].error)
    assert provider.writes[Verb.STATUS] == MAX_REVERTED


async def test_transient_errors_of_the_server_are_retried() -> None:
    stage = Stage(root_body(leaves=2))
    stage.provider.failing[create("root-1").key] = [ServerFault("etcd is down"), Unreachable("no answer")]
    stage.provider.observe_errors = []

    report = await stage.sync()

    assert report.ending is Ending.DONE
    assert report.failures == ()
    assert {Outcome.FAILED, Outcome.DONE} == {result.outcome for result in report.results}


async def test_a_listing_that_fails_is_repeated_except_for_the_first() -> None:
    stage = Stage(root_body(leaves=2))
    stage.provider.on_call = lambda key: (
        None if stage.provider.ended else stage.provider.observe_errors.extend([Unreachable("no answer"), ServerFault("500")])
    )

    assert (await stage.sync()).ending is Ending.DONE

    stage.provider.observe_errors = [Unreachable("refused")]
    with pytest.raises(Unreachable):
        await sync(stage.engine, stage.lease)


async def test_a_taken_name_is_reported_with_its_object() -> None:
    foreign = body(LEAF, "root-1", labels={})
    stage = Stage(root_body(leaves=2), foreign)

    report = await stage.sync()

    assert report.ending is Ending.STUCK
    assert [wait.why for wait in report.blocked] == ["Leaf default/root-1 already exists but is not controlled by Root default/root"]
    assert stage.provider.objects[leaf("root-1")]["metadata"]["labels"] == {}
    assert stage.clock.monotonic() < 10


async def test_a_taken_name_is_waited_for_while_its_object_is_being_deleted() -> None:
    foreign = body(LEAF, "root-1", labels={})
    foreign["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    stage = Stage(root_body(leaves=2), foreign)

    async def end_deletion() -> None:
        await stage.clock.sleep(5)
        del stage.provider.objects[leaf("root-1")]
        await make_ready(stage.provider, stage.clock)

    stage.background = end_deletion
    report = await stage.sync()

    assert report.ending is Ending.DONE


async def test_an_interrupted_sync_reports_what_it_has_done_and_what_not() -> None:
    stage = Stage(root_body(leaves=50))
    stage.engine = Engine(stage.provider, stage.clock, SCOPE, (Toy(),), None, concurrency=1)
    stop = anyio.CancelScope()
    stage.provider.on_call = lambda key: stop.cancel() if len(stage.provider.started) == 5 else None

    report = await stage.sync(stop=stop)

    assert report.ending is Ending.INTERRUPTED
    assert [result.outcome for result in report.results] == [Outcome.DONE] * 5
    assert sum(operation.verb is Verb.CREATE for operation in report.not_started) == 45
    assert stage.leases.holder == ""


async def test_an_interruption_while_waiting_for_the_lease_changes_nothing() -> None:
    stage = Stage(root_body(leaves=1))
    stage.leases.keep(record("another", stage.clock))
    stop = anyio.CancelScope()
    stop.cancel()

    report = await stage.sync(stop=stop)

    assert report.ending is Ending.INTERRUPTED
    assert stage.provider.started == []


async def test_while_another_process_leads_nothing_is_done() -> None:
    stage = Stage(root_body(leaves=1))
    async with anyio.create_task_group() as group:
        group.start_soon(_hold, stage, "another")
        await stage.clock.advance(1)
        with pytest.raises(ExceptionGroup) as caught:
            await stage.sync()
        group.cancel_scope.cancel()

    assert caught.group_contains(LeaseTaken)
    assert stage.provider.started == []


async def test_a_lease_lost_while_writing_ends_the_session_and_is_reported() -> None:
    stage = Stage(root_body(leaves=1))
    stage.provider.gates[create("root-0").key] = answered = anyio.Event()

    async def take_over() -> None:
        await stage.clock.sleep(1)
        stage.leases.keep(record("usurper", stage.clock))
        await stage.clock.sleep(5)
        answered.set()

    stage.background = take_over
    stage.provider.gates[create("root-0").key] = answered
    report = await stage.sync()

    assert report.ending is Ending.FAILED
    assert "no longer ours: it is held by usurper" in str(report.error)


async def _hold(stage: Stage, name: str) -> None:
    async with held(Lease(cast(Client, stage.leases), stage.clock, "default", "engine", name)):
        await anyio.sleep_forever()
