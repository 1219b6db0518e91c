"""A clock that is turned by hand: nobody waits for real, and everybody wakes in order."""

import anyio
import pytest

from grove_sandbox.clock import EPOCH, VirtualClock

pytestmark = pytest.mark.anyio


async def test_sleepers_wake_in_the_order_of_their_instants() -> None:
    clock, woken = VirtualClock(), list[tuple[str, float]]()

    async def sleeper(name: str, seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append((name, clock.monotonic()))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(sleeper, "late", 20.0)
        tasks.start_soon(sleeper, "early", 10.0)
        tasks.start_soon(sleeper, "also early", 10.0)
        await clock.advance(20)

    assert woken == [("early", 10.0), ("also early", 10.0), ("late", 20.0)]


async def test_who_lies_down_again_on_the_way_wakes_again_on_the_way() -> None:
    clock, ticks = VirtualClock(), list[float]()

    async def ticker() -> None:
        while True:
            await clock.sleep(5)
            ticks.append(clock.monotonic())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ticker)
        await clock.advance(17)
        tasks.cancel_scope.cancel()

    assert ticks == [5.0, 10.0, 15.0]
    assert (clock.now() - EPOCH).total_seconds() == 17.0


async def test_a_sleeper_that_is_called_off_is_forgotten() -> None:
    clock = VirtualClock()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(clock.sleep, 60.0)
        await clock.advance(1)
        tasks.cancel_scope.cancel()

    with pytest.raises(TimeoutError, match="no task waits"):
        await clock.run_until(lambda: False)


async def test_it_jumps_to_what_is_waited_for() -> None:
    clock, done = VirtualClock(), list[str]()

    async def chain() -> None:
        for name in ("one", "two", "three"):
            await clock.sleep(100)
            done.append(name)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(chain)
        await clock.run_until(lambda: "two" in done)
        tasks.cancel_scope.cancel()

    assert (done, clock.monotonic()) == (["one", "two"], 200.0)


async def test_waiting_for_what_does_not_come_in_time_ends() -> None:
    clock = VirtualClock()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(clock.sleep, 1000.0)
        await clock.advance(0)
        with pytest.raises(TimeoutError, match="not within 10 virtual seconds"):
            await clock.run_until(lambda: False, within=10)
        tasks.cancel_scope.cancel()


async def test_a_cancelled_task_that_still_waits_for_the_clock_does_not_stop_it() -> None:
    clock, ended = VirtualClock(), list[float]()

    async def in_order() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await clock.sleep(10)
                ended.append(clock.monotonic())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(in_order)
        await clock.advance(1)
        tasks.cancel_scope.cancel()
        with anyio.CancelScope(shield=True):
            await clock.run_until(lambda: bool(ended))

    assert ended == [11.0]
