"""Lease: never two who may write, and never nobody for longer than needed."""

import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

import anyio
import pytest

from engine.errors import ClusterError, Forbidden, InputError, LeaseLost, LeaseTaken, Unreachable
from engine.runtime.client import Client
from engine.runtime.identity import identify, is_gone
from engine.runtime.lease import Durations, Leadership, Lease, held
from providers.sandbox.clock import VirtualClock
from tests.engine.runtime.leases import Leases, record

pytestmark = pytest.mark.anyio


class Candidate:
    """Somebody who wants to lead, and leads until told to stop."""

    def __init__(self, leases: Leases, clock: VirtualClock, name: str, patience: float | None = None) -> None:
        self.lease = Lease(cast(Client, leases), clock, "default", "engine", name)
        self.patience = patience
        self.leadership: Leadership | None = None
        self.led = 0
        self.waited_for: list[str] = []
        self.outcome: Exception | None = None
        self.stop = anyio.Event()
        self.killed = anyio.CancelScope()

    def leads(self) -> bool:
        return self.leadership is not None

    def has_ended(self) -> bool:
        return self.outcome is not None

    def is_sure(self) -> bool:
        return self.leadership is not None and self.leadership.sure()

    async def run(self) -> None:
        try:
            async with held(self.lease, patience=self.patience, on_wait=self.waited_for.append) as self.leadership:
                self.led += 1
                try:
                    await self.stop.wait()
                finally:
                    self.leadership = None
        except (LeaseLost, LeaseTaken, ClusterError) as error:
            self.outcome = error


class SleepyClock(VirtualClock):
    """A clock of a process that can be paused: time goes on, and nobody is woken."""

    def doze(self, seconds: float) -> None:
        self._elapsed += seconds


@asynccontextmanager
async def running(*candidates: Candidate) -> AsyncIterator[None]:
    async with anyio.create_task_group() as group:
        for candidate in candidates:
            group.start_soon(candidate.run)
        yield
        for candidate in candidates:
            candidate.stop.set()
        group.cancel_scope.cancel()


@pytest.fixture
def leases() -> Leases:
    return Leases()


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


async def test_the_first_to_come_leads_at_once_with_two_requests(leases: Leases, clock: VirtualClock) -> None:
    first = Candidate(leases, clock, "first")

    async with running(first):
        await clock.advance(0)
        assert first.leads()
        assert leases.requests == ["list", "create"]


async def test_holding_costs_one_request_per_retry_period(leases: Leases, clock: VirtualClock) -> None:
    async with running(Candidate(leases, clock, "first")):
        await clock.advance(60)

        assert set(leases.requests[2:]) == {"replace"}
        assert 26 <= len(leases.requests) - 2 <= 34


async def test_a_lease_given_back_is_free_for_the_next_one(leases: Leases, clock: VirtualClock) -> None:
    first, second = Candidate(leases, clock, "first"), Candidate(leases, clock, "second")

    async with running(first):
        await clock.advance(5)
        first.stop.set()
        await clock.advance(0)
        assert leases.holder == ""
    async with running(second):
        await clock.advance(0)
        assert second.leads()

    assert leases.refused == 0


async def test_whoever_is_cancelled_gives_the_lease_back(leases: Leases, clock: VirtualClock) -> None:
    async with running(Candidate(leases, clock, "first")):
        await clock.advance(5)
        assert leases.holder == "first"

    assert leases.holder == ""


async def test_a_one_shot_waits_one_lease_duration_and_then_names_the_holder(leases: Leases, clock: VirtualClock) -> None:
    first, second = Candidate(leases, clock, "first"), Candidate(leases, clock, "second", patience=15)

    async with running(first, second):
        await clock.advance(14.9)
        assert not second.has_ended()
        await clock.advance(3)

        assert isinstance(second.outcome, LeaseTaken)
        assert "held by first" in str(second.outcome)
        assert second.waited_for == ["first"]


async def test_a_one_shot_takes_the_lease_of_a_holder_that_was_killed(leases: Leases, clock: VirtualClock) -> None:
    leases.keep(record("killed", clock))
    second = Candidate(leases, clock, "second", patience=15)

    async with running(second):
        await clock.advance(14.9)
        assert not second.leads()
        await clock.advance(0.3)

        assert second.leads()
        assert leases.lease is not None
        assert leases.lease["spec"]["leaseTransitions"] == 4


async def test_a_one_shot_killed_on_this_machine_keeps_nobody_waiting(leases: Leases, clock: VirtualClock) -> None:
    leases.keep(record(identity_of_the_dead(), clock))
    second = Candidate(leases, clock, "second", patience=15)

    async with running(second):
        await clock.advance(0)

        assert second.leads()


async def test_a_clock_that_is_wrong_elsewhere_does_not_matter(leases: Leases, clock: VirtualClock) -> None:
    elsewhere = record("elsewhere", clock)
    elsewhere["spec"]["renewTime"] = "1999-01-01T00:00:00.000000Z"
    leases.keep(elsewhere)
    second = Candidate(leases, clock, "second")

    async with running(second):
        await clock.advance(14)

        assert not second.leads()


async def test_who_cannot_renew_gives_up_before_anybody_may_take_over(leases: Leases, clock: VirtualClock) -> None:
    first, second = Candidate(leases, clock, "first"), Candidate(leases, clock, "second")

    async with running(first):
        await clock.advance(1)
        async with running(second):
            await clock.advance(5)
            leases.cut_off.add("first")
            for _ in range(400):
                await clock.advance(0.05)
                assert not (first.leads() and second.leads())

            assert isinstance(first.outcome, LeaseLost)
            assert second.leads()


