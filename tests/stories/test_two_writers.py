"""One writer, many users: several processes of ours work on one cluster, never write at the same time, and make nothing twice."""

import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
import pytest

from engine.errors import LeaseTaken
from engine.runtime.sync_report import Ending, SyncReport
from resources.base import kinds
from resources.ports.configuration import Configuration
from tests.builders import clique, group, podcliqueset
from tests.stories.pods import images, is_ready, running
from tests.stories.process import Killed, Process
from tests.stories.stage import Stage, stage

pytestmark = pytest.mark.anyio

NOWHERE = {"containers": [{"name": "main", "image": "example/worker:1"}], "nodeSelector": {"rack": "none"}}
STUCK = podcliqueset("stuck", clique("worker", 2, pod_spec=NOWHERE))
FINE = podcliqueset("fine", clique("worker", 2), replicas=2)


class Sync:
    """A sync in a process of its own, beside others."""

    def __init__(self, cluster: Stage, **options: Any) -> None:
        self.cluster, self.options = cluster, options
        self.process = cluster.start()
        self.lease = cluster.lease_for(self.process)
        self.stop = anyio.CancelScope()
        self.report: SyncReport[Configuration] | None = None
        self.error: Exception | None = None
        self.ended_at = 0.0
        self.others_held: list[str] = []
        """What it wrote while the Lease did not name it."""
        self.process.on_write = self._note_holder

    def _note_holder(self) -> None:
        if (holder := holder_in(self.cluster)) != self.lease.identity:
            self.others_held.append(holder)

    @property
    def has_ended(self) -> bool:
        return self.report is not None or self.error is not None

    async def run(self) -> None:
        try:
            self.report = await self.cluster.syncing(self.process, lease=self.lease, stop=self.stop, **self.options)
        except Exception as error:
            self.error = error
        self.ended_at = self.cluster.clock.monotonic()


@asynccontextmanager
async def beside(*syncs: Sync) -> AsyncIterator[None]:
    async with anyio.create_task_group() as tasks:
        for sync in syncs:
            tasks.start_soon(sync.run)
            await sync.cluster.clock.advance(0.1)
        yield
        tasks.cancel_scope.cancel()


def holder_in(cluster: Stage) -> str:
    """The holder that the Lease names; empty for nobody."""
    lease = cluster.there(kinds.LEASE).get("engine", {"spec": {}})
    return str(lease["spec"].get("holderIdentity", ""))


async def test_of_two_syncs_on_different_sets_the_one_that_never_settles_does_not_delay_the_other() -> None:
    async with stage() as cluster:
        stuck = Sync(cluster, manifests=[STUCK], patience=300.0)
        async with beside(stuck):
            await cluster.clock.advance(20)
            fine = Sync(cluster, manifests=[FINE])
            began = cluster.clock.monotonic()
            async with beside(fine):
                await cluster.until(lambda: fine.has_ended)
                assert fine.report is not None and fine.report.ending is Ending.DONE
                assert fine.ended_at - began < 15
                await cluster.until(lambda: stuck.has_ended)

        assert stuck.report is not None and stuck.report.ending is Ending.TIMED_OUT
        assert (stuck.others_held, fine.others_held) == ([], [])
        assert set((stuck.process.created + fine.process.created).values()) == {1}


async def test_a_sync_that_starts_while_another_writes_waits_for_it_and_names_it_if_it_may_not_wait() -> None:
    async with stage() as cluster:
        first = Sync(cluster, manifests=[FINE])
        second: list[Sync] = []

        def start_second() -> None:
            if not second:
                second.append(Sync(cluster, lock_timeout=0.0))
                tasks.start_soon(second[0].run)

        first.process.on_write = start_second
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(first.run)
            await cluster.until(lambda: first.has_ended and bool(second) and second[0].has_ended)

        assert isinstance(second[0].error, LeaseTaken)
        assert f"the lease default/engine is held by {first.lease.identity}, since 2026-01-01T" in str(second[0].error)
        assert second[0].process.count == 0


@pytest.mark.parametrize("seed", range(6))
async def test_syncs_of_several_users_who_edit_at_any_time_never_write_at_the_same_time_and_make_nothing_twice(seed: int) -> None:
    chance, syncs, replicas = random.Random(seed), list[Sync](), Counter({"a": 1, "b": 1})
    async with stage() as cluster:
        for name in replicas:
            groups = (group("pool", "decode", replicas=1),)
            await cluster.apply(podcliqueset(name, clique("router", 1), clique("decode", 2), groups=groups))

        async def keep_syncing() -> None:
            while True:
                syncs.append(sync := Sync(cluster))
                await sync.run()
                await cluster.clock.sleep(chance.choice([0.1, 3.0]))

        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(keep_syncing)
            for _ in range(10):
                await cluster.clock.advance(chance.choice([0.1, 0.3, 0.7, 1.3, 4.0]))
                replicas[name := chance.choice(["a", "b"])] += 1
                await cluster.scale(kinds.PODCLIQUESET, name, replicas[name])
            await cluster.settle()
            tasks.cancel_scope.cancel()
        assert (await cluster.sync()).ending is Ending.DONE

        assert cluster.process.count == 0
        assert [sync.others_held for sync in syncs] == [[] for _ in syncs]
        assert {type(sync.error) for sync in syncs} <= {type(None), LeaseTaken}
        assert sum(sync.process.count > 0 for sync in syncs) >= 2
        made = sum((sync.process.created for sync in syncs), Counter[str]())
        assert set(made.values()) == {1}
        assert len(await cluster.objects(kinds.POD)) == 3 * replicas.total()


