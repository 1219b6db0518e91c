"""The lease of a session: held while it writes, free while it waits, and taken again only when nobody else has it."""

from collections.abc import Callable, Coroutine
from typing import Any, cast

import anyio
import pytest
from msgspec.structs import replace

from engine.errors import ClusterError, Conflict, Forbidden, LeaseTaken, NotFound, ServerFault, Throttled, TimedOut, Unreachable
from engine.operation import operation_key
from engine.runtime.lease import Lease
from engine.runtime.lease_holder import HELD_BY, HELD_FOR
from engine.runtime.provider import Client
from engine.runtime.session import sync
from engine.runtime.sync_report import Ending, SyncReport
from engine.verb import Verb
from tests.engine.runtime.fakes import create, leaf, root
from tests.engine.runtime.leases import record
from tests.engine.runtime.stage import Stage
from tests.engine.runtime.toy import make_ready, not_ready, root_body

pytestmark = pytest.mark.anyio

Task = Callable[[], Coroutine[Any, Any, None]]


def renewing(stage: Stage, holder: str, *, after: float, until: float = 1e9) -> Task:
    """A background task: another process takes the lease when it is free, and renews it until then."""

    async def hold() -> None:
        await stage.clock.sleep(after)
        while stage.leases.holder not in ("", holder):
            await stage.clock.sleep(0.05)
        while stage.clock.monotonic() < until:
            stage.leases.keep(record(holder, stage.clock))
            await stage.clock.sleep(1)
        stage.leases.keep(record("", stage.clock))

    return hold


def together(*tasks: Task) -> Task:
    """A background task that consists of several."""

    async def run() -> None:
        async with anyio.create_task_group() as group:
            for task in tasks:
                group.start_soon(task)

    return run


def edited(stage: Stage, at: float, **spec: Any) -> Task:
    """A background task: a user changes the root at that time."""

    async def edit() -> None:
        await stage.clock.sleep(at)
        stage.provider.put({**stage.provider.objects[root()], "spec": spec})

    return edit


async def test_while_it_waits_for_the_cluster_nobody_holds_the_lease() -> None:
    stage, holders = Stage(root_body(leaves=2)), list[str]()

    async def look() -> None:
        while True:
            await stage.clock.sleep(5)
            holders.append(stage.leases.holder)

    stage.background = look
    report = await stage.sync(patience=62)

    assert report.ending is Ending.TIMED_OUT
    assert holders == [""] * 12


async def test_every_write_is_made_while_it_holds_the_lease_and_every_term_begins_with_an_observation() -> None:
    stage = Stage(root_body(leaves=3))
    stage.background = together(lambda: make_ready(stage.provider, stage.clock, apart=2.0), edited(stage, 15, leaves=5))
    holders, stale, observe = list[str](), list[str](), stage.provider.observe
    observed_in = 0

    async def observed(scope: Any) -> Any:
        nonlocal observed_in
        observed_in = len(stage.leases.history)
        return await observe(scope)

    def check(key: str) -> None:
        holders.append(stage.leases.holder)
        acquired = max(number for number, holder in enumerate(stage.leases.history, 1) if holder and not before(stage, number))
        stale.extend([key] if observed_in < acquired else [])

    stage.provider.observe = observed  # type: ignore[method-assign]
    stage.provider.on_call = check
    report = await stage.sync()

    assert report.ending is Ending.DONE
    assert set(holders) == {"us"}
    assert stale == []
    assert stage.leases.history.count("") >= 3


def before(stage: Stage, number: int) -> str:
    """The holder before the write of that number, counted from one."""
    return stage.leases.history[number - 2] if number > 1 else ""


async def test_another_process_that_takes_the_lease_while_it_waits_writes_and_the_session_reports() -> None:
    stage = Stage(root_body(leaves=1))

    async def work_of_the_other() -> None:
        await stage.clock.sleep(60)
        (id,) = not_ready(stage.provider)
        stage.provider.put({**stage.provider.objects[id], "status": {"ready": True}})
        await stage.clock.sleep(5)
        live = stage.provider.objects[root()]
        counted = {"at": "2026-01-01T00:01:05Z", "of": 1}
        stage.provider.put({**live, "status": {"ready": 1, "counted": counted}})

    stage.background = together(renewing(stage, "run", after=5), work_of_the_other)
    report = await stage.sync()
    writes = stage.provider.writes.total()

    assert (report.ending, report.lease_taken) == (Ending.DONE, "")
    assert 65 <= stage.clock.monotonic() < 70
    assert writes == stage.provider.writes[Verb.CREATE] + 1, "the status of the beginning"
    assert stage.leases.holder == "run"


async def test_what_it_cannot_do_because_another_process_has_the_lease_is_reported_with_its_holder() -> None:
    stage = Stage(root_body(leaves=1))
    stage.background = together(renewing(stage, "run", after=5), edited(stage, 20, leaves=2))

    report = await stage.sync(patience=60)

    assert report.ending is Ending.TIMED_OUT
    assert "default/engine is held by run" in report.lease_taken
    assert leaf("root-1") not in stage.provider.objects


