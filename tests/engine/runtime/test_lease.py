"""Lease: never two leaders at a time, and never none for longer than needed."""

import heapq
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

import anyio
import pytest
from msgspec.structs import replace

from engine.errors import ClusterError, Forbidden, InputError, LeaseLost, LeaseTaken, Unreachable
from engine.runtime.lease import Durations, Leadership, Lease, held
from engine.runtime.lease_holder import LeaseHolder, identify, is_gone
from engine.runtime.provider import Client
from grove_sandbox.clock import VirtualClock
from resources.base import kinds
from resources.install.permissions import permissions
from resources.ports.configuration import Configuration
from tests.engine.runtime.leases import Leases, record

pytestmark = pytest.mark.anyio


class Candidate:
    """A process that competes for the lease, and holds it until it is stopped."""

    def __init__(self, leases: Leases, clock: VirtualClock, name: str, patience: float | None = None) -> None:
        self.lease = Lease(cast(Client, leases), clock, "default", "engine", name)
        self.patience = patience
        self.leadership: Leadership | None = None
        self.times_led = 0
        self.waited_for: list[str] = []
        self.outcome: Exception | None = None
        self.stop = anyio.Event()
        self.killed = anyio.CancelScope()

    def leads(self) -> bool:
        return self.leadership is not None

    def has_ended(self) -> bool:
        return self.outcome is not None

    def may_write(self) -> bool:
        return self.leadership is not None and self.leadership.may_write()

    def note_holder(self, holder: LeaseHolder) -> None:
        self.waited_for.append(holder.identity)

    async def run(self) -> None:
        try:
            async with held(self.lease, patience=self.patience, on_wait=self.note_holder) as self.leadership:
                self.times_led += 1
                try:
                    await self.stop.wait()
                finally:
                    self.leadership = None
        except (LeaseLost, LeaseTaken, ClusterError) as error:
            self.outcome = error


class SuspendedClock(VirtualClock):
    """The clock of a process that can be suspended: time passes, and no task runs. Then all that are late wake in the same turn."""

    def suspend(self, seconds: float) -> None:
        self._elapsed += seconds

    async def _wake_next(self) -> None:
        while len(self._sleepers) > 1 and self._sleepers[1][0] <= self._elapsed:
            heapq.heappop(self._sleepers)[-1].set()
        await super()._wake_next()


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


async def test_the_first_candidate_leads_at_once_after_two_requests(leases: Leases, clock: VirtualClock) -> None:
    first = Candidate(leases, clock, "first")

    async with running(first):
        await clock.advance(0)
        assert first.leads()
        assert leases.requests == ["get", "create"]


async def test_holding_the_lease_takes_one_request_per_retry_period(leases: Leases, clock: VirtualClock) -> None:
    async with running(Candidate(leases, clock, "first")):
        await clock.advance(60)

        assert set(leases.requests[2:]) == {"replace"}
        assert 26 <= len(leases.requests) - 2 <= 34


async def test_a_released_lease_is_free_for_the_next_candidate(leases: Leases, clock: VirtualClock) -> None:
    first, second = Candidate(leases, clock, "first"), Candidate(leases, clock, "second")

    async with running(first):
        await clock.advance(5)
        first.stop.set()
        await clock.advance(0)
        assert leases.holder == ""
    async with running(second):
        await clock.advance(0)
        assert second.leads()

    assert leases.conflicts == 0


async def test_a_cancelled_leader_releases_the_lease(leases: Leases, clock: VirtualClock) -> None:
    async with running(Candidate(leases, clock, "first")):
        await clock.advance(5)
        assert leases.holder == "first"

    assert leases.holder == ""


async def test_a_sync_waits_one_lease_duration_and_then_names_the_holder(leases: Leases, clock: VirtualClock) -> None:
    first, second = Candidate(leases, clock, "first"), Candidate(leases, clock, "second", patience=15)

    async with running(first, second):
        await clock.advance(14.9)
        assert not second.has_ended()
        await clock.advance(3)

        assert isinstance(second.outcome, LeaseTaken)
        assert "held by first" in str(second.outcome)
        assert second.waited_for == ["first"]


