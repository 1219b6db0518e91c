"""Loop: it goes on, whatever happens to a pass; it writes only as the leader; it stops when told."""

import io
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from engine.errors import Forbidden, ServerFault, Unreachable
from engine.runtime.logs import logger
from engine.runtime.loop import run
from engine.runtime.passes import Engine
from engine.verb import Verb
from tests.engine.runtime.fakes import ROOT, SCOPE, create, leaf, root
from tests.engine.runtime.leases import record
from tests.engine.runtime.orchard import Orchard, tree
from tests.engine.runtime.stage import Stage

pytestmark = pytest.mark.anyio


class Running:
    """A loop on a stage, and what it logs."""

    def __init__(self, stage: Stage, interval: float) -> None:
        self.stage = stage
        self.interval = interval
        self.stop = anyio.CancelScope()
        self.stream = io.StringIO()
        self.ended = anyio.Event()

    async def run(self) -> None:
        log = logger(self.stream, format="json", verbose=True)
        await run(self.stage.engine, self.stage.lease, log, interval=self.interval, stop=self.stop)
        self.ended.set()

    def events(self, event: str) -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in self.stream.getvalue().splitlines()]
        return [line for line in lines if line["event"] == event]


@asynccontextmanager
async def running(stage: Stage, interval: float = 60.0) -> AsyncIterator[Running]:
    loop = Running(stage, interval)
    async with anyio.create_task_group() as group:
        group.start_soon(stage.ripening)
        group.start_soon(loop.run)
        yield loop
        loop.stop.cancel()
        with anyio.fail_after(5):
            await loop.ended.wait()
        group.cancel_scope.cancel()


async def test_a_change_is_followed_within_the_interval_and_then_to_its_end() -> None:
    stage = Stage(tree(leaves=1))

    async with running(stage) as loop:
        await stage.clock.advance(30)
        assert stage.shelf.objects[root()]["status"]["ripe"] == 1
        stage.shelf.put({**stage.shelf.objects[root()], "spec": {"leaves": 3}})
        await stage.clock.advance(80)

        assert stage.shelf.objects[root()]["status"]["ripe"] == 3
        assert loop.events("pass failed") == []


async def test_a_settled_cluster_is_looked_at_once_per_interval_and_never_written_to() -> None:
    stage = Stage(tree(leaves=1))

    async with running(stage, interval=30) as loop:
        await stage.clock.advance(120)
        stage.shelf.writes.clear()
        before = len(loop.events("planned"))
        await stage.clock.advance(300)

        assert len(loop.events("planned")) - before == 10
        assert stage.shelf.writes.total() == 0


async def test_no_failure_of_a_pass_ends_the_loop() -> None:
    stage = Stage(tree(leaves=1))
    stage.shelf.unseeing = [Unreachable("refused"), ServerFault("500"), KeyError("a bug")]  # type: ignore[list-item]

    async with running(stage) as loop:
        await stage.clock.advance(60)

        assert [line["again_in"] for line in loop.events("pass failed")] == [2, 4, 8]
        assert "KeyError" in loop.events("pass failed")[-1]["exception"]
        assert "exception" not in loop.events("pass failed")[0]
        assert stage.shelf.objects[root()]["status"]["ripe"] == 1


async def test_what_was_refused_is_tried_again_every_interval() -> None:
    stage = Stage(tree(leaves=1))
    denied = create("root-0")
    stage.shelf.failing[denied.key] = [Forbidden("no quota left") for _ in range(4)]

    async with running(stage, interval=30):
        await stage.clock.advance(100)
        assert stage.shelf.started.count(denied.key) == 4
        await stage.clock.advance(100)

        assert leaf("root-0") in stage.shelf.objects


async def test_who_is_not_the_leader_does_not_even_look() -> None:
    stage = Stage(tree(leaves=1))
    stage.leases.keep(record("another", stage.clock, seconds=3600))

    async with running(stage) as loop:
        await stage.clock.advance(60)

        assert loop.events("planned") == []
        assert [line["holder"] for line in loop.events("waiting for the lease")] == ["another"]


async def test_a_lost_lease_makes_it_a_candidate_again() -> None:
    stage = Stage(tree(leaves=1))

    async with running(stage) as loop:
        await stage.clock.advance(10)
        stage.leases.keep(record("usurper", stage.clock))
        await stage.clock.advance(10)
        assert len(loop.events("not leading")) == 1
        passes = len(loop.events("planned"))
        await stage.clock.advance(3)
        assert len(loop.events("planned")) == passes
        await stage.clock.advance(20)

        assert len(loop.events("leading")) == 2
        assert stage.leases.holder == "us"


async def test_told_to_stop_it_lets_calls_end_and_gives_the_lease_back() -> None:
    stage = Stage(tree(leaves=2))
    stage.engine = Engine(stage.shelf, stage.clock, SCOPE, (Orchard(),), None, concurrency=1)
    gate = stage.shelf.gates[create("root-0").key] = anyio.Event()

    async with running(stage) as loop:
        await stage.clock.advance(1)
        loop.stop.cancel()
        await stage.clock.advance(0)
        gate.set()

    assert stage.shelf.started == [create("root-0").key]
    assert leaf("root-0") in stage.shelf.objects
    assert stage.leases.holder == ""


async def test_a_fault_of_a_user_is_told_once_and_not_with_every_pass() -> None:
    stage = Stage(tree(leaves=1, nonsense=True))

    async with running(stage, interval=10) as loop:
        await stage.clock.advance(100)

        assert [line["reason"] for line in loop.events("held back")] == [f"{root()}: spec.nonsense: nobody knows what this means"]


async def test_a_root_that_goes_away_while_it_is_worked_on_is_no_failure() -> None:
    stage = Stage(tree(leaves=2))
    vanished: list[str] = []

    def vanish(key: str) -> None:
        if not vanished:
            vanished.append(key)
            del stage.shelf.objects[root()]

    stage.shelf.on_call = vanish
    async with running(stage) as loop:
        await stage.clock.advance(30)

        assert loop.events("pass failed") == []
        assert not any(id.kind == ROOT.name for id in stage.shelf.objects)
        assert stage.shelf.writes[Verb.DELETE] == 0