async def test_after_a_pause_who_led_before_is_not_sure_even_before_it_has_noticed(leases: Leases) -> None:
    """The process slept, and somebody else has taken over: its own tasks have not run yet, and must not write."""
    clock = SleepyClock()
    first = Candidate(leases, clock, "first")

    async with running(first):
        await clock.advance(1)
        assert first.is_sure()
        clock.doze(60)
        leases.keep(record("second", clock))

        assert not first.is_sure()
        await clock.advance(0)
        assert isinstance(first.outcome, LeaseLost)
        assert leases.holder == "second"


async def test_a_pause_that_nobody_used_costs_nothing(leases: Leases) -> None:
    clock = SleepyClock()
    first = Candidate(leases, clock, "first")

    async with running(first):
        await clock.advance(1)
        clock.doze(60)
        await clock.advance(0)

        assert first.is_sure()
        assert first.led == 1


async def test_a_lease_taken_by_another_is_noticed_at_the_next_renewal(leases: Leases, clock: VirtualClock) -> None:
    first = Candidate(leases, clock, "first")

    async with running(first):
        await clock.advance(1)
        leases.keep(record("usurper", clock))
        await clock.advance(3)

        assert isinstance(first.outcome, LeaseLost)
        assert leases.holder == "usurper"


async def test_a_label_put_on_the_lease_or_a_lost_answer_is_no_loss(leases: Leases, clock: VirtualClock) -> None:
    first = Candidate(leases, clock, "first")

    async with running(first):
        await clock.advance(1)
        assert leases.lease
        leases.keep(leases.lease)
        await clock.advance(5)
        leases.answers_lost = 1
        await clock.advance(60)

        assert first.leads()
        assert first.led == 1


async def test_of_many_that_come_at_once_one_leads(leases: Leases, clock: VirtualClock) -> None:
    crowd = [Candidate(leases, clock, f"candidate-{number}") for number in range(5)]

    async with running(*crowd):
        for _ in range(100):
            await clock.advance(0.2)
            assert sum(each.leads() for each in crowd) == 1
        leader = next(each for each in crowd if each.leads())
        leader.stop.set()
        await clock.advance(3)

        assert sum(each.leads() for each in crowd) == 1
        assert not leader.leads()


async def test_what_is_forbidden_is_said_at_once(leases: Leases, clock: VirtualClock) -> None:
    leases.forbidden = True
    first = Candidate(leases, clock, "first", patience=15)

    async with running(first):
        await clock.advance(0)

        assert isinstance(first.outcome, Forbidden)


async def test_a_server_that_does_not_answer_at_all_is_said_at_once(leases: Leases, clock: VirtualClock) -> None:
    leases.away = True
    first = Candidate(leases, clock, "first", patience=15)

    async with running(first):
        await clock.advance(0)

        assert isinstance(first.outcome, Unreachable)


async def test_a_server_that_goes_away_while_we_wait_is_waited_for(leases: Leases, clock: VirtualClock) -> None:
    leases.keep(record("killed", clock))
    second = Candidate(leases, clock, "second")

    async with running(second):
        await clock.advance(5)
        leases.away = True
        await clock.advance(5)
        leases.away = False
        await clock.advance(6)

        assert second.leads()
        assert second.waited_for == ["killed"]


async def test_an_error_in_the_block_comes_out_as_it_is_and_the_lease_is_given_back(leases: Leases, clock: VirtualClock) -> None:
    lease = Lease(cast(Client, leases), clock, "default", "engine", "first")

    with pytest.raises(ZeroDivisionError):
        async with held(lease):
            raise ZeroDivisionError

    assert leases.holder == ""


async def test_the_name_of_a_holder_does_not_steer_a_terminal(leases: Leases, clock: VirtualClock) -> None:
    leases.keep(record("\x1b[2Jnobody", clock) | {"kind": "Lease"})
    first, second = Candidate(leases, clock, "first", patience=1), Candidate(leases, clock, "second", patience=1)

    async with running(first, second):
        await clock.advance(4)

        assert "\\x1b[2Jnobody" in str(second.outcome)


@pytest.mark.parametrize("durations", [(10, 10, 2), (15, 2, 2), (15, 10, 0)])
def test_durations_that_would_let_two_lead_are_refused(durations: tuple[float, float, float]) -> None:
    with pytest.raises(InputError, match="must be greater"):
        Durations(*durations)


def test_a_process_is_gone_only_if_it_ran_here_and_has_ended() -> None:
    gone = identity_of_the_dead()
    host, pid, machine, token = gone.rsplit("_", 3)

    assert is_gone(gone)
    assert not is_gone(identify())
    assert not is_gone("_".join((host, pid, "0" * 12, token)))
    assert not is_gone("_".join((host, str(os.getppid()), machine, token)))


@pytest.mark.parametrize(
    "name", ["", "x", "a_b_c_d", "host_0_m_t", "host_-1_m_t", "host_²_m_t", "host_99999999999999999999999_m_t", "____"]
)
def test_a_name_that_says_nothing_counts_as_alive(name: str) -> None:
    _, _, machine, _ = identify().rsplit("_", 3)

    assert not is_gone(name)
    assert not is_gone(name.replace("_m_", f"_{machine}_"))


def identity_of_the_dead() -> str:
    """The identity of a process of this machine that has ended."""
    script = "from engine.runtime.identity import identify; print(identify())"
    return subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout.strip()
