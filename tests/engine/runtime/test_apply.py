"""Apply: operations follow the edges of their plan, and each answer of the server becomes a result."""

from collections.abc import Sequence

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.errors import AlreadyExists, ClusterError, Conflict, Forbidden, Invalid, NotFound, ServerFault, Throttled, Unreachable
from engine.operation import Operation, Outcome, Result
from engine.plan import Plan
from engine.resource import NOW
from engine.runtime.apply import REPORTS
from engine.runtime.call_limit import CallLimit
from engine.runtime.calls import ATTEMPTS, MAX_UNANSWERED
from engine.verb import Verb
from grove_sandbox.clock import VirtualClock
from tests.engine.runtime.fakes import LEAF, ROOT, FakeProvider, body, change, create, delay, leaf, plan, root
from tests.sending import apply
from tests.waiting import PATIENCE

pytestmark = pytest.mark.anyio


async def outcomes(provider: FakeProvider, *plans: Plan, concurrency: int = 24) -> dict[str, Outcome]:
    """Name of the object -> the outcome of its operation."""
    results = await apply(plans, provider, VirtualClock(), concurrency=concurrency)
    return {result.operation.id.name: result.outcome for result in results}


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[Operation], dict[str, set[str]]]:
    """Creates with edges to earlier ones, shuffled; and the edges by name."""
    count = draw(st.integers(1, 12))
    names = [f"leaf-{number}" for number in range(count)]
    edges = {name: set(draw(st.lists(st.sampled_from(names[:place]), max_size=3))) if place else set() for place, name in enumerate(names)}
    operations = [create(name, *edges[name]) for name in names]
    return draw(st.permutations(operations)), edges


@given(graphs(), st.integers(1, 5))
def test_every_operation_starts_after_the_end_of_those_in_its_after(
    drawn: tuple[Sequence[Operation], dict[str, set[str]]], concurrency: int
) -> None:
    operations, edges = drawn
    provider = FakeProvider()
    order: list[str] = []
    provider.on_call = lambda key: order.append(f"start {key.rpartition('/')[2]}")

    def record(result: Result) -> None:
        order.append(f"end {result.operation.id.name}")

    async def run() -> list[Result]:
        return await apply([plan(*operations)], provider, VirtualClock(), concurrency=concurrency, on_result=record)

    results = anyio.run(run)

    assert {result.outcome for result in results} == {Outcome.DONE}
    assert len(results) == len(operations)
    assert provider.most_in_progress <= concurrency
    for name, before in edges.items():
        assert all(order.index(f"end {earlier}") < order.index(f"start {name}") for earlier in before)


async def test_an_operation_starts_as_soon_as_its_own_dependencies_are_done() -> None:
    provider = FakeProvider()
    slow = create("slow")
    provider.gates[slow.key] = anyio.Event()
    provider.on_call = lambda key: provider.gates[slow.key].set() if "after-fast" in key else None

    with anyio.fail_after(PATIENCE):
        ended = await outcomes(provider, plan(slow, create("fast"), create("after-fast", "fast")))

    assert set(ended.values()) == {Outcome.DONE}


async def test_what_has_been_begun_is_completed_before_anything_else_is_begun() -> None:
    provider = FakeProvider()
    replicas = [(create(f"clique-{number}"), create(f"pod-{number}", f"clique-{number}")) for number in range(3)]

    await outcomes(provider, plan(*(clique for clique, _ in replicas), *(pod for _, pod in replicas)), concurrency=1)

    assert provider.started == [operation.key for replica in replicas for operation in replica]


async def test_dependents_of_a_failed_operation_are_skipped_and_the_others_are_done() -> None:
    provider = FakeProvider()
    failing = create("failing")
    provider.failing[failing.key] = [Invalid("spec.size: must be positive")]

    results = await apply(
        [plan(failing, create("child", "failing"), create("grandchild", "child", "other"), create("other"))], provider, VirtualClock()
    )

    by_name = {result.operation.id.name: result for result in results}
    assert {name: result.outcome for name, result in by_name.items()} == {
        "failing": Outcome.FAILED,
        "child": Outcome.SKIPPED,
        "grandchild": Outcome.SKIPPED,
        "other": Outcome.DONE,
    }
    assert "create Leaf/default/failing" in str(by_name["grandchild"].error)
    assert "must be positive" in str(by_name["grandchild"].error)


async def test_a_forbidden_operation_fails_alone() -> None:
    provider = FakeProvider()
    provider.failing[create("secret").key] = [Forbidden("may not create")]

    ended = await outcomes(provider, plan(create("secret")), plan(create("plain"), name="other"))

    assert ended == {"secret": Outcome.FAILED, "plain": Outcome.DONE}