async def test_a_sync_takes_over_the_lease_of_a_holder_that_was_killed(leases: Leases, clock: VirtualClock) -> None:
    leases.keep(record("killed", clock))
    second = Candidate(leases, clock, "second", patience=15)

    async with running(second):
        await clock.advance(14.9)
        assert not second.leads()
        await clock.advance(0.3)

        assert second.leads()
        assert leases.lease is not None
        assert leases.lease["spec"]["leaseTransitions"] == 4


async def test_the_lease_of_a_process_that_was_killed_on_this_machine_is_taken_over_at_once(leases: Leases, clock: VirtualClock) -> None:
    leases.keep(record(identity_of_an_ended_process(), clock))
    second = Candidate(leases, clock, "second", patience=15)

    async with running(second):
        await clock.advance(0)

        assert second.leads()


async def test_the_clock_of_another_machine_does_not_matter(leases: Leases, clock: VirtualClock) -> None:
    elsewhere = record("elsewhere", clock)
    elsewhere["spec"]["renewTime"] = "1999-01-01T00:00:00.000000Z"
    leases.keep(elsewhere)
    second = Candidate(leases, clock, "second")

    async with running(second):
        await clock.advance(14)

        assert not second.leads()


async def test_a_leader_that_cannot_renew_stops_before_anybody_takes_over(leases: Leases, clock: VirtualClock) -> None:
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


async def test_after_a_suspension_a_former_leader_may_not_write_even_before_its_tasks_run(leases: Leases) -> None:
    clock = SuspendedClock()
    first = Candidate(leases, clock, "first")

    async with running(first):
        await clock.advance(1)
        assert first.may_write()
        clock.suspend(60)
        leases.keep(record("second", clock))

        assert not first.may_write()
        await clock.advance(0)
        assert isinstance(first.outcome, LeaseLost)
        assert leases.holder == "second"


async def test_after_a_suspension_a_leader_continues_if_nobody_took_over(leases: Leases) -> None:
    clock = SuspendedClock()
    first = Candidate(leases, clock, "first")

    async with running(first):
        await clock.advance(1)
        clock.suspend(60)
        await clock.advance(0)

        assert first.may_write()
        assert first.times_led == 1


async def test_a_takeover_is_noticed_at_the_next_renewal(leases: Leases, clock: VirtualClock) -> None:
    first = Candidate(leases, clock, "first")

    async with running(first):
        await clock.advance(1)
        leases.keep(record("usurper", clock))
        await clock.advance(3)

        assert isinstance(first.outcome, LeaseLost)
        assert leases.holder == "usurper"


async def test_a_label_on_the_lease_or_a_lost_answer_does_not_end_leadership(leases: Leases, clock: VirtualClock) -> None:
    first = Candidate(leases, clock, "first")

    async with running(first):
        await clock.advance(1)
        assert leases.lease
        leases.keep(leases.lease)
        await clock.advance(5)
        leases.lost_answers = 1
        await clock.advance(60)

        assert first.leads()
        assert first.times_led == 1


async def test_a_candidate_whose_create_was_done_without_an_answer_leads_at_its_next_reading(leases: Leases, clock: VirtualClock) -> None:
    leases.lost_answers = 1
    first = Candidate(leases, clock, "first")

    async with running(first):
        await clock.advance(3)

        assert first.leads()
        assert leases.lease is not None
        assert leases.lease["spec"]["leaseTransitions"] == 0
        assert first.waited_for == []


async def test_a_lease_without_a_spec_ends_leadership_and_is_acquired_like_a_free_one(leases: Leases, clock: VirtualClock) -> None:
    first, second = Candidate(leases, clock, "first"), Candidate(leases, clock, "second")

    async with running(first):
        await clock.advance(1)
        assert leases.lease
        leases.keep({"metadata": leases.lease["metadata"]})
        await clock.advance(5)
        assert isinstance(first.outcome, LeaseLost)

    async with running(second):
        await clock.advance(1)
        assert second.leads()


async def test_a_server_that_accepts_requests_and_never_answers_is_reported_as_such(leases: Leases, clock: VirtualClock) -> None:
    leases.silent = True
    first = Candidate(leases, clock, "first", patience=0.1)
    first.lease = replace(first.lease, durations=Durations(0.3, 0.02, 0.01))

    async with running(first):
        for _ in range(5):
            await anyio.sleep(0.03)  # A request without an answer times out in real time.
            await clock.advance(0.1)

        assert isinstance(first.outcome, Unreachable)


