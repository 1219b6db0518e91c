"""Loop: failed passes do not end it, it writes only as the leader, and it stops in order."""

import io
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

import anyio
import pytest
from msgspec.structs import replace

from engine.blueprint import Desired
from engine.errors import Forbidden, RefusedBy, ServerFault, Unreachable
from engine.memo import Memo
from engine.observed import Observed
from engine.runtime.lease import DISABLED, Lease
from engine.runtime.logs import logger
from engine.runtime.loop import IDLE, RELOAD_INTERVAL, Reload, run
from engine.runtime.passes import Engine
from engine.runtime.provider import Observation, Scope
from engine.verb import Verb
from engine.world_update import LiveChange
from tests.engine.runtime.fakes import ROOT, SCOPE, FakeProvider, create, leaf, root
from tests.engine.runtime.leases import record
from tests.engine.runtime.stage import Stage
from tests.engine.runtime.toy import Toy, root_body
from tests.waiting import PATIENCE

pytestmark = pytest.mark.anyio


class Running:
    """A loop on a stage, and its log."""

    def __init__(self, stage: Stage, interval: float, lease: Lease | None, reload: Reload[int | None] | None) -> None:
        self.stage = stage
        self.reload = reload
        self.lease = lease
        self.interval = interval
        self.stop = anyio.CancelScope()
        self.stream = io.StringIO()
        self.ended = anyio.Event()

    async def run(self) -> None:
        log = logger(self.stream, format="json", verbose=True)
        await run(self.stage.engine, self.lease, log, interval=self.interval, stop=self.stop, reload=self.reload)
        self.ended.set()

    def events(self, event: str) -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in self.stream.getvalue().splitlines()]
        return [line for line in lines if line["event"] == event]


@asynccontextmanager
async def running(
    stage: Stage, interval: float = 60.0, *, with_lease: bool = True, reload: Reload[int | None] | None = None
) -> AsyncIterator[Running]:
    loop = Running(stage, interval, stage.lease if with_lease else None, reload)
    async with anyio.create_task_group() as group:
        group.start_soon(stage.background)
        group.start_soon(loop.run)
        yield loop
        loop.stop.cancel()
        with anyio.fail_after(PATIENCE):
            await loop.ended.wait()
        group.cancel_scope.cancel()


async def test_a_change_is_noticed_within_the_interval_and_then_handled_completely() -> None:
    stage = Stage(root_body(leaves=1))

    async with running(stage) as loop:
        await stage.clock.advance(30)
        assert stage.provider.objects[root()]["status"]["ready"] == 1
        stage.provider.put({**stage.provider.objects[root()], "spec": {"leaves": 3}})
        await stage.clock.advance(80)

        assert stage.provider.objects[root()]["status"]["ready"] == 3
        assert loop.events("pass failed") == []


async def test_a_settled_cluster_is_listed_once_per_interval_and_never_written_to() -> None:
    stage = Stage(root_body(leaves=1))

    async with running(stage, interval=30) as loop:
        await stage.clock.advance(120)
        stage.provider.writes.clear()
        before = len(loop.events("planned"))
        await stage.clock.advance(300)

        assert len(loop.events("planned")) - before == 10
        assert stage.provider.writes.total() == 0


async def test_a_failed_pass_does_not_end_the_loop() -> None:
    stage = Stage(root_body(leaves=1))
    stage.provider.observe_errors = [Unreachable("refused"), ServerFault("500"), KeyError("a defect")]  # type: ignore[list-item]

    async with running(stage) as loop:
        await stage.clock.advance(60)

        assert [line["retry_in"] for line in loop.events("pass failed")] == [2, 4, 8]
        assert "KeyError" in loop.events("pass failed")[-1]["exception"]
        assert "exception" not in loop.events("pass failed")[0]
        assert stage.provider.objects[root()]["status"]["ready"] == 1


async def test_a_loop_continues_after_a_day_of_failed_passes() -> None:
    stage = Stage(root_body(leaves=1))
    stage.background = stage.never
    stage.provider.observe_errors = [Unreachable("refused") for _ in range(1100)]

    async with running(stage, with_lease=False) as loop:
        await stage.clock.advance(1100 * 60)

        assert len(loop.events("pass failed")) == 1100
        assert leaf("root-0") in stage.provider.objects


