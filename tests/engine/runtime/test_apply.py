"""Apply: what a plan's edges promise, and what becomes of each answer."""

from collections.abc import Sequence

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import AlreadyExists, ClusterError, Conflict, Forbidden, Invalid, NotFound, ServerFault, Throttled, Unreachable
from engine.operation import Operation
from engine.plan import Plan
from engine.result import Outcome, Result
from engine.runtime.apply import ATTEMPTS, SILENCE, apply
from engine.verb import Verb
from providers.sandbox.clock import VirtualClock
from tests.engine.runtime.fakes import LEAF, ROOT, Shelf, body, change, create, leaf, plan, root

pytestmark = pytest.mark.anyio


async def outcomes(shelf: Shelf, *plans: Plan, concurrency: int = 24) -> dict[str, Outcome]:
    """How each object's operation ended."""
    results = await apply(plans, shelf, VirtualClock(), concurrency=concurrency)
    return {result.operation.id.name: result.outcome for result in results}


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[Operation], dict[str, set[str]]]:
    """Creates with edges to earlier ones, in any order, and the edges by name."""
    count = draw(st.integers(1, 12))
    names = [f"leaf-{number}" for number in range(count)]
    edges = {name: set(draw(st.lists(st.sampled_from(names[:place]), max_size=3))) if place else set() for place, name in enumerate(names)}
    operations = [create(name, *edges[name]) for name in names]
    return draw(st.permutations(operations)), edges


@given(graphs(), st.integers(1, 5))
def test_every_operation_begins_after_the_end_of_what_it_comes_after(
    drawn: tuple[Sequence[Operation], dict[str, set[str]]], concurrency: int
) -> None:
    operations, edges = drawn
    shelf = Shelf()
    order: list[str] = []
    shelf.on_call = lambda key: order.append(f"begin {key.rpartition('/')[2]}")

    def note(result: Result) -> None:
        order.append(f"end {result.operation.id.name}")

    async def walk() -> list[Result]:
        return await apply([plan(*operations)], shelf, VirtualClock(), concurrency=concurrency, on_result=note)

    results = anyio.run(walk)

    assert {result.outcome for result in results} == {Outcome.DONE}
    assert len(results) == len(operations)
    assert shelf.most_under_way <= concurrency
    for name, before in edges.items():
        assert all(order.index(f"end {each}") < order.index(f"begin {name}") for each in before)


async def test_an_operation_begins_as_soon_as_its_own_dependencies_are_done() -> None:
    shelf = Shelf()
    slow = create("slow")
    shelf.gates[slow.key] = anyio.Event()
    shelf.on_call = lambda key: shelf.gates[slow.key].set() if "after-fast" in key else None

    with anyio.fail_after(5):
        done = await outcomes(shelf, plan(slow, create("fast"), create("after-fast", "fast")))

    assert set(done.values()) == {Outcome.DONE}


