"""A single flight: one run for everybody who asks meanwhile."""

import anyio
import pytest

from engine.errors import InputError
from providers.kubernetes.flight import SingleFlight

pytestmark = pytest.mark.anyio


class Errand:
    """Something that is done when the test says so, and counts how often it was begun."""

    def __init__(self, error: Exception | None = None) -> None:
        self.begun = 0
        self.error = error
        self.go = anyio.Event()

    async def __call__(self) -> int:
        self.begun += 1
        await self.go.wait()
        if self.error:
            raise self.error
        return self.begun


async def test_forty_who_ask_at_once_share_one_run() -> None:
    errand, outcomes = Errand(), []
    flight = SingleFlight(errand)

    async def ask() -> None:
        outcomes.append(await flight())

    async with anyio.create_task_group() as tasks:
        for _ in range(40):
            tasks.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        errand.go.set()

    assert (errand.begun, outcomes) == (1, [1] * 40)


async def test_who_asks_afterwards_gets_a_run_of_his_own() -> None:
    errand = Errand()
    errand.go.set()
    flight = SingleFlight(errand)

    assert [await flight(), await flight()] == [1, 2]


async def test_a_failure_is_shared_too_and_is_not_remembered() -> None:
    errand, failures = Errand(InputError("no")), 0
    flight = SingleFlight(errand)

    async def ask() -> None:
        nonlocal failures
        with pytest.raises(InputError):
            await flight()
        failures += 1

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        tasks.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        errand.go.set()
    errand.error = None

    assert (failures, errand.begun, await flight()) == (2, 1, 2)


async def test_when_the_one_who_runs_it_is_cancelled_another_takes_over() -> None:
    errand, outcomes = Errand(), []
    flight = SingleFlight(errand)
    first = anyio.CancelScope()

    async def leader() -> None:
        with first:
            await flight()

    async def follower() -> None:
        outcomes.append(await flight())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(leader)
        await anyio.wait_all_tasks_blocked()
        tasks.start_soon(follower)
        await anyio.wait_all_tasks_blocked()
        first.cancel()
        await anyio.wait_all_tasks_blocked()
        errand.go.set()

    assert (errand.begun, outcomes) == (2, [2])