async def test_a_refused_operation_is_sent_again_after_pauses_that_double() -> None:
    stage = Stage(root_body(leaves=1))
    denied = create("root-0")
    stage.provider.failing[denied.key] = [Forbidden("no quota left") for _ in range(4)]

    async with running(stage, interval=60):
        await stage.clock.advance(10)
        assert stage.provider.started.count(denied.key) == 4
        await stage.clock.advance(10)

        assert leaf("root-0") in stage.provider.objects


async def test_of_many_refused_operations_few_are_sent_until_one_is_done() -> None:
    stage = Stage(root_body(leaves=300))
    refused = Forbidden("exceeded quota", by=RefusedBy.QUOTA)
    creates = [create(f"root-{number}") for number in range(300)]
    for operation in creates:
        stage.provider.failing[operation.key] = [refused] * 1000

    async with running(stage, interval=60):
        await stage.clock.advance(100)
        assert len(stage.provider.started) < 100
        stage.provider.failing.clear()
        await stage.clock.advance(32)

        assert all(operation.id in stage.provider.objects for operation in creates)


async def test_a_candidate_does_not_observe_the_cluster() -> None:
    stage = Stage(root_body(leaves=1))
    stage.leases.keep(record("another", stage.clock, seconds=3600))

    async with running(stage) as loop:
        await stage.clock.advance(60)

        assert loop.events("planned") == []
        assert [line["holder"] for line in loop.events("waiting for the lease")] == ["another"]


async def test_after_losing_the_lease_it_competes_for_it_again() -> None:
    stage = Stage(root_body(leaves=1))

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


async def test_when_stopped_calls_in_progress_end_and_the_lease_is_released() -> None:
    stage = Stage(root_body(leaves=2))
    stage.engine = Engine(stage.provider, stage.clock, SCOPE, (Toy(),), None, concurrency=1)
    gate = stage.provider.gates[create("root-0").key] = anyio.Event()

    async with running(stage) as loop:
        await stage.clock.advance(1)
        loop.stop.cancel()
        await stage.clock.advance(0)
        gate.set()

    assert stage.provider.started == [create("root-0").key]
    assert leaf("root-0") in stage.provider.objects
    assert stage.leases.holder == ""


async def test_a_problem_is_logged_once_and_not_in_every_pass() -> None:
    stage = Stage(root_body(leaves=1, nonsense=True))

    async with running(stage, interval=10) as loop:
        await stage.clock.advance(100)

        assert [(line["root"], line["reason"]) for line in loop.events("blocked")] == [(str(root()), "spec.nonsense: unknown field")]


async def test_an_internal_error_is_logged_once_with_its_traceback_and_not_in_every_pass() -> None:
    stage = Stage(root_body(leaves=1, crash=True))

    async with running(stage, interval=10) as loop:
        await stage.clock.advance(100)

        (line,) = loop.events("internal error")
        assert line["root"] == str(root())
        assert "Traceback" in line["exception"] and "KeyError: 'a defect'" in line["exception"]
        assert loop.events("blocked") == []


async def test_a_status_that_another_writer_always_resets_is_written_less_often() -> None:
    stage = Stage(root_body(leaves=1))

    async with running(stage, interval=60) as loop:
        await stage.clock.advance(30)

        async def reset() -> None:
            while True:
                live = stage.provider.objects[root()]
                if live["status"]["ready"]:
                    stage.provider.put({**live, "status": {"ready": 0, "counted": {}}})
                await stage.clock.sleep(0.05)

        async with anyio.create_task_group() as group:
            group.start_soon(reset)
            await stage.clock.run_until(lambda: bool(loop.events("failed")), within=60)
            writes = stage.provider.writes[Verb.STATUS]
            await stage.clock.advance(29)
            assert stage.provider.writes[Verb.STATUS] == writes
            await stage.clock.advance(61)
            assert stage.provider.writes[Verb.STATUS] == writes + 1
            group.cancel_scope.cancel()

        assert "reverted each time" in loop.events("failed")[0]["error"]