async def test_what_comes_after_a_failure_is_skipped_and_the_rest_goes_on() -> None:
    shelf = Shelf()
    failing = create("failing")
    shelf.failing[failing.key] = [Invalid("spec.size: must be positive")]

    results = await apply(
        [plan(failing, create("child", "failing"), create("grandchild", "child", "other"), create("other"))], shelf, VirtualClock()
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
    shelf = Shelf()
    shelf.failing[create("secret").key] = [Forbidden("may not create")]

    done = await outcomes(shelf, plan(create("secret")), plan(create("plain"), name="other"))

    assert done == {"secret": Outcome.FAILED, "plain": Outcome.DONE}


async def test_the_uid_of_an_owner_made_by_the_plan_reaches_its_children() -> None:
    shelf = Shelf()

    await outcomes(shelf, plan(create("parent"), create("child", "parent", owner=leaf("parent"))))

    owner = shelf.objects[leaf("child")]["metadata"]["ownerReferences"][0]
    assert owner["uid"] == shelf.objects[leaf("parent")]["metadata"]["uid"]


async def test_thousands_of_operations_share_a_few_workers() -> None:
    shelf = Shelf()

    done = await outcomes(shelf, plan(*(create(f"leaf-{number}") for number in range(4500))), concurrency=24)

    assert len(done) == 4500
    assert shelf.most_under_way == 24


async def test_an_empty_plan_calls_nobody() -> None:
    shelf = Shelf()

    assert await outcomes(shelf, plan()) == {}
    assert shelf.started == []


@pytest.mark.parametrize("error", [Unreachable("cut"), ServerFault("etcd is away"), AlreadyExists("there")])
async def test_a_create_whose_answer_was_lost_is_done(error: ClusterError) -> None:
    shelf = Shelf(body(ROOT, "root"))
    made = create("leaf", owner=shelf.objects[root()]["metadata"]["uid"])
    shelf.losing[made.key] = error

    results = await apply([plan(made, create("next", "leaf"))], shelf, VirtualClock())

    assert [result.outcome for result in results] == [Outcome.DONE, Outcome.DONE]
    assert results[0].live is not None
    assert results[0].live["metadata"]["uid"] == shelf.objects[leaf("leaf")]["metadata"]["uid"]
    assert shelf.started.count(made.key) == 1


async def test_a_create_that_did_not_happen_has_failed() -> None:
    shelf = Shelf()
    shelf.failing[create("leaf").key] = [ServerFault("etcd is away")]

    assert await outcomes(shelf, plan(create("leaf"))) == {"leaf": Outcome.FAILED}
    assert shelf.looked == [leaf("leaf")]


@pytest.mark.parametrize(
    ("there", "holder"),
    [
        ({"labels": {"app": "theirs"}, "owner": "uid-1"}, "belongs to Root/root"),
        ({"labels": {"app": "ours"}, "owner": "uid-of-another"}, "belongs to Root/root"),
        ({"labels": {"app": "ours"}, "owner": ""}, "is not ours"),
        ({"labels": {"app": "ours"}, "owner": "uid-1", "deleting": True}, "still being deleted"),
    ],
)
async def test_a_name_held_by_another_is_told_and_handed_back(there: dict[str, object], holder: str) -> None:
    held = body(LEAF, "leaf", labels=there["labels"])  # type: ignore[arg-type]
    if there["owner"]:
        held["metadata"]["ownerReferences"] = [{"kind": "Root", "name": "root", "uid": there["owner"], "controller": True}]
    if there.get("deleting"):
        held["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    shelf = Shelf(body(ROOT, "root"), held)

    result = (await apply([plan(create("leaf", owner="uid-1"))], shelf, VirtualClock()))[0]

    assert result.outcome is Outcome.CONFLICT
    assert holder in str(result.error)
    assert result.live == shelf.objects[leaf("leaf")]


@pytest.mark.parametrize("error", [Conflict("changed"), NotFound("gone")])
async def test_a_patch_of_what_has_changed_or_gone_asks_for_another_look(error: ClusterError) -> None:
    shelf = Shelf(body(LEAF, "leaf"))
    patch = change(Verb.PATCH, leaf("leaf"), {"spec": {"size": 2}})
    shelf.failing[patch.key] = [error]

    assert await outcomes(shelf, plan(patch)) == {"leaf": Outcome.CONFLICT}


async def test_a_release_whose_test_fails_asks_for_another_look() -> None:
    shelf = Shelf(body(LEAF, "leaf"))
    release = change(Verb.RELEASE, leaf("leaf"), {"finalizers": ["ours"], "of": ["ours"]})
    shelf.failing[release.key] = [Invalid("the server rejected our request due to an error in our request")]

    assert await outcomes(shelf, plan(release)) == {"leaf": Outcome.CONFLICT}


async def test_a_throttled_call_is_made_again_when_the_server_says() -> None:
    shelf, clock = Shelf(), VirtualClock()
    shelf.failing[create("leaf").key] = [Throttled("busy", retry_after=7), Throttled("busy", retry_after=7)]
    results: list[Result] = []

    async with anyio.create_task_group() as group:
        group.start_soon(lambda: apply([plan(create("leaf"))], shelf, clock, on_result=results.append))
        await clock.advance(13.9)
        before = len(results)
        await clock.advance(0.2)

    assert (before, [result.outcome for result in results]) == (0, [Outcome.DONE])


async def test_a_server_that_throttles_for_ever_is_given_up() -> None:
    shelf, clock = Shelf(), VirtualClock()
    shelf.failing[create("leaf").key] = [Throttled("busy", retry_after=10_000) for _ in range(ATTEMPTS)]
    results: list[Result] = []

    async with anyio.create_task_group() as group:
        group.start_soon(lambda: apply([plan(create("leaf"))], shelf, clock, on_result=results.append))
        await clock.advance(300)

    assert [result.outcome for result in results] == [Outcome.FAILED]


async def test_a_server_that_has_gone_away_is_not_asked_thousands_of_times() -> None:
    shelf = Shelf()
    creates = [create(f"leaf-{number}") for number in range(1000)]
    for each in creates:
        shelf.failing[each.key] = [Unreachable("refused")]

    done = await outcomes(shelf, plan(*creates), concurrency=4)

    assert len(shelf.started) < SILENCE + 4
    assert list(done.values()).count(Outcome.SKIPPED) == 1000 - len(shelf.started)


async def test_nothing_is_written_once_we_may_no_longer() -> None:
    shelf = Shelf()

    results = await apply(
        [plan(*(create(f"leaf-{number}") for number in range(5)))], shelf, VirtualClock(), concurrency=1, may=lambda: len(shelf.started) < 2
    )

    assert [result.outcome for result in results] == [Outcome.DONE, Outcome.DONE] + [Outcome.SKIPPED] * 3


async def test_when_stopped_calls_under_way_end_and_no_other_begins() -> None:
    shelf = Shelf()
    first = create("leaf-0")
    shelf.gates[first.key] = anyio.Event()
    results: list[Result] = []
    scope = anyio.CancelScope()

    async def walk() -> None:
        with scope:
            await apply([plan(first, create("leaf-1"))], shelf, VirtualClock(), concurrency=1, on_result=results.append)

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(walk)
            await anyio.wait_all_tasks_blocked()
            scope.cancel()
            await anyio.wait_all_tasks_blocked()
            shelf.gates[first.key].set()

    assert scope.cancelled_caught
    assert [(result.operation.id.name, result.outcome) for result in results] == [("leaf-0", Outcome.DONE)]
    assert shelf.started == [first.key]


async def test_when_stopped_a_call_that_does_not_end_in_time_is_cut_and_said_to_be_uncertain() -> None:
    shelf = Shelf()
    shelf.gates[create("leaf").key] = anyio.Event()
    results: list[Result] = []

    with anyio.CancelScope() as scope:
        shelf.on_call = lambda key: scope.cancel()
        await apply([plan(create("leaf"))], shelf, VirtualClock(), grace=0, on_result=results.append)

    assert [result.outcome for result in results] == [Outcome.FAILED]
    assert "may have happened" in str(results[0].error)


async def test_a_bug_is_no_outcome_and_stops_the_walk() -> None:
    shelf = Shelf()
    shelf.failing[create("leaf").key] = [KeyError("a bug")]

    with pytest.raises(ExceptionGroup) as caught:
        await outcomes(shelf, plan(create("leaf")))

    assert caught.group_contains(KeyError)
