"""WorkQueue: every key is processed once, in order, some after a delay, and again after an error."""

from collections.abc import Awaitable, Callable

import anyio
import pytest

from engine.errors import Conflict, Throttled
from grove_sandbox.actors.work_queue import WorkQueue
from grove_sandbox.clock import VirtualClock

pytestmark = pytest.mark.anyio


class Run:
    """A work queue on a virtual clock, and the keys that were processed, with the seconds at which they were."""

    def __init__(self, process: Callable[[str], Awaitable[float | None]] | None = None) -> None:
        self.clock = VirtualClock()
        self.queue: WorkQueue[str] = WorkQueue(self.clock)
        self.processed: list[tuple[float, str]] = []
        self._process = process

    async def process(self, key: str) -> float | None:
        self.processed.append((self.clock.monotonic(), key))
        return await self._process(key) if self._process else None

    async def advance(self, seconds: float) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.queue.run, self.process)
            await self.clock.advance(seconds)
            tasks.cancel_scope.cancel()


async def test_a_key_added_twice_is_processed_once_and_in_its_turn() -> None:
    run = Run()
    for key in ("b", "a", "b"):
        run.queue.add(key)

    await run.advance(1)

    assert run.processed == [(0, "b"), (0, "a")]


async def test_a_key_added_while_it_is_processed_is_processed_again_but_never_twice_at_once() -> None:
    in_process: list[str] = []

    async def slowly(key: str) -> None:
        assert key not in in_process
        in_process.append(key)
        if len(run.processed) == 1:
            run.queue.add(key)
        await run.clock.sleep(2)
        in_process.remove(key)

    run = Run(slowly)
    run.queue.add("a")

    await run.advance(10)

    assert run.processed == [(0, "a"), (2, "a")]


async def test_of_several_delays_the_shortest_counts() -> None:
    run = Run()
    run.queue.add_after("a", 5)
    run.queue.add_after("b", 3)
    run.queue.add_after("a", 1)
    run.queue.add_after("a", 4)

    await run.advance(10)

    assert run.processed == [(1, "a"), (3, "b")]


async def test_the_processor_says_after_how_long_to_process_a_key_again() -> None:
    async def thrice(key: str) -> float | None:
        return 2 if len(run.processed) < 3 else None

    run = Run(thrice)
    run.queue.add("a")

    await run.advance(60)

    assert run.processed == [(0, "a"), (2, "a"), (4, "a")]


async def test_a_key_is_retried_with_back_off_until_it_succeeds() -> None:
    async def in_vain(key: str) -> None:
        if len(run.processed) < 5:
            raise Conflict("changed")

    run = Run(in_vain)
    run.queue.add("a")

    await run.advance(60)

    assert [round(at, 2) for at, _ in run.processed] == [0, 0.05, 0.15, 0.35, 0.75]


async def test_a_retry_waits_as_long_as_the_server_asks() -> None:
    async def throttled(key: str) -> None:
        if len(run.processed) == 1:
            raise Throttled("later", retry_after=7)

    run = Run(throttled)
    run.queue.add("a")

    await run.advance(60)

    assert [at for at, _ in run.processed] == [0, 7]


async def test_a_key_that_fails_does_not_delay_the_others() -> None:
    async def picky(key: str) -> None:
        if key == "bad":
            raise Conflict("always")

    run = Run(picky)
    for key in ("bad", "good"):
        run.queue.add(key)

    await run.advance(0.01)

    assert run.processed == [(0, "bad"), (0, "good")]


async def test_eight_keys_are_processed_at_once_whether_they_came_before_it_ran_or_later() -> None:
    async def slowly(key: str) -> None:
        await run.clock.sleep(2)

    run = Run(slowly)
    for number in range(5):
        run.queue.add(f"early-{number}")
    for number in range(6):
        run.queue.add_after(f"late-{number}", 1)

    await run.advance(10)

    early = [(0, f"early-{number}") for number in range(5)]
    assert run.processed == [*early, *((1 if number < 3 else 2, f"late-{number}") for number in range(6))]


async def test_keys_that_are_added_after_it_has_ended_wait_for_the_next_run() -> None:
    run = Run()
    run.queue.add("a")
    await run.advance(1)
    run.queue.add("b")

    await run.advance(1)

    assert run.processed == [(0, "a"), (1, "b")]
