"""Session: when a sync acts, when it waits, when it is over, and what it says then."""

from collections.abc import Sequence
from typing import cast

import anyio
import pytest

from engine.errors import Forbidden, LeaseTaken, ServerFault, Unreachable
from engine.event import Event, RootWarning
from engine.guard import Limits
from engine.plan import Plan
from engine.result import Outcome, Result
from engine.runtime.client import Client
from engine.runtime.lease import Lease, held
from engine.runtime.passes import Engine, Memory, act, choose, look
from engine.runtime.session import Ending, preview, sync
from engine.verb import Verb
from tests.engine.runtime.fakes import LEAF, SCOPE, body, create, leaf, root
from tests.engine.runtime.leases import record
from tests.engine.runtime.orchard import Orchard, ripen, tree
from tests.engine.runtime.stage import Stage

pytestmark = pytest.mark.anyio


async def test_a_sync_brings_up_what_is_asked_for_and_ends_when_all_is_settled() -> None:
    stage = Stage(tree(leaves=3))

    report = await stage.sync()

    assert report.ending is Ending.DONE
    assert stage.shelf.writes[Verb.CREATE] == 3
    assert stage.shelf.objects[root()]["status"]["ripe"] == 3
    assert report.pending == ()


async def test_a_second_sync_writes_nothing_and_ends_at_once() -> None:
    stage = Stage(tree(leaves=3))
    await stage.sync()
    stage.shelf.writes.clear()
    before = stage.clock.monotonic()

    report = await stage.sync()

    assert report.ending is Ending.DONE
    assert stage.shelf.writes.total() == 0
    assert stage.clock.monotonic() == before


async def test_a_state_is_written_at_rest_and_not_with_every_step() -> None:
    stage = Stage(tree(leaves=40))
    stage.ripening = lambda: ripen(stage.shelf, stage.clock, apart=0.1)

    report = await stage.sync()

    assert report.ending is Ending.DONE
    assert stage.shelf.writes[Verb.STATUS] <= 2


async def test_a_state_in_endless_motion_is_written_every_ten_seconds() -> None:
    stage = Stage(tree(leaves=400))
    stage.ripening = lambda: ripen(stage.shelf, stage.clock, apart=0.5)

    report = await stage.sync(patience=100)

    assert report.timed_out
    assert 8 <= stage.shelf.writes[Verb.STATUS] <= 12


async def test_the_end_does_not_wait_for_the_state_to_grow_old() -> None:
    stage = Stage(tree(leaves=1))
    await stage.sync()
    shelf = stage.shelf
    shelf.objects[root()]["status"] = {"ripe": 0}
    shelf.put(shelf.objects[root()])
    before = stage.clock.monotonic()

    await stage.sync()

    assert shelf.objects[root()]["status"]["ripe"] == 1
    assert stage.clock.monotonic() - before < 0.5


async def test_a_manifest_is_applied_alone_first_and_then_what_it_asks_for() -> None:
    stage = Stage()

    report = await stage.sync(manifests=[tree(leaves=2)])

    assert report.ending is Ending.DONE
    assert stage.shelf.started[0].endswith("Root/default/root")
    owners = {stage.shelf.objects[leaf(f"root-{number}")]["metadata"]["ownerReferences"][0]["uid"] for number in range(2)}
    assert owners == {stage.shelf.objects[root()]["metadata"]["uid"]}


async def test_what_does_not_settle_in_time_is_named() -> None:
    stage = Stage(tree(leaves=2))
    stage.ripening = stage.never

    report = await stage.sync(patience=30)

    assert (report.ending, report.timed_out) == (Ending.FAILED, True)
    assert [f"{waiting.id}: {waiting.why}" for waiting in report.pending] == [
        "Leaf/default/root-0: not ripe yet",
        "Leaf/default/root-1: not ripe yet",
    ]
    assert 30 <= stage.clock.monotonic() < 31


async def test_who_does_not_wait_leaves_when_there_is_nothing_left_to_do() -> None:
    stage = Stage(tree(leaves=2))
    stage.ripening = stage.never

    report = await stage.sync(wait=False)

    assert report.ending is Ending.DONE
    assert len(report.pending) == 2
    assert stage.clock.monotonic() < 3