async def test_a_sync_that_is_killed_while_it_writes_is_replaced_after_the_duration_of_its_lease() -> None:
    async with stage() as cluster:
        await cluster.apply(FINE)
        killed = cluster.start()
        killed.dies_after = 4
        with suppress(Killed, ExceptionGroup):
            await cluster.sync(killed)
        began = cluster.clock.monotonic()
        assert (killed.dead, holder_in(cluster)) == (True, "process-1")

        report = await cluster.sync()

        assert report.ending is Ending.DONE
        assert 14 <= cluster.clock.monotonic() - began < 40
        assert set((killed.created + cluster.process.created).values()) == {1}


async def test_a_sync_that_is_killed_while_it_waits_leaves_the_lease_free() -> None:
    async with stage() as cluster:
        killed = Sync(cluster, manifests=[STUCK])
        async with beside(killed):
            await cluster.clock.advance(20)
            kill(killed.process)
            await cluster.clock.advance(5)
            assert isinstance(killed.error, (Killed, ExceptionGroup))
            began = cluster.clock.monotonic()

            report = await cluster.sync(manifests=[FINE], lock_timeout=0.0)

        assert report.ending is Ending.DONE
        assert cluster.clock.monotonic() - began < 15


def kill(process: Process) -> None:
    """End the process: nothing of it runs on."""
    process.dead = True


async def test_a_sync_that_is_interrupted_while_it_waits_leaves_no_lease_behind() -> None:
    async with stage() as cluster:
        interrupted = Sync(cluster, manifests=[STUCK])
        async with beside(interrupted):
            await cluster.clock.advance(20)
            interrupted.stop.cancel()
            await cluster.clock.advance(1)

        assert interrupted.report is not None and interrupted.report.ending is Ending.INTERRUPTED
        assert holder_in(cluster) == ""


async def test_a_loop_that_takes_the_lease_while_a_sync_waits_writes_and_the_sync_reports_the_end() -> None:
    async with stage(without=["scheduler"]) as cluster:
        waiting = Sync(cluster, manifests=[FINE])
        async with beside(waiting):
            await cluster.clock.advance(20)
            written = waiting.process.count
            async with cluster.running(), cluster.playing("scheduler"):
                await cluster.until(lambda: waiting.has_ended)
                leader = holder_in(cluster)

        assert waiting.report is not None and waiting.report.ending is Ending.DONE
        assert leader not in ("", waiting.lease.identity)
        assert waiting.process.count == written


EDITED = podcliqueset("fine", clique("worker", 2, pod_spec=running(2)), replicas=2)


async def test_a_sync_beside_a_loop_that_leads_names_it_or_waits_and_the_next_loop_repeats_nothing() -> None:
    async with stage() as cluster, anyio.create_task_group() as tasks:
        async with cluster.running() as leader:
            await cluster.apply(FINE)
            await cluster.until(lambda: count_of_ready(cluster) == 4)
            hurried = Sync(cluster, manifests=[EDITED], lock_timeout=0.0)
            async with beside(hurried):
                await cluster.until(lambda: hurried.has_ended)
            assert isinstance(hurried.error, LeaseTaken)
            assert f"is held by {holder_in(cluster)}" in str(hurried.error)
            waiting = Sync(cluster, manifests=[EDITED])
            tasks.start_soon(waiting.run)
            await cluster.clock.advance(5)
            assert (hurried.process.count, waiting.process.count, waiting.has_ended) == (0, 0, False)
        await cluster.until(lambda: waiting.has_ended)
        async with cluster.running() as follower:
            await cluster.settle()

        assert waiting.report is not None and waiting.report.ending is Ending.DONE
        assert waiting.others_held == []
        assert {verb for verb in follower.writes if not verb.endswith("status")} == set()
        assert images(cluster.there(kinds.POD).values()) == {"example/worker:2"}
        created = leader.created + waiting.process.created + follower.created
        pods = {name: count for name, count in created.items() if name.startswith("Pod ")}
        assert sum(pods.values()) == 8, "Four, and four of the new template; one of them may have the name of an earlier one."
        assert {count for name, count in created.items() if name not in pods} == {1}


@pytest.mark.parametrize("after", [1, 4, 9])
@pytest.mark.parametrize("first", ["sync", "loop"])
async def test_what_a_killed_sync_or_loop_leaves_is_finished_by_the_other_and_nothing_is_made_twice(first: str, after: int) -> None:
    async with stage() as cluster:
        await cluster.apply(FINE)
        killed = cluster.start()
        killed.dies_after = after
        with suppress(Killed, ExceptionGroup):
            if first == "sync":
                await cluster.sync(killed)
            else:
                async with cluster.running(killed):
                    await cluster.until(lambda: killed.dead)
                    await cluster.clock.advance(1)
        assert killed.dead and holder_in(cluster)

        if first == "sync":
            async with cluster.running() as other:
                await cluster.until(lambda: count_of_ready(cluster) == 4)
        else:
            assert (await cluster.sync()).ending is Ending.DONE
            other = cluster.process
        assert set((killed.created + other.created).values()) == {1}


def count_of_ready(cluster: Stage) -> int:
    """How many pods are ready."""
    return sum(map(is_ready, cluster.there(kinds.POD).values()))
