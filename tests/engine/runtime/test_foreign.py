"""ForeignObjects: a taken name stays known while its object exists, and never longer."""

import anyio
import pytest
from msgspec.structs import replace

from engine.errors import AlreadyExists, Forbidden, Unauthorized, Unreachable
from engine.observed import Observed, Unlisted, World, live, slice_of
from engine.operation import Cause, Create, Outcome, Result, operation_key
from engine.runtime.execution import WriterMemory, choose, execute, note_sent, sender
from engine.runtime.foreign import ForeignObjects
from engine.runtime.passes import observe_and_plan
from engine.verb import Verb
from tests.engine.runtime.fakes import LEAF, FakeProvider, body, create, leaf, plan, root
from tests.engine.runtime.stage import Stage
from tests.engine.runtime.toy import root_body

pytestmark = pytest.mark.anyio


def conflicting(provider: FakeProvider) -> ForeignObjects:
    """What is known after a create of `a` has run into the provider's object of that name."""
    foreign, operation = ForeignObjects(), create("a")
    foreign.note([plan(operation)], [Result(operation, Outcome.CONFLICT, live(provider.objects[leaf("a")]), AlreadyExists("taken"))])
    return foreign


async def test_an_object_is_forgotten_when_it_is_gone_and_so_is_its_root() -> None:
    provider = FakeProvider(body(LEAF, "a", labels={}))
    foreign = conflicting(provider)
    assert [live.id for live in foreign.known[root()]] == [leaf("a")]
    del provider.objects[leaf("a")]

    await foreign.refresh(provider)

    assert foreign.known == {}


async def test_an_object_whose_labels_were_restored_is_forgotten_once_it_is_listed() -> None:
    provider = FakeProvider(body(LEAF, "a", labels={}))
    foreign = conflicting(provider)
    listed = live(provider.objects[leaf("a")])
    observed = Observed(live(root_body(leaves=1)), {"": slice_of([listed])})

    foreign.forget_listed(World((replace(observed, slices={}),)))
    assert foreign.known != {}

    foreign.forget_listed(World((observed,)))
    assert foreign.known == {}


async def test_an_object_that_may_no_longer_be_read_stays_as_it_was_known() -> None:
    provider = FakeProvider(body(LEAF, "a", labels={}))
    foreign = conflicting(provider)
    before = foreign.known
    provider.get_errors[leaf("a")] = Forbidden("leaves is forbidden")

    await foreign.refresh(provider)

    assert foreign.known == before


@pytest.mark.parametrize("error", [Unreachable("no answer"), Unauthorized("log in again")])
async def test_an_error_that_concerns_the_whole_server_is_raised(error: Unreachable | Unauthorized) -> None:
    provider = FakeProvider(body(LEAF, "a", labels={}))
    foreign = conflicting(provider)
    provider.get_errors[leaf("a")] = error

    with pytest.raises(type(error)):
        await foreign.refresh(provider)


async def test_one_object_that_may_not_be_read_does_not_fail_the_pass() -> None:
    stage, memory = Stage(root_body(leaves=2), body(LEAF, "root-1", labels={})), WriterMemory()
    first = await observe_and_plan(stage.engine, memory)
    await execute(stage.engine, memory, first, choose(first, memory, 0.0))
    stage.provider.get_errors[leaf("root-1")] = Forbidden("leaves is forbidden")

    second = await observe_and_plan(stage.engine, memory)

    assert [id for observed in second.world.roots for id in observed.foreign] == [leaf("root-1")]


async def test_the_objects_of_a_deleted_root_are_forgotten_unless_roots_could_not_be_listed() -> None:
    foreign = conflicting(FakeProvider(body(LEAF, "a", labels={})))

    foreign.forget_listed(World((), incomplete={"Root": Unlisted("500")}))
    assert foreign.known != {}

    foreign.forget_listed(World(()))
    assert foreign.known == {}


def test_a_root_that_somebody_else_created_first_is_not_foreign_to_itself() -> None:
    existing, operation = FakeProvider().put(root_body(leaves=1)), Create(root(), "new", Cause.INTENT, manifest={})
    foreign = ForeignObjects()
    foreign.note([plan(operation)], [Result(operation, Outcome.CONFLICT, live(existing), AlreadyExists("taken"))])

    foreign.forget_listed(World((Observed(live(existing), {}),)))

    assert foreign.known == {}


def with_surplus() -> Stage:
    """A root that wants one leaf and has two."""
    stage = Stage(root_body(leaves=1))
    owner = {"kind": "Root", "name": "root", "uid": stage.provider.objects[root()]["metadata"]["uid"], "controller": True}
    for name in ("root-0", "root-1"):
        owned = body(LEAF, name, labels={"app": "ours", "root": "root"})
        owned["metadata"]["ownerReferences"] = [owner]
        stage.provider.put(owned)
    return stage


async def test_an_object_that_is_gone_before_its_deletion_is_answered_is_not_looked_up() -> None:
    stage, memory = with_surplus(), WriterMemory()
    first = await observe_and_plan(stage.engine, memory)
    key = operation_key(Verb.DELETE, leaf("root-1"))
    gate = stage.provider.gates[key] = anyio.Event()
    sending = sender(stage.engine, memory)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(sending.run)
        sending.add(choose(first, memory, 0.0), 1.0)
        await anyio.wait_all_tasks_blocked()
        assert key in stage.provider.started
        del stage.provider.objects[leaf("root-1")]

        await observe_and_plan(stage.engine, memory)

        gate.set()
        tasks.cancel_scope.cancel()
    assert stage.provider.asked == set()


async def test_an_object_that_we_have_deleted_is_not_looked_up_however_often_results_are_noted_before_the_next_pass() -> None:
    stage, memory = with_surplus(), WriterMemory()
    first = await observe_and_plan(stage.engine, memory)
    await execute(stage.engine, memory, first, choose(first, memory, 0.0))
    assert leaf("root-1") not in stage.provider.objects
    await note_sent(stage.engine, memory, first, sender(stage.engine, memory))

    await observe_and_plan(stage.engine, memory)

    assert stage.provider.asked == set()