async def test_while_nothing_moves_the_looks_become_rare() -> None:
    stage = Stage(tree(leaves=1))
    stage.ripening = stage.never
    looks = 0

    class Watching:
        def contested(self, holder: str) -> None: ...
        def planned(self, plans: Sequence[Plan], calls: int) -> None:
            nonlocal looks
            looks += 1

        def done(self, result: Result) -> None: ...
        def resting(self, plans: Sequence[Plan], seconds: float) -> None: ...

    await stage.sync(patience=100, progress=Watching())

    assert 50 <= looks <= 65


async def test_a_preview_writes_nothing_and_takes_no_lease() -> None:
    stage = Stage(tree(leaves=2))

    seen = await preview(stage.engine)

    assert [operation.verb for plan in seen.planned.plans for operation in plan.operations].count(Verb.CREATE) == 2
    assert stage.shelf.started == []
    assert stage.leases.requests == []


async def test_a_sync_executes_only_what_the_preview_shows() -> None:
    stage = Stage(tree(leaves=3), tree("other", leaves=1))
    shown = {operation.key for plan in (await preview(stage.engine)).planned.plans for operation in plan.operations}

    await stage.sync(wait=False)

    assert set(stage.shelf.started) <= shown


async def test_when_no_root_is_seen_nothing_is_touched() -> None:
    orphan = body(LEAF, "orphan", labels={"app": "ours", "root": "gone"})
    stage = Stage(orphan)

    report = await stage.sync()

    assert report.ending is Ending.DENIED
    assert [objection.rule for objection in report.objections] == ["no-roots"]
    assert stage.shelf.started == []


async def test_a_plan_over_its_budget_is_not_executed_and_the_others_are() -> None:
    stage = Stage(tree("other", leaves=1))
    uid = stage.shelf.put(tree("big", leaves=0))["metadata"]["uid"]
    for number in range(3):
        stray = body(LEAF, f"stray-{number}", labels={"app": "ours", "root": "big"})
        stray["metadata"]["ownerReferences"] = [{"kind": "Root", "name": "big", "uid": uid, "controller": True}]
        stage.shelf.put(stray)
    stage.engine = Engine(stage.shelf, stage.clock, SCOPE, (Orchard(),), None, Limits(max_deletes=2))

    report = await stage.sync()

    assert report.ending is Ending.DENIED
    assert stage.shelf.writes[Verb.DELETE] == 0
    assert leaf("other-0") in stage.shelf.objects


async def test_a_root_that_makes_no_sense_fails_alone() -> None:
    stage = Stage(tree("bad", leaves=1, nonsense=True), tree("good", leaves=1))

    report = await stage.sync()

    assert report.ending is Ending.FAILED
    assert report.problems == ("spec.nonsense: nobody knows what this means",)
    assert stage.shelf.objects[root("good")]["status"]["ripe"] == 1


async def test_what_cannot_be_seen_is_left_alone_and_said() -> None:
    stage = Stage(tree(leaves=2))
    stage.shelf.incomplete = {"Leaf": "forbidden"}

    report = await stage.sync()

    assert report.ending is Ending.INCOMPLETE
    assert report.incomplete == {"Leaf": "forbidden"}
    assert stage.shelf.writes[Verb.CREATE] == 0
    assert stage.clock.monotonic() < 15


async def test_what_is_paused_is_held_and_no_reason_to_wait() -> None:
    stage = Stage(tree(leaves=2, paused=True))

    report = await stage.sync()

    assert report.ending is Ending.DONE
    assert sum(len(plan.deferred) for plan in report.plans) == 2
    assert stage.clock.monotonic() < 2


async def test_what_is_paused_is_no_reason_to_wait_for_a_cluster_that_never_rests() -> None:
    stage = Stage(tree(leaves=2, paused=True))

    async def never_rest() -> None:
        while True:
            stage.shelf.put(stage.shelf.objects[root()])
            await stage.clock.sleep(0.1)

    stage.ripening = never_rest
    report = await stage.sync()

    assert report.ending is Ending.DONE
    assert stage.clock.monotonic() < 15


