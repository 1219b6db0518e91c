"""SingleFlight: concurrent callers share one run and its outcome."""

import anyio
import pytest

from engine.errors import InputError
from providers.kubernetes.single_flight import SingleFlight

pytestmark = pytest.mark.anyio


class Operation:
    """An operation that ends when the test says so, and counts its runs."""

    def __init__(self, error: Exception | None = None) -> None:
        self.runs = 0
        self.error = error
        self.end = anyio.Event()

    async def __call__(self) -> int:
        self.runs += 1
        await self.end.wait()
        if self.error:
            raise self.error
        return self.runs


async def test_forty_concurrent_callers_share_one_run() -> None:
    operation, outcomes = Operation(), []
    shared = SingleFlight(operation)

    async def call() -> None:
        outcomes.append(await shared())

    async with anyio.create_task_group() as tasks:
        for _ in range(40):
            tasks.start_soon(call)
        await anyio.wait_all_tasks_blocked()
        operation.end.set()

    assert (operation.runs, outcomes) == (1, [1] * 40)


async def test_a_later_caller_gets_a_new_run() -> None:
    operation = Operation()
    operation.end.set()
    shared = SingleFlight(operation)

    assert [await shared(), await shared()] == [1, 2]


async def test_a_failure_is_shared_and_not_remembered() -> None:
    operation, failures = Operation(InputError("no")), 0
    shared = SingleFlight(operation)

    async def call() -> None:
        nonlocal failures
        with pytest.raises(InputError):
            await shared()
        failures += 1

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call)
        tasks.start_soon(call)
        await anyio.wait_all_tasks_blocked()
        operation.end.set()
    operation.error = None

    assert (failures, operation.runs, await shared()) == (2, 1, 2)


async def test_when_the_caller_that_runs_it_is_cancelled_another_one_takes_over() -> None:
    operation, outcomes = Operation(), []
    shared = SingleFlight(operation)
    first = anyio.CancelScope()

    async def leader() -> None:
        with first:
            await shared()

    async def follower() -> None:
        outcomes.append(await shared())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(leader)
        await anyio.wait_all_tasks_blocked()
        tasks.start_soon(follower)
        await anyio.wait_all_tasks_blocked()
        first.cancel()
        await anyio.wait_all_tasks_blocked()
        operation.end.set()

    assert (operation.runs, outcomes) == (2, [2])