async def test_work_goes_on_as_soon_as_the_other_process_has_released_the_lease() -> None:
    stage = Stage(root_body(leaves=1))
    others = (lambda: make_ready(stage.provider, stage.clock), edited(stage, 2, leaves=2), renewing(stage, "other", after=1, until=40))
    stage.background = together(*others)

    report = await stage.sync()

    assert (report.ending, report.lease_taken) == (Ending.DONE, "")
    assert 40 <= stage.clock.monotonic() < 50


async def test_the_lease_of_a_process_that_died_while_we_waited_is_taken_over_after_its_duration() -> None:
    stage = Stage(root_body(leaves=1))

    async def take_and_die() -> None:
        await stage.clock.sleep(5)
        stage.leases.keep(record("dead", stage.clock))

    ready = lambda: make_ready(stage.provider, stage.clock, after=10)  # noqa: E731
    stage.background = together(ready, take_and_die, edited(stage, 8, leaves=2))
    report = await stage.sync()

    assert report.ending is Ending.DONE
    assert 8 + 15 <= stage.clock.monotonic() < 60


async def test_manifests_that_nobody_else_applies_are_not_waited_for_while_another_has_the_lease() -> None:
    stage = Stage()
    stage.background = together(renewing(stage, "run", after=1), edited(stage, 5, leaves=3))

    report = await stage.sync(manifests=[root_body(leaves=1)], lock_timeout=10.0)

    assert isinstance(report.error, LeaseTaken)
    assert 15 <= stage.clock.monotonic() < 25


async def test_with_manifests_it_writes_and_waits_for_their_roots_only() -> None:
    stage = Stage(root_body("other", leaves=1))

    async def make_ours_ready() -> None:
        while leaf("ours-0") not in stage.provider.objects:
            await stage.clock.sleep(0.5)
        stage.provider.put({**stage.provider.objects[leaf("ours-0")], "status": {"ready": True}})

    stage.background = make_ours_ready
    report = await stage.sync(manifests=[root_body("ours", leaves=1)])

    assert report.ending is Ending.DONE
    assert leaf("other-0") not in stage.provider.objects
    assert [root.name for root in report.last_pass.planned.others.roots] == ["other"]
    assert stage.clock.monotonic() < 10


@pytest.mark.parametrize(
    "error",
    [Conflict("changed"), Throttled("too many"), ServerFault("500"), Unreachable("no answer")],
    ids=lambda error: type(error).__name__,
)
async def test_a_lease_that_cannot_be_taken_again_at_once_is_tried_again(error: ClusterError) -> None:
    stage = Stage(root_body(leaves=1))

    async def let_it_fail() -> None:
        await stage.clock.sleep(1.5)
        assert stage.leases.holder == ""
        stage.leases.errors += [error, error]

    stage.background = together(let_it_fail, lambda: make_ready(stage.provider, stage.clock))
    report = await stage.sync()

    assert (report.ending, report.error, stage.leases.errors) == (Ending.DONE, None, [])
    assert stage.leases.holder == ""


@pytest.mark.parametrize("error", [Forbidden("leases is forbidden"), NotFound("no such namespace")], ids=["403", "404"])
async def test_a_lease_that_may_no_longer_be_taken_ends_the_session_with_the_reason(error: ClusterError) -> None:
    stage = Stage(root_body(leaves=1))

    async def forbid() -> None:
        await stage.clock.sleep(1.5)
        stage.leases.errors.append(error)

    stage.background = together(forbid, lambda: make_ready(stage.provider, stage.clock))
    report = await stage.sync()

    assert report.ending is Ending.FAILED
    assert str(report.error) == f"the lease default/engine could not be taken again: {error}"
    assert stage.clock.monotonic() < 10


async def test_a_server_that_never_gives_the_lease_again_is_the_error_when_time_is_up() -> None:
    stage = Stage(root_body(leaves=1))

    async def fail() -> None:
        await stage.clock.sleep(1.5)
        stage.leases.errors += [ServerFault("etcd is down")] * 1000

    stage.background = together(fail, lambda: make_ready(stage.provider, stage.clock))
    report = await stage.sync(patience=30)

    assert (report.ending, report.timed_out) == (Ending.FAILED, True)
    assert str(report.error) == "the lease default/engine could not be taken again: etcd is down"


@pytest.mark.parametrize("after", [0.0, 1.5])
async def test_a_lease_that_was_taken_without_an_answer_is_used_and_given_back(after: float) -> None:
    stage = Stage(root_body(leaves=1))

    async def lose() -> None:
        await stage.clock.sleep(after)
        stage.leases.lost_answers = 1

    stage.background = together(lose, lambda: make_ready(stage.provider, stage.clock))
    report = await stage.sync()

    assert (report.ending, stage.leases.holder) == (Ending.DONE, "")