async def test_what_is_forbidden_is_asked_for_once_and_ends_the_wait() -> None:
    stage = Stage(tree(leaves=2))
    denied = create("root-1")
    stage.shelf.failing[denied.key] = [Forbidden("leaves are not for you") for _ in range(100)]

    report = await stage.sync()

    assert report.ending is Ending.FAILED
    assert [(result.operation.id.name, str(result.error)) for result in report.failures] == [("root-1", "leaves are not for you")]
    assert stage.shelf.started.count(denied.key) == 1
    assert stage.clock.monotonic() < 10


async def test_a_field_that_another_writer_takes_back_each_time_is_not_fought_over_for_ever() -> None:
    stage = Stage(tree(leaves=1))
    await stage.sync()
    shelf = stage.shelf

    async def take_back() -> None:
        while True:
            tree = shelf.objects[root()]
            if tree["status"]["ripe"]:
                shelf.put({**tree, "status": {**tree["status"], "ripe": 0}})
            await stage.clock.sleep(0.05)

    stage.ripening = take_back
    shelf.writes.clear()

    report = await stage.sync()

    assert report.ending is Ending.FAILED
    assert "undone each time" in str(report.failures[0].error)
    assert shelf.writes[Verb.STATUS] < 10


async def test_a_server_that_stumbles_is_asked_again() -> None:
    stage = Stage(tree(leaves=2))
    stage.shelf.failing[create("root-1").key] = [ServerFault("etcd is away"), Unreachable("cut")]
    stage.shelf.unseeing = []

    report = await stage.sync()

    assert report.ending is Ending.DONE
    assert report.failures == ()
    assert {Outcome.FAILED, Outcome.DONE} == {result.outcome for result in report.results}


async def test_a_look_that_fails_in_the_middle_is_repeated_and_one_that_fails_first_is_final() -> None:
    stage = Stage(tree(leaves=2))
    stage.shelf.on_call = lambda key: None if stage.shelf.ended else stage.shelf.unseeing.extend([Unreachable("cut"), ServerFault("500")])

    assert (await stage.sync()).ending is Ending.DONE

    stage.shelf.unseeing = [Unreachable("refused")]
    with pytest.raises(Unreachable):
        await sync(stage.engine, stage.lease)


async def test_a_name_that_another_holds_fails_its_root_with_the_name_of_the_holder() -> None:
    foreign = body(LEAF, "root-1", labels={})
    stage = Stage(tree(leaves=2), foreign)

    report = await stage.sync()

    assert report.ending is Ending.FAILED
    assert [held.why for held in report.collisions] == ["Leaf default/root-1 already exists but is not controlled by Root default/root"]
    assert stage.shelf.objects[leaf("root-1")]["metadata"]["labels"] == {}
    assert stage.clock.monotonic() < 10


