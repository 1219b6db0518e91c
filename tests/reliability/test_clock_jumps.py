"""Wall clocks jump: leadership does not depend on them, nothing healthy is touched, and a delay that runs ends earlier or later."""

import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta

import anyio
import pytest
from msgspec.structs import replace

from engine.runtime.clock import Clock
from engine.runtime.lease import LEASE, Lease
from engine.runtime.logs import logger
from engine.runtime.loop import run
from providers.watching import WatchingCluster
from resources.base import kinds
from tests.builders import clique, podcliqueset
from tests.stories.process import Killed
from tests.stories.stage import Stage, stage

pytestmark = pytest.mark.anyio

DAY = timedelta(days=1)
DELAY = "10m"
JUMPS = pytest.mark.parametrize("jump", [DAY, -DAY], ids=["forwards", "backwards"])


class JumpingClock:
    """A `Clock` whose wall clock is wrong by `jump`; its monotonic clock is that of another one."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self.jump = clock, timedelta()

    def now(self) -> datetime:
        """The wrong time."""
        return self._clock.now() + self.jump

    def monotonic(self) -> float:
        """The seconds of the other clock."""
        return self._clock.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait on the other clock."""
        await self._clock.sleep(seconds)


class Follower:
    """`engine run` with a wall clock of its own."""

    def __init__(self, cluster: Stage) -> None:
        self.cluster, self.clock, self.process = cluster, JumpingClock(cluster.clock), cluster.start()
        self.lease: Lease = replace(cluster.lease_for(self.process), clock=self.clock)
        self.log = io.StringIO()

    @property
    def leads(self) -> bool:
        """Whether the Lease names it."""
        return bool(self.cluster.there(LEASE)["engine"]["spec"]["holderIdentity"] == self.lease.identity)

    async def run(self) -> None:
        """Make passes until it is cancelled or killed."""
        provider = WatchingCluster(self.process, self.clock)
        engine = replace(self.cluster._engine(self.process), provider=provider, clock=self.clock)
        try:
            await run(engine, self.lease, logger(self.log, format="text"), interval=60.0)
        except (Killed, ExceptionGroup):
            if not self.process.dead:
                raise


@asynccontextmanager
async def leader_and_standby(cluster: Stage) -> AsyncIterator[tuple[Follower, Follower]]:
    """Two processes, the first of which leads."""
    async with anyio.create_task_group() as tasks:
        leader = Follower(cluster)
        tasks.start_soon(leader.run)
        await cluster.clock.advance(1)
        standby = Follower(cluster)
        tasks.start_soon(standby.run)
        await cluster.clock.advance(1)
        assert (leader.leads, standby.leads) == (True, False)
        yield leader, standby
        tasks.cancel_scope.cancel()
    assert all("Traceback" not in follower.log.getvalue() for follower in (leader, standby) if not follower.process.dead)


@JUMPS
@pytest.mark.parametrize("whose", ["leader", "standby"])
async def test_at_rest_a_jump_causes_no_write_and_no_change_of_leadership(jump: timedelta, whose: str) -> None:
    async with stage() as cluster, leader_and_standby(cluster) as (leader, standby):
        await cluster.apply(podcliqueset("web", clique("worker", 2), replicas=2))
        await cluster.settle()
        written = leader.process.count

        (leader if whose == "leader" else standby).clock.jump = jump
        await cluster.clock.advance(600)

        assert (leader.process.count, standby.process.count) == (written, 0)
        assert leader.leads


@JUMPS
async def test_while_sets_come_up_and_are_scaled_a_jump_makes_nothing_twice(jump: timedelta) -> None:
    async with stage() as cluster, leader_and_standby(cluster) as (leader, _):
        await cluster.apply(podcliqueset("web", clique("worker", 2), replicas=2))
        await cluster.until(lambda: len(cluster.there(kinds.POD)) > 0)
        leader.clock.jump = jump
        await cluster.settle()
        await cluster.scale(kinds.PODCLIQUESET, "web", 3)
        await cluster.until(lambda: len(cluster.there(kinds.POD)) > 4)
        leader.clock.jump = timedelta()
        await cluster.settle()

        assert len(cluster.there(kinds.POD)) == 6
        assert set(leader.process.created.values()) == {1}
        assert leader.process.writes["delete Pod"] == 0


@JUMPS
async def test_a_standby_whose_clock_jumps_takes_over_after_the_duration_of_the_lease(jump: timedelta) -> None:
    async with stage() as cluster, leader_and_standby(cluster) as (leader, standby):
        await cluster.apply(podcliqueset("web", clique("worker", 2), replicas=4))
        leader.process.dies_after = leader.process.count + 6
        await cluster.until(lambda: leader.process.dead)
        died_at = cluster.clock.monotonic()
        standby.clock.jump = jump

        await cluster.until(lambda: standby.leads)
        assert cluster.clock.monotonic() - died_at <= leader.lease.durations.lease + 3
        await cluster.settle()

        assert len(cluster.there(kinds.POD)) == 8
        assert set((leader.process.created + standby.process.created).values()) == {1}


@pytest.mark.parametrize(("jump", "earliest", "latest"), [(timedelta(minutes=5), 240, 360), (-timedelta(minutes=5), 840, 960)])
async def test_a_delay_that_runs_ends_earlier_or_later_by_the_jump(jump: timedelta, earliest: float, latest: float) -> None:
    async with stage() as cluster, leader_and_standby(cluster) as (leader, _):
        await cluster.apply(podcliqueset("web", clique("worker", 2), replicas=2, terminationDelay=DELAY))
        await cluster.settle()
        before = {name: pod["metadata"]["uid"] for name, pod in cluster.there(kinds.POD).items()}
        broken = [name for name in before if name.startswith("web-0-")]
        began = cluster.clock.monotonic()
        for name in broken:
            cluster.fail(name, "unready")
        await cluster.clock.advance(30)

        leader.clock.jump = jump
        await cluster.until(lambda: not any(name in cluster.there(kinds.POD) for name in broken))

        assert earliest <= cluster.clock.monotonic() - began <= latest
        there = {pod["metadata"]["uid"] for pod in cluster.there(kinds.POD).values()}
        assert {uid for name, uid in before.items() if name.startswith("web-1-")} <= there
