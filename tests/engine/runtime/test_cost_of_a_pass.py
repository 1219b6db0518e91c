"""What a pass does once a pod has changed depends on the root of the pod alone: not on how many others there are, and not on graphs."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from types import FrameType
from typing import Any, cast

import orjson
import pytest
from msgspec.structs import replace

from engine import diff, tick, world
from engine.observed import Live, live
from engine.operation import body_of
from engine.runtime.execution import WriterMemory, choose, execute
from engine.runtime.passes import Engine, observe_and_plan
from engine.runtime.provider import Observation, Provider, Scope
from engine.world_update import Changes, LiveChange
from enginectl.wiring.scope import scope_of
from grove_sandbox.clock import VirtualClock
from resources.base import kinds, labels
from resources.blueprints.dynamo_graph import DynamoGraphBlueprint
from resources.blueprints.podcliqueset import PodCliqueSetBlueprint
from resources.registry import BLUEPRINTS
from tests.builders import podcliqueset
from tests.counting import counted
from tests.laws.graphs import MANAGERS, ROOTS, GraphToy
from tests.laws.toy import Body
from tests.stories.graphs import graph, service

pytestmark = pytest.mark.anyio

MANY, FEW = 1000, 10
FURTHER_REPLICA = 700
"""How many instructions each replica costs beside that of a changed pod, at most."""
WORK: Mapping[str, Callable[..., Any]] = {
    "worlds assembled": world.assemble,
    "roots planned": tick.tick,
    "sets computed": PodCliqueSetBlueprint.desire,
    "graphs composed": DynamoGraphBlueprint.nested_roots,
    "graphs computed": DynamoGraphBlueprint.desire,
}
OF_THE_SET = {"roots planned": 1, "sets computed": 1}


@cache
def settled() -> tuple[Body, ...]:
    """A set with a pod, a set without any, a graph with its set, and what they consist of, with nothing left to do."""
    toy = GraphToy()
    toy.put(podcliqueset("demo"))
    toy.put(podcliqueset("empty", replicas=0))
    toy.put(graph() | {"spec": {"services": {"decode": service(1)}}})
    toy.settle()
    return tuple(toy.objects.values())


def fleet(sets: int, *, with_graph: bool) -> list[Live]:
    """The set with a pod beside that many others, and the graph."""
    lives = [live(body) for body in settled()]
    lives = [each for each in lives if each.id.kind in ROOTS or each.labels.get(labels.MANAGED_BY) in MANAGERS]
    kept = [each for each in lives if "empty" not in each.id.name and (with_graph or not each.id.name.startswith("chat"))]
    empty = orjson.dumps([each.body for each in lives if "empty" in each.id.name])
    for number in range(sets):
        copies = empty.replace(b"empty", b"empty-%04d" % number).replace(b'"uid-', b'"uid-%04d-' % number)
        kept += map(live, orjson.loads(copies))
    return kept


class Watched:
    """A cluster that says what has changed."""

    def __init__(self, lives: Sequence[Live]) -> None:
        self.lives = {live.id: live for live in lives}
        self.seen = self._whole()

    def _whole(self) -> Observation:
        lives = self.lives.values()
        return Observation([live for live in lives if live.id.kind in ROOTS], [live for live in lives if live.id.kind not in ROOTS])

    def touch(self, chosen: Live) -> None:
        """Let one object change."""
        new = replace(chosen, revision=f"{chosen.revision}0")
        self.lives[new.id] = new
        self.seen = replace(self._whole(), after=self.seen.token, changes=Changes([LiveChange(chosen, new)]))

    def put(self, changed: Live) -> None:
        """Let one object have been another one from the beginning."""
        self.lives[changed.id] = changed
        self.seen = self._whole()

    def find(self, kind: str, prefix: str) -> Live:
        """An object of that kind."""
        return next(live for id, live in sorted(self.lives.items()) if id.kind == kind and id.name.startswith(prefix))

    async def observe(self, scope: Scope) -> Observation:
        """The objects."""
        return self.seen


class Process:
    """A process that makes passes over a fleet."""

    def __init__(self, sets: int, *, with_graph: bool) -> None:
        self.cluster, self.memory = Watched(fleet(sets, with_graph=with_graph)), WriterMemory()
        configuration = GraphToy.configuration
        provider = cast(Provider, self.cluster)
        self.engine = Engine(provider, VirtualClock(), scope_of(configuration), BLUEPRINTS, configuration, looks_up_new=False)

    @classmethod
    def of_replicas(cls, replicas: int) -> "Process":
        """A process that makes passes over one set with so many replicas."""
        process, toy = cls(0, with_graph=False), GraphToy()
        toy.put(podcliqueset("demo", replicas=replicas))
        toy.settle()
        process.cluster = Watched(
            [each for each in map(live, toy.objects.values()) if each.labels.get(labels.MANAGED_BY) or each.id.kind in ROOTS]
        )
        process.engine = replace(process.engine, provider=cast(Provider, process.cluster))
        return process

    async def make_pass(self) -> None:
        """One pass, in which nothing is to be done."""
        current = await observe_and_plan(self.engine, self.memory)
        chosen = choose(current, self.memory, self.engine.clock.monotonic())
        assert not chosen
        await execute(self.engine, self.memory, current, chosen)

    async def first_two(self) -> tuple[dict[str, int], dict[str, int]]:
        """What is done in the first pass of the process, and in the next one, before which nothing has changed."""
        with counted(WORK) as first:
            await self.make_pass()
        self.cluster.seen = replace(self.cluster.seen, after=self.cluster.seen.token, changes=Changes())
        with counted(WORK) as second:
            await self.make_pass()
        return dict(first), dict(second)

    async def unchanged(self) -> int:
        """How many instructions a pass executes in which nothing has changed."""
        await self.make_pass()
        await self.make_pass()
        with all_instructions() as count:
            await self.make_pass()
        return count[0]

    async def after(self, kind: str, prefix: str) -> tuple[dict[str, int], int]:
        """What is done, and how many instructions are executed, in the pass after an object has changed."""
        await self.make_pass()
        await self.make_pass()
        self.cluster.touch(self.cluster.find(kind, prefix))
        with counted(WORK) as work:
            await self.make_pass()
        self.cluster.touch(self.cluster.find(kind, prefix))
        with all_instructions() as count:
            await self.make_pass()
        return dict(work), count[0]


@contextmanager
def all_instructions() -> Iterator[list[int]]:
    """How many instructions of Python are executed within the block: of every function, and of every step of a loop."""
    count = [0]

    def note(frame: FrameType, event: str, argument: Any) -> Any:
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        count[0] += event == "opcode"
        return note

    sys.settrace(note)
    try:
        yield count
    finally:
        sys.settrace(None)


@pytest.mark.parametrize("with_graph", [False, True])
async def test_after_a_changed_pod_only_its_set_is_planned(with_graph: bool) -> None:
    work, _ = await Process(FEW, with_graph=with_graph).after("Pod", "demo")

    assert work == OF_THE_SET


async def test_a_changed_pod_costs_the_same_beside_a_thousand_sets_and_a_graph() -> None:
    _, alone = await Process(FEW, with_graph=False).after("Pod", "demo")
    _, few = await Process(FEW, with_graph=True).after("Pod", "demo")
    work, many = await Process(MANY, with_graph=True).after("Pod", "demo")

    assert work == OF_THE_SET
    assert few <= alone * 1.05
    assert many - few < MANY - FEW  # Not one instruction for each further set.


async def test_a_changed_pod_costs_little_for_each_further_replica_of_its_set() -> None:
    _, few = await Process.of_replicas(FEW).after("Pod", "demo")
    _, more = await Process.of_replicas(3 * FEW).after("Pod", "demo")

    assert more - few < 2 * FEW * FURTHER_REPLICA


async def test_of_a_replica_with_a_changed_pod_no_other_object_is_compared_again() -> None:
    process = Process.of_replicas(FEW)
    with counted({"compared": diff.compare}) as first:
        await process.make_pass()
    process.cluster.touch(process.cluster.find("Pod", "demo"))
    with counted({"compared": diff.compare}) as second:
        await process.make_pass()

    assert first["compared"] >= 4 * FEW
    assert second == {"compared": 1}


async def test_a_pass_in_which_nothing_has_changed_costs_the_same_beside_a_thousand_sets_and_a_graph() -> None:
    few = await Process(FEW, with_graph=True).unchanged()
    many = await Process(MANY, with_graph=True).unchanged()

    assert many - few < MANY - FEW


async def test_after_a_changed_pod_of_a_graph_the_graph_and_its_set_are_composed_and_planned() -> None:
    work, _ = await Process(FEW, with_graph=True).after("Pod", "chat")

    assert work == {"roots planned": 2, "sets computed": 1, "graphs composed": 1, "graphs computed": 1}


async def test_after_a_changed_set_without_objects_only_that_set_is_planned() -> None:
    work, _ = await Process(FEW, with_graph=True).after(kinds.PODCLIQUESET.name, "empty-0003")

    assert work == OF_THE_SET


async def test_the_pass_after_the_first_one_of_a_process_plans_nothing_anew() -> None:
    first, second = await Process(FEW, with_graph=True).first_two()

    assert (first["sets computed"], second) == (FEW + 2, {})


async def test_sets_that_list_failed_calls_of_an_earlier_process_are_planned_again_once_it_is_known_that_none_fails() -> None:
    process = Process(FEW, with_graph=False)
    clique = process.cluster.find(kinds.PODCLIQUE.name, "demo")
    errors = [{"code": "ERR_CREATE_POD", "description": "no room", "observedAt": "2026-01-01T00:00:00Z"}]
    process.cluster.put(live({**clique.body, "status": {**clique.body["status"], "lastErrors": errors}}))
    current = await observe_and_plan(process.engine, process.memory)
    assert [wait.id for plan in current.planned.plans for wait in plan.deferred] == [clique.id]
    await execute(process.engine, process.memory, current, ())

    current = await observe_and_plan(process.engine, process.memory)

    (status,) = [operation for plan in current.planned.plans for operation in plan.operations]
    assert (status.id, body_of(status)) == (clique.id, {"status": {"lastErrors": None}})