async def test_a_name_that_is_taken_by_what_we_may_not_read_says_which_permission_is_missing() -> None:
    provider = FakeProvider()
    provider.failing[create("taken").key] = [AlreadyExists("leaf taken exists")]
    provider.get_errors[leaf("taken")] = Forbidden('cannot get resource "leaves"')

    (result,) = await apply([plan(create("taken"))], provider, VirtualClock())

    assert result.outcome is Outcome.FAILED
    assert str(result.error) == 'leaf taken exists; who has the name is not known: cannot get resource "leaves"'


async def test_children_get_the_uid_of_an_owner_that_the_same_plan_creates() -> None:
    provider = FakeProvider()

    results = await apply([plan(create("parent"), create("child", "parent", owner=leaf("parent")))], provider, VirtualClock())

    uid = provider.objects[leaf("parent")]["metadata"]["uid"]
    assert provider.objects[leaf("child")]["metadata"]["ownerReferences"][0]["uid"] == uid
    # The Event about a child is about its owner, also where the owner's own result was reported by an earlier pass.
    assert {result.operation.id.name: result.owner_uid for result in results} == {"parent": "", "child": uid}


async def test_thousands_of_operations_share_a_few_workers() -> None:
    provider = FakeProvider()

    ended = await outcomes(provider, plan(*(create(f"leaf-{number}") for number in range(4500))), concurrency=24)

    assert len(ended) == 4500
    assert provider.most_in_progress == 24


def statuses(count: int) -> tuple[FakeProvider, list[Operation]]:
    """A provider with so many leaves, and a status for each of them."""
    names = [f"reported-{number}" for number in range(count)]
    changes = [change(Verb.STATUS, leaf(name), {"status": {"ready": 1}}) for name in names]
    return FakeProvider(*(body(LEAF, name) for name in names)), changes


async def test_few_statuses_are_written_at_a_time() -> None:
    provider, changes = statuses(100)

    ended = await outcomes(provider, plan(*changes))

    assert list(ended.values()) == [Outcome.DONE] * 100
    assert provider.most_in_progress == REPORTS


async def test_statuses_do_not_delay_other_writes() -> None:
    provider, changes = statuses(50)

    await outcomes(provider, plan(*changes, create("first"), create("second", "first"), create("third", "second")), concurrency=4)

    creates = [position for position, key in enumerate(provider.started) if key.startswith("create")]
    assert len(provider.started) == 53
    assert max(creates) < 12, "each is sent as soon as the one before it is done"


async def test_statuses_that_are_not_answered_keep_no_other_write_waiting() -> None:
    provider, changes = statuses(REPORTS)
    provider.gates = {operation.key: anyio.Event() for operation in changes}

    def open_gates(key: str) -> None:
        for gate in provider.gates.values() if "last" in key else ():
            gate.set()

    provider.on_call = open_gates

    with anyio.fail_after(PATIENCE):
        ended = await outcomes(provider, plan(*changes, create("one"), create("last", "one")))

    assert set(ended.values()) == {Outcome.DONE}


async def slowly(provider: FakeProvider, *plans: Plan) -> list[Result]:
    """The results from a server that takes 0.4 seconds for each call, and gets 24 at a time."""
    clock = VirtualClock()
    delay(provider, clock, 0.4)
    results: list[list[Result]] = []

    async def run() -> None:
        results.append(await apply(plans, provider, clock, concurrency=24, call_limit=CallLimit(24)))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        await clock.run_until(lambda: bool(results))
    return results[0]


async def test_statuses_that_take_long_are_left_for_the_next_pass() -> None:
    provider, changes = statuses(100)

    results = await slowly(provider, plan(*changes))

    assert {result.outcome for result in results} == {Outcome.DONE}
    assert [result.operation for result in results] == changes[: 3 * REPORTS], "those that are begun within a second"


async def test_however_long_other_writes_take_statuses_are_written_after_them() -> None:
    provider, changes = statuses(3)
    creates = [create("leaf-0"), *(create(f"leaf-{number}", f"leaf-{number - 1}") for number in range(1, 20))]

    results = await slowly(provider, plan(*(replace(each, after=frozenset({creates[-1].key})) for each in changes), *creates))

    assert len(results) == 23


async def test_plans_that_are_not_begun_in_time_are_left_as_a_whole_and_those_that_are_begun_are_completed() -> None:
    provider = FakeProvider()
    names = [f"leaf-{number:03}" for number in range(100)]

    results = await slowly(provider, *(plan(create(name), create(f"{name}-next", name)) for name in names))

    assert sorted(result.operation.id.name for result in results) == sorted(each for name in names[:72] for each in (name, f"{name}-next"))
    assert {result.outcome for result in results} == {Outcome.DONE}


