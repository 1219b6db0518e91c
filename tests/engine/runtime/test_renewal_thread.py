"""Renewal: the Lease of a busy leader is renewed in another thread, and that of a leader that hangs is released."""

import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import cast

import anyio
import pytest
from msgspec.structs import replace

from engine.errors import LeaseLost
from engine.memo import Steps
from engine.runtime.clock import SystemClock
from engine.runtime.lease import STALLED_AFTER, Durations, Leadership, Lease, held
from engine.runtime.provider import Client
from engine.runtime.renewal_thread import renewal_thread
from grove_sandbox.clock import VirtualClock
from tests.engine.runtime.leases import Leases, record

pytestmark = pytest.mark.anyio

QUICK = Durations(0.6, 0.4, 0.05)


class Served:
    """A Lease that is renewed in a thread, in real time."""

    def __init__(self) -> None:
        self.leases = Leases()
        self.connections = 0
        self.ended_because: list[tuple[str, str]] = []
        """Why the process would have ended, and who held the Lease then."""
        self.steps = Steps()

    @asynccontextmanager
    async def connect(self) -> AsyncGenerator[Client]:
        self.connections += 1
        yield cast(Client, self.leases)

    @asynccontextmanager
    async def held(self, durations: Durations = QUICK) -> AsyncGenerator[Leadership]:
        client = cast(Client, self.leases)
        async with renewal_thread(self.connect, lambda why: self.ended_because.append((why, self.leases.holder))) as thread:
            lease = Lease(client, SystemClock(), "default", "engine", "us", durations, steps=self.steps, renewal=thread)
            async with held(lease) as leadership:
                yield leadership


async def test_a_computation_that_keeps_the_event_loop_busy_beyond_the_deadline_does_not_lose_the_lease() -> None:
    server = Served()

    async with server.held() as leadership:
        until = time.monotonic() + 2 * QUICK.lease
        while time.monotonic() < until:
            server.steps.count += 1
        may_write = leadership.may_write()

    assert (may_write, server.ended_because, server.connections) == (True, [], 1)
    assert set(server.leases.history[:-1]) == {"us"} and server.leases.history[-1] == ""


async def test_an_event_loop_that_hangs_loses_the_lease_before_another_may_take_it_and_the_process_ends() -> None:
    server = Served()

    with pytest.raises(LeaseLost):
        async with server.held() as leadership:
            began = time.monotonic()
            while not server.ended_because and time.monotonic() < began + 10 * STALLED_AFTER * QUICK.lease:
                pass
            may_write = leadership.may_write()
            await anyio.sleep_forever()

    ((why, holder),) = server.ended_because
    assert "default/engine is released: the work has made no progress for" in why
    assert (may_write, holder) == (False, "")


async def test_a_leader_that_waits_for_changes_keeps_the_lease_however_long_it_waits() -> None:
    server = Served()

    async with server.held() as leadership:
        with server.steps.waiting():
            await anyio.sleep((STALLED_AFTER + 1) * QUICK.lease)
        assert leadership.may_write()

    assert server.ended_because == []


async def test_a_lease_that_another_process_takes_cancels_the_work() -> None:
    server = Served()

    with pytest.raises(LeaseLost, match="it is held by another"):
        async with server.held():
            assert server.leases.lease is not None
            server.leases.keep({**server.leases.lease, "spec": {**server.leases.lease["spec"], "holderIdentity": "another"}})
            await anyio.sleep_forever()


async def test_a_server_that_no_longer_answers_ends_the_work() -> None:
    server = Served()

    with pytest.raises(LeaseLost, match="the server did not answer in time"):
        async with server.held() as leadership:
            server.leases.silent = True
            try:
                await anyio.sleep_forever()
            finally:
                may_write = leadership.may_write()

    assert not may_write


async def test_work_that_hangs_in_the_loop_that_renews_is_cancelled_and_its_lease_released() -> None:
    clock, leases = VirtualClock(), Leases()
    lease = Lease(cast(Client, leases), clock, "default", "engine", "us", steps=Steps())
    ends: list[tuple[float, str]] = []

    async def hang() -> None:
        with pytest.raises(LeaseLost, match="no progress"):
            async with held(lease):
                await anyio.sleep_forever()
        ends.append((clock.monotonic(), leases.holder))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(hang)
        await clock.run_until(lambda: bool(ends))

    ((at, holder),) = ends
    assert STALLED_AFTER * lease.durations.lease < at < (STALLED_AFTER + 1) * lease.durations.lease and holder == ""


class Suspended(VirtualClock):
    """The clock of a process that is stopped and continued: nothing in it runs meanwhile."""

    def suspend(self, seconds: float) -> None:
        self._elapsed += seconds


@pytest.mark.parametrize("holder", ["us", "another"])
async def test_a_process_that_was_stopped_for_long_does_not_say_that_its_work_hangs(holder: str) -> None:
    clock, leases = Suspended(), Leases()
    lease = Lease(cast(Client, leases), clock, "default", "engine", "us", steps=Steps())
    ends: list[str] = []

    async def work() -> None:
        try:
            async with held(lease) as leadership:
                await clock.sleep(5.0)
                clock.suspend(10 * STALLED_AFTER * lease.durations.lease)
                if holder != "us":
                    leases.keep(record(holder, clock))
                assert not leadership.may_write()
                await clock.sleep(5.0)
                ends.append(f"goes on: {leadership.may_write()}")
        except LeaseLost as error:
            ends.append(str(error))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(work)
        await clock.run_until(lambda: bool(ends))

    expected = "goes on: True" if holder == "us" else "the lease default/engine is no longer ours: it is held by another"
    assert len(ends) == 1 and ends[0].startswith(expected)


async def test_a_lease_whose_work_is_not_counted_is_renewed_for_ever() -> None:
    clock, leases = VirtualClock(), Leases()
    lease = replace(Lease(cast(Client, leases), clock, "default", "engine", "us"), steps=None)

    async with anyio.create_task_group() as tasks:

        async def work() -> None:
            async with held(lease):
                await anyio.sleep_forever()

        tasks.start_soon(work)
        await clock.advance(3600)
        assert leases.holder == "us"
        tasks.cancel_scope.cancel()