async def test_of_many_candidates_at_once_one_leads(leases: Leases, clock: VirtualClock) -> None:
    candidates = [Candidate(leases, clock, f"candidate-{number}") for number in range(5)]

    async with running(*candidates):
        for _ in range(100):
            await clock.advance(0.2)
            assert sum(candidate.leads() for candidate in candidates) == 1
        leader = next(candidate for candidate in candidates if candidate.leads())
        leader.stop.set()
        await clock.advance(3)

        assert sum(candidate.leads() for candidate in candidates) == 1
        assert not leader.leads()


async def test_a_forbidden_lease_is_reported_at_once(leases: Leases, clock: VirtualClock) -> None:
    leases.forbidden = True
    first = Candidate(leases, clock, "first", patience=15)

    async with running(first):
        await clock.advance(0)

        assert isinstance(first.outcome, Forbidden)


async def test_a_server_that_has_never_answered_is_reported_at_once(leases: Leases, clock: VirtualClock) -> None:
    leases.unreachable = True
    first = Candidate(leases, clock, "first", patience=15)

    async with running(first):
        await clock.advance(0)

        assert isinstance(first.outcome, Unreachable)


async def test_a_candidate_keeps_waiting_while_the_server_is_unreachable(leases: Leases, clock: VirtualClock) -> None:
    leases.keep(record("killed", clock))
    second = Candidate(leases, clock, "second")

    async with running(second):
        await clock.advance(5)
        leases.unreachable = True
        await clock.advance(5)
        leases.unreachable = False
        await clock.advance(6)

        assert second.leads()
        assert second.waited_for == ["killed"]


async def test_a_leader_uses_exactly_the_verbs_that_preflight_asks_for(leases: Leases, clock: VirtualClock) -> None:
    needed = [permission for permission in permissions((), Configuration({}, ""), "default") if permission.kind == kinds.LEASE]

    async with running(Candidate(leases, clock, "first")):
        await clock.advance(30)

    assert {verb for permission in needed for verb in permission.verbs} == {
        "update" if request == "replace" else request for request in leases.requests
    }


async def test_an_error_in_the_block_is_raised_as_it_is_and_the_lease_is_released(leases: Leases, clock: VirtualClock) -> None:
    lease = Lease(cast(Client, leases), clock, "default", "engine", "first")

    with pytest.raises(ZeroDivisionError):
        async with held(lease):
            raise ZeroDivisionError

    assert leases.holder == ""


async def test_control_characters_in_the_name_of_a_holder_are_escaped(leases: Leases, clock: VirtualClock) -> None:
    leases.keep(record("\x1b[2Jnobody", clock) | {"kind": "Lease"})
    first, second = Candidate(leases, clock, "first", patience=1), Candidate(leases, clock, "second", patience=1)

    async with running(first, second):
        await clock.advance(4)

        assert "\\x1b[2Jnobody" in str(second.outcome)


@pytest.mark.parametrize("durations", [(10, 10, 2), (15, 2, 2), (15, 10, 0)])
def test_durations_that_would_allow_two_leaders_are_refused(durations: tuple[float, float, float]) -> None:
    with pytest.raises(InputError, match="must be greater"):
        Durations(*durations)


def test_a_process_is_gone_only_if_it_ran_on_this_machine_and_has_ended() -> None:
    gone = identity_of_an_ended_process()
    host, pid, machine, token = gone.rsplit("_", 3)

    assert is_gone(gone)
    assert not is_gone(identify())
    assert not is_gone("_".join((host, pid, "0" * 12, token)))
    assert not is_gone("_".join((host, str(os.getppid()), machine, token)))


@pytest.mark.parametrize(
    "name", ["", "x", "a_b_c_d", "host_0_m_t", "host_-1_m_t", "host_²_m_t", "host_99999999999999999999999_m_t", "____"]
)
def test_an_identity_of_another_format_counts_as_alive(name: str) -> None:
    _, _, machine, _ = identify().rsplit("_", 3)

    assert not is_gone(name)
    assert not is_gone(name.replace("_m_", f"_{machine}_"))


def identity_of_an_ended_process() -> str:
    """The identity of a process of this machine that has ended."""
    script = "from engine.runtime.lease_holder import identify; print(identify())"
    return subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout.strip()