async def test_the_statuses_of_a_plan_that_is_left_are_left_with_it_and_plans_of_statuses_only_are_carried_out() -> None:
    provider, changes = statuses(2)
    names = [f"busy-{number:03}" for number in range(200)]

    results = await slowly(provider, *(plan(create(name)) for name in names), plan(create("late"), changes[0]), plan(changes[1]))

    assert [result.operation for result in results if result.operation.verb is Verb.STATUS] == [changes[1]]
    assert "late" not in {result.operation.id.name for result in results}


async def test_a_plan_that_takes_long_to_begin_is_carried_out_if_it_is_alone() -> None:
    provider = FakeProvider()

    results = await slowly(provider, plan(*(create(f"leaf-{number:03}") for number in range(300))))

    assert len(results) == 300


async def test_an_empty_plan_sends_nothing() -> None:
    provider = FakeProvider()

    assert await outcomes(provider, plan()) == {}
    assert provider.started == []


@pytest.mark.parametrize("error", [Unreachable("no answer"), ServerFault("etcd is down"), AlreadyExists("exists")])
async def test_a_create_whose_answer_was_lost_is_done(error: ClusterError) -> None:
    provider = FakeProvider(body(ROOT, "root"))
    operation = create("leaf", owner=provider.objects[root()]["metadata"]["uid"])
    provider.lost_answers[operation.key] = error

    results = await apply([plan(operation, create("next", "leaf"))], provider, VirtualClock())

    assert [result.outcome for result in results] == [Outcome.DONE, Outcome.DONE]
    assert results[0].uid == provider.objects[leaf("leaf")]["metadata"]["uid"]
    assert provider.started.count(operation.key) == 1


async def test_a_create_without_an_object_afterwards_has_failed() -> None:
    provider = FakeProvider()
    provider.failing[create("leaf").key] = [ServerFault("etcd is down")]

    assert await outcomes(provider, plan(create("leaf"))) == {"leaf": Outcome.FAILED}
    assert provider.got == [leaf("leaf")]