async def test_a_lease_that_was_taken_without_an_answer_at_the_very_end_is_given_back_all_the_same() -> None:
    stage, stop = Stage(root_body(leaves=1)), anyio.CancelScope()

    async def lose_and_stop() -> None:
        await stage.clock.sleep(1.5)
        stage.leases.lost_answers = 1
        while stage.leases.lost_answers:
            await stage.clock.sleep(0.1)
        stop.cancel()

    stage.background = together(lose_and_stop, lambda: make_ready(stage.provider, stage.clock))
    report = await stage.sync(stop=stop)

    assert (report.ending, stage.leases.holder) == (Ending.INTERRUPTED, "")


async def test_a_session_that_is_interrupted_while_it_waits_leaves_no_lease_behind() -> None:
    stage, stop = Stage(root_body(leaves=1)), anyio.CancelScope()

    async def interrupt() -> None:
        await stage.clock.sleep(30)
        stop.cancel()

    stage.background = interrupt
    report = await stage.sync(stop=stop)

    assert (report.ending, stage.leases.holder) == (Ending.INTERRUPTED, "")
    assert stage.clock.monotonic() < 31


async def test_an_alarm_that_appears_while_it_waits_is_recorded_by_the_holder_of_the_lease() -> None:
    stage = Stage(root_body(leaves=1))
    stage.background = edited(stage, 10, leaves=1, alarm="a leaf has failed")
    seen = list[tuple[str, str]]()
    stage.engine = replaced_events(stage, seen)

    await stage.sync(patience=30)

    assert seen == [("a leaf has failed", "us")]


def replaced_events(stage: Stage, seen: list[Any]) -> Any:
    """The engine of the stage, which notes each warning with the holder of the lease."""

    def events(warnings: Any, results: Any) -> tuple[()]:
        seen.extend((warning.text, stage.leases.holder) for warning in warnings)
        return ()

    return replace(stage.engine, events_of=events)


@pytest.mark.parametrize(("patience", "lock_timeout", "ended_at"), [(300, 0, 0), (300, 5, 5), (300, None, 17), (8, None, 8), (8, 100, 8)])
async def test_another_holder_is_waited_for_as_long_as_both_timeouts_allow(
    patience: float, lock_timeout: float | None, ended_at: float
) -> None:
    stage = Stage(root_body(leaves=1))
    errors = list[Exception]()

    async def attempt() -> SyncReport[object]:
        try:
            return await sync(stage.engine, stage.lease, patience=patience, lock_timeout=lock_timeout)
        except LeaseTaken as error:
            errors.append(error)
            return cast(SyncReport[object], None)

    stage.background = renewing(stage, "other", after=0)
    stage.leases.keep(record("other", stage.clock))
    await stage.play(attempt)

    assert "the lease default/engine is held by other, since 2026-01-01T00:00:" in str(errors[0])
    assert stage.clock.monotonic() == pytest.approx(ended_at, abs=0.01)
    assert stage.provider.started == []


async def test_no_time_at_all_is_an_error_of_its_own() -> None:
    stage = Stage(root_body(leaves=1))

    with pytest.raises(TimedOut):
        await sync(stage.engine, stage.lease, patience=0.0)
    assert (stage.provider.started, stage.leases.holder) == ([], "")


async def test_when_time_is_up_calls_in_progress_end_and_no_other_begins() -> None:
    stage = Stage(root_body(leaves=5))
    stage.provider.failing[create("root-0").key] = [Throttled("later", retry_after=30.0)] * 10
    stage.background = stage.never

    report = await stage.sync(patience=12)

    assert (report.ending, report.timed_out, report.mid_pass) == (Ending.TIMED_OUT, True, True)
    assert stage.clock.monotonic() == 12
    assert stage.provider.started.count(create("root-0").key) == 1
    assert stage.leases.holder == ""


async def test_the_lease_says_what_it_is_held_for_and_no_longer_when_it_is_free() -> None:
    stage = Stage(root_body(leaves=1))
    stage.lease = Lease(cast(Client, stage.leases), stage.clock, "default", "engine", "us", purpose="sync -f racks.yaml in namespace x")
    annotations = list[Any]()

    def note(key: str) -> None:
        assert stage.leases.lease is not None
        annotations.append(stage.leases.lease["metadata"].get("annotations"))

    stage.provider.on_call = note
    await stage.sync()

    assert annotations[0] == {HELD_BY: "us", HELD_FOR: "sync -f racks.yaml in namespace x"}
    assert stage.leases.lease is not None and "annotations" not in stage.leases.lease["metadata"]


async def test_an_operation_that_keeps_failing_does_not_keep_the_lease() -> None:
    stage = Stage(root_body(leaves=1))
    stage.provider.failing[operation_key(Verb.CREATE, leaf("root-0"))] = [ServerFault("no") for _ in range(1000)]
    stage.background = renewing(stage, "other", after=3)

    report = await stage.sync(patience=60)

    assert report.ending is Ending.FAILED
    assert "other" in stage.leases.history
