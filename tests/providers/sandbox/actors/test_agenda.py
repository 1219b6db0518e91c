"""Agenda: each key once, in order, and some of it later."""

from collections.abc import Awaitable, Callable

import anyio
import pytest

from engine.errors import Conflict, Throttled
from providers.sandbox.actors.agenda import Agenda
from providers.sandbox.clock import VirtualClock

pytestmark = pytest.mark.anyio


class Day:
    """An agenda at work on a clock that is turned by hand, and what was looked at."""

    def __init__(self, look: Callable[[str], Awaitable[float | None]] | None = None) -> None:
        self.clock = VirtualClock()
        self.agenda: Agenda[str] = Agenda(self.clock)
        self.seen: list[tuple[float, str]] = []
        self._look = look

    async def look(self, key: str) -> float | None:
        self.seen.append((self.clock.monotonic(), key))
        return await self._look(key) if self._look else None

    async def spend(self, seconds: float) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.agenda.work, self.look)
            await self.clock.advance(seconds)
            tasks.cancel_scope.cancel()


async def test_a_key_added_twice_is_looked_at_once_and_in_its_turn() -> None:
    day = Day()
    for key in ("b", "a", "b"):
        day.agenda.add(key)

    await day.spend(1)

    assert day.seen == [(0, "b"), (0, "a")]


async def test_a_key_added_while_it_is_looked_at_is_looked_at_again_but_never_twice_at_once() -> None:
    looking: list[str] = []

    async def slowly(key: str) -> None:
        assert key not in looking
        looking.append(key)
        if len(day.seen) == 1:
            day.agenda.add(key)
        await day.clock.sleep(2)
        looking.remove(key)

    day = Day(slowly)
    day.agenda.add("a")

    await day.spend(10)

    assert day.seen == [(0, "a"), (2, "a")]


async def test_later_means_then_and_the_earliest_wish_wins() -> None:
    day = Day()
    day.agenda.later("a", 5)
    day.agenda.later("b", 3)
    day.agenda.later("a", 1)
    day.agenda.later("a", 4)

    await day.spend(10)

    assert day.seen == [(1, "a"), (3, "b")]


async def test_an_answer_says_when_to_look_again() -> None:
    async def thrice(key: str) -> float | None:
        return 2 if len(day.seen) < 3 else None

    day = Day(thrice)
    day.agenda.add("a")

    await day.spend(60)

    assert day.seen == [(0, "a"), (2, "a"), (4, "a")]


async def test_a_look_that_the_server_refuses_is_repeated_ever_more_slowly_and_forgiven_once_it_works() -> None:
    async def in_vain(key: str) -> None:
        if len(day.seen) < 5:
            raise Conflict("changed")

    day = Day(in_vain)
    day.agenda.add("a")

    await day.spend(60)

    assert [round(at, 2) for at, _ in day.seen] == [0, 0.05, 0.15, 0.35, 0.75]


async def test_a_server_that_asks_for_patience_gets_it() -> None:
    async def throttled(key: str) -> None:
        if len(day.seen) == 1:
            raise Throttled("later", retry_after=7)

    day = Day(throttled)
    day.agenda.add("a")

    await day.spend(60)

    assert [at for at, _ in day.seen] == [0, 7]


async def test_one_key_that_fails_does_not_hold_up_the_others() -> None:
    async def picky(key: str) -> None:
        if key == "bad":
            raise Conflict("always")

    day = Day(picky)
    for key in ("bad", "good"):
        day.agenda.add(key)

    await day.spend(0.01)

    assert day.seen == [(0, "bad"), (0, "good")]