@pytest.mark.parametrize(
    ("existing", "message"),
    [
        ({"labels": {"app": "theirs"}, "owner": "uid-1"}, "belongs to Root/root"),
        ({"labels": {"app": "ours"}, "owner": "uid-of-another"}, "belongs to Root/root"),
        ({"labels": {"app": "ours"}, "owner": ""}, "is not ours"),
        ({"labels": {"app": "ours"}, "owner": "uid-1", "deleting": True}, "still being deleted"),
    ],
)
async def test_a_taken_name_is_a_conflict_with_the_existing_object(existing: dict[str, object], message: str) -> None:
    taken = body(LEAF, "leaf", labels=existing["labels"])  # type: ignore[arg-type]
    if existing["owner"]:
        taken["metadata"]["ownerReferences"] = [{"kind": "Root", "name": "root", "uid": existing["owner"], "controller": True}]
    if existing.get("deleting"):
        taken["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    provider = FakeProvider(body(ROOT, "root"), taken)

    result = (await apply([plan(create("leaf", owner="uid-1"))], provider, VirtualClock()))[0]

    assert result.outcome is Outcome.CONFLICT
    assert message in str(result.error)
    assert result.existing is not None
    assert result.existing.body == provider.objects[leaf("leaf")]


@pytest.mark.parametrize("error", [Conflict("changed"), NotFound("gone")])
async def test_a_patch_of_an_object_that_changed_or_is_gone_is_a_conflict(error: ClusterError) -> None:
    provider = FakeProvider(body(LEAF, "leaf"))
    patch = change(Verb.PATCH, leaf("leaf"), {"spec": {"size": 2}})
    provider.failing[patch.key] = [error]

    assert await outcomes(provider, plan(patch)) == {"leaf": Outcome.CONFLICT}


async def test_a_release_whose_test_fails_is_a_conflict() -> None:
    provider = FakeProvider(body(LEAF, "leaf"))
    release = change(Verb.RELEASE, leaf("leaf"), {"finalizers": ["ours"], "of": ["ours"]})
    provider.failing[release.key] = [Invalid("the server rejected our request due to an error in our request")]

    assert await outcomes(provider, plan(release)) == {"leaf": Outcome.CONFLICT}


async def test_a_throttled_call_is_sent_again_no_earlier_than_the_server_says() -> None:
    provider, clock = FakeProvider(), VirtualClock()
    provider.failing[create("leaf").key] = [Throttled("busy", retry_after=7), Throttled("busy", retry_after=7)]
    results: list[Result] = []

    async with anyio.create_task_group() as group:
        group.start_soon(lambda: apply([plan(create("leaf"))], provider, clock, on_result=results.append))
        await clock.advance(13.9)
        before = len(results)
        await clock.advance(3)

    assert (before, [result.outcome for result in results]) == (0, [Outcome.DONE])


async def test_an_operation_that_is_always_throttled_fails() -> None:
    provider, clock = FakeProvider(), VirtualClock()
    provider.failing[create("leaf").key] = [Throttled("busy", retry_after=10_000) for _ in range(ATTEMPTS)]
    results: list[Result] = []

    async with anyio.create_task_group() as group:
        group.start_soon(lambda: apply([plan(create("leaf"))], provider, clock, on_result=results.append))
        await clock.advance(300)

    assert [result.outcome for result in results] == [Outcome.FAILED]


async def test_a_server_that_does_not_answer_is_not_called_thousands_of_times() -> None:
    provider = FakeProvider()
    creates = [create(f"leaf-{number}") for number in range(1000)]
    for operation in creates:
        provider.failing[operation.key] = [Unreachable("refused")]

    ended = await outcomes(provider, plan(*creates), concurrency=4)

    assert len(provider.started) < MAX_UNANSWERED + 4
    assert list(ended.values()).count(Outcome.SKIPPED) == 1000 - len(provider.started)


async def test_nothing_is_written_after_the_lease_is_lost() -> None:
    provider = FakeProvider()

    results = await apply(
        [plan(*(create(f"leaf-{number}") for number in range(5)))],
        provider,
        VirtualClock(),
        concurrency=1,
        may_write=lambda: len(provider.started) < 2,
    )

    assert [result.outcome for result in results] == [Outcome.DONE, Outcome.DONE] + [Outcome.SKIPPED] * 3


async def test_when_cancelled_calls_in_progress_end_and_no_other_starts() -> None:
    provider = FakeProvider()
    first = create("leaf-0")
    provider.gates[first.key] = anyio.Event()
    results: list[Result] = []
    scope = anyio.CancelScope()

    async def run() -> None:
        with scope:
            await apply([plan(first, create("leaf-1"))], provider, VirtualClock(), concurrency=1, on_result=results.append)

    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            await anyio.wait_all_tasks_blocked()
            scope.cancel()
            await anyio.wait_all_tasks_blocked()
            provider.gates[first.key].set()

    assert scope.cancelled_caught
    assert [(result.operation.id.name, result.outcome) for result in results] == [("leaf-0", Outcome.DONE)]
    assert provider.started == [first.key]


async def test_when_cancelled_a_throttled_operation_is_reported_as_interrupted() -> None:
    provider, clock, results = FakeProvider(), VirtualClock(), list[Result]()
    provider.failing[create("leaf").key] = [Throttled("busy", retry_after=20)]
    scope = anyio.CancelScope()

    async def run() -> None:
        with scope:
            await apply([plan(create("leaf"), create("next", "leaf"))], provider, clock, on_result=results.append)

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        await clock.advance(1)
        scope.cancel()

    assert [(result.operation.id.name, result.outcome, str(result.error)) for result in results] == [
        ("leaf", Outcome.FAILED, "interrupted before it was sent again: busy")
    ]


async def test_a_status_is_sent_with_the_time_of_sending_and_its_result_keeps_the_marker() -> None:
    provider, clock = FakeProvider(body(LEAF, "leaf")), VirtualClock()
    status = change(Verb.STATUS, leaf("leaf"), {"status": {"conditions": [{"since": NOW}]}})

    (result,) = await apply([plan(status)], provider, clock)

    assert provider.objects[leaf("leaf")]["status"] == {"conditions": [{"since": clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")}]}
    assert result.operation is status


async def test_when_cancelled_a_call_that_does_not_end_in_time_is_reported_as_uncertain() -> None:
    provider = FakeProvider()
    provider.gates[create("leaf").key] = anyio.Event()
    results: list[Result] = []

    with anyio.CancelScope() as scope:
        provider.on_call = lambda key: scope.cancel()
        await apply([plan(create("leaf"))], provider, VirtualClock(), grace=0, on_result=results.append)

    assert [result.outcome for result in results] == [Outcome.FAILED]
    assert "may have been applied" in str(results[0].error)


async def test_a_defect_is_no_outcome_and_ends_apply() -> None:
    provider = FakeProvider()
    provider.failing[create("leaf").key] = [KeyError("a defect")]

    with pytest.raises(ExceptionGroup) as caught:
        await outcomes(provider, plan(create("leaf")))

    assert caught.group_contains(KeyError)