async def test_a_name_whose_holder_is_leaving_is_waited_for() -> None:
    foreign = body(LEAF, "root-1", labels={})
    foreign["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    stage = Stage(tree(leaves=2), foreign)

    async def leave() -> None:
        await stage.clock.sleep(5)
        del stage.shelf.objects[leaf("root-1")]
        await ripen(stage.shelf, stage.clock)

    stage.ripening = leave
    report = await stage.sync()

    assert report.ending is Ending.DONE


async def test_an_interrupted_sync_says_what_it_has_done_and_what_not() -> None:
    stage = Stage(tree(leaves=50))
    stage.engine = Engine(stage.shelf, stage.clock, SCOPE, (Orchard(),), None, concurrency=1)
    stop = anyio.CancelScope()
    stage.shelf.on_call = lambda key: stop.cancel() if len(stage.shelf.started) == 5 else None

    report = await stage.sync(stop=stop)

    assert report.ending is Ending.INTERRUPTED
    assert [result.outcome for result in report.results] == [Outcome.DONE] * 5
    assert sum(operation.verb is Verb.CREATE for operation in report.undone) == 45
    assert stage.leases.holder == ""


async def test_an_interruption_while_waiting_for_the_lease_does_nothing() -> None:
    stage = Stage(tree(leaves=1))
    stage.leases.keep(record("another", stage.clock))
    stop = anyio.CancelScope()
    stop.cancel()

    report = await stage.sync(stop=stop)

    assert report.ending is Ending.INTERRUPTED
    assert stage.shelf.started == []


async def test_while_another_leads_nothing_is_done() -> None:
    stage = Stage(tree(leaves=1))
    async with anyio.create_task_group() as group:
        group.start_soon(_hold, stage, "another")
        await stage.clock.advance(1)
        with pytest.raises(ExceptionGroup) as caught:
            await stage.sync()
        group.cancel_scope.cancel()

    assert caught.group_contains(LeaseTaken)
    assert stage.shelf.started == []


async def test_a_lease_lost_in_the_middle_ends_the_session_and_is_reported() -> None:
    stage = Stage(tree(leaves=1))

    async def usurp() -> None:
        await stage.clock.sleep(5)
        stage.leases.keep(record("usurper", stage.clock))

    stage.ripening = usurp
    report = await stage.sync()

    assert report.ending is Ending.FAILED
    assert "no longer ours" in str(report.error)


async def test_what_has_been_done_is_told_and_telling_may_fail() -> None:
    stage = Stage(tree(leaves=2))

    def events_of_pass(faults: Sequence[RootWarning], results: Sequence[Result]) -> tuple[Event, ...]:
        return tuple(Event(result.operation.id, "", "Created", "made") for result in results if result.operation.verb is Verb.CREATE)

    async def refuse(event: Event) -> None:
        stage.shelf.events.append(event)
        raise Forbidden("events are not for you")

    stage.shelf.record = refuse  # type: ignore[method-assign]
    stage.engine = Engine(stage.shelf, stage.clock, SCOPE, (Orchard(),), None, events_of=events_of_pass)

    assert (await stage.sync()).ending is Ending.DONE
    assert {event.about.name for event in stage.shelf.events} == {"root-0", "root-1"}


async def test_a_fault_is_told_once_and_again_when_its_root_was_edited_and_still_has_it() -> None:
    stage = Stage(tree(nonsense=True), tree("sound", leaves=1))
    stage.engine = Engine(stage.shelf, stage.clock, SCOPE, (Orchard(),), None, events_of=tell_faults)
    stage.ripening = lambda: ripen(stage.shelf, stage.clock, after=30)

    await stage.sync()
    uid = stage.shelf.objects[root()]["metadata"]["uid"]
    (told,) = stage.shelf.events
    assert (told.about, told.uid, told.message) == (root(), uid, "1: spec.nonsense: nobody knows what this means")

    memory = Memory()
    await one_pass(stage, memory)
    stage.shelf.put({**stage.shelf.objects[root()], "metadata": {"name": "root", "namespace": "default", "generation": 2}})
    await one_pass(stage, memory)
    await one_pass(stage, memory)
    assert [event.message[:2] for event in stage.shelf.events] == ["1:", "1:", "2:"]


async def test_a_fault_of_a_manifest_that_is_only_proposed_is_nobodys_news() -> None:
    stage = Stage(tree(leaves=1))
    stage.engine = Engine(stage.shelf, stage.clock, SCOPE, (Orchard(),), None, events_of=tell_faults)

    report = await stage.sync(manifests=[tree(nonsense=True), tree("new", nonsense=True)])

    assert len(report.problems) == 2
    assert stage.shelf.events == []


def tell_faults(faults: Sequence[RootWarning], results: Sequence[Result]) -> tuple[Event, ...]:
    """Nothing but faults."""
    return tuple(Event(fault.root, fault.uid, "Faulty", f"{fault.generation}: {fault.text}", warning=True) for fault in faults)


async def one_pass(stage: Stage, memory: Memory) -> None:
    """What a loop does once."""
    seen = await look(stage.engine, memory)
    await act(stage.engine, memory, seen, choose(seen, memory, stage.clock.monotonic()))


async def _hold(stage: Stage, name: str) -> None:
    async with held(Lease(cast(Client, stage.leases), stage.clock, "default", "engine", name)):
        await anyio.sleep_forever()