async def test_without_a_lease_it_warns_once_and_requests_no_lease() -> None:
    stage = Stage(root_body(leaves=1))

    async with running(stage, interval=10, with_lease=False) as loop:
        await stage.clock.advance(100)

        assert [line["level"] for line in loop.events(DISABLED)] == ["warning"]
        assert stage.provider.objects[root()]["status"]["ready"] == 1
    assert stage.leases.requests == []


async def test_a_root_that_is_deleted_during_a_pass_is_no_failure() -> None:
    stage = Stage(root_body(leaves=2))
    vanished: list[str] = []

    def vanish(key: str) -> None:
        if not vanished:
            vanished.append(key)
            del stage.provider.objects[root()]

    stage.provider.on_call = vanish
    async with running(stage) as loop:
        await stage.clock.advance(30)

        assert loop.events("pass failed") == []
        assert not any(id.kind == ROOT.name for id in stage.provider.objects)
        assert stage.provider.writes[Verb.DELETE] == 0


class Configured(Toy):
    """A toy whose roots have as many leaves as the configuration says, and that remembers this without naming the configuration."""

    def desire(self, observed: Observed, now: datetime, configuration: Any, memo: Memo) -> Desired:
        """As of a root with that many leaves."""
        leaves = memo.recall("leaves", (), lambda: configuration)
        body = {**observed.root.body, "spec": {"leaves": leaves}}
        return super().desire(replace(observed, proposal=body), now, configuration, memo)


async def test_a_new_configuration_is_used_at_once_and_nothing_computed_from_the_old_one() -> None:
    stage = Stage(root_body(leaves=1))
    stage.engine = Engine(stage.provider, stage.clock, SCOPE, (Configured(),), 1)
    configurations = iter([None, 3])

    async def reload(engine: Engine[int | None]) -> Engine[int | None] | None:
        configuration = next(configurations, None)
        return replace(engine, configuration=configuration) if configuration is not None else None

    async with running(stage, interval=3600, reload=reload):
        await stage.clock.advance(RELOAD_INTERVAL + 1)
        assert leaf("root-1") not in stage.provider.objects
        await stage.clock.advance(RELOAD_INTERVAL + 1)
        assert leaf("root-2") in stage.provider.objects


async def test_a_defect_while_the_configuration_is_read_is_logged_and_ends_nothing() -> None:
    stage = Stage(root_body(leaves=1))

    async def reload(engine: Engine[int | None]) -> Engine[int | None] | None:
        raise KeyError("a defect")

    async with running(stage, reload=reload) as loop:
        await stage.clock.advance(3 * RELOAD_INTERVAL)
        stage.provider.put({**stage.provider.objects[root()], "spec": {"leaves": 3}})
        await stage.clock.advance(80)

        assert "KeyError" in loop.events("configuration not reloaded")[0]["exception"]
        assert stage.provider.objects[root()]["status"]["ready"] == 3


class Watching(FakeProvider):
    """A provider that notices changes, and that keeps what it has observed until it is asked to keep less."""

    def __init__(self, *bodies: dict[str, Any]) -> None:
        super().__init__(*bodies)
        self.compacted = 0
        self.event = anyio.Event()

    @asynccontextmanager
    async def watching(self, scope: Scope) -> AsyncIterator[None]:
        yield

    async def changed(self, concerns: Callable[[LiveChange], bool] | None = None, *, keeping: bool = False) -> None:
        await self.event.wait()

    async def observe(self, scope: Scope) -> Observation:
        self.event = anyio.Event()
        return await super().observe(scope)

    def compact(self) -> None:
        self.compacted += 1


async def test_what_was_observed_is_kept_in_less_memory_once_nothing_has_changed_for_a_while() -> None:
    stage = Stage()
    stage.provider = provider = Watching(root_body(leaves=1))
    stage.engine = replace(stage.engine, provider=provider)
    stage.background = stage.never

    async with running(stage):
        await stage.clock.advance(30)
        once = provider.compacted
        for _ in range(10):
            provider.event.set()
            await stage.clock.advance(IDLE / 2)
        meanwhile = provider.compacted
        await stage.clock.advance(10 * IDLE)

        assert (once > 0, meanwhile - once, provider.compacted - meanwhile) == (True, 0, 1)
