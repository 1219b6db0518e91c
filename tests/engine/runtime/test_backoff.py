"""Backoff: how long the loop pauses between two passes."""

from datetime import UTC, datetime

import pytest

from engine.observed import World
from engine.runtime.backoff import LONGEST_REST, REST, SHORTEST_PAUSE, shortest_pause
from engine.runtime.passes import Pass
from engine.tick import Plans
from engine.world import empty


def planned_in(seconds: float, *, observing: float = 0.0) -> Pass[None]:
    """A pass whose planning took so long, after so many seconds of observing."""
    world: World = empty()
    return Pass(datetime(2026, 1, 1, tzinfo=UTC), observing + seconds, world, Plans(()), frozenset(), None, observing=observing)


@pytest.mark.parametrize(
    ("seconds", "pause"), [(0.0, SHORTEST_PAUSE), (0.01, SHORTEST_PAUSE), (0.2, 0.2 * REST), (0.5, 0.5 * REST), (30.0, LONGEST_REST)]
)
def test_planning_is_followed_by_a_rest_in_proportion_but_never_by_a_long_one(seconds: float, pause: float) -> None:
    assert shortest_pause(planned_in(seconds)) == pytest.approx(pause)


def test_waiting_for_the_first_lists_is_no_planning() -> None:
    assert shortest_pause(planned_in(0.0, observing=60.0)) == SHORTEST_PAUSE


def test_the_time_of_the_operations_counts_as_rest() -> None:
    assert shortest_pause(planned_in(0.5), executing=1.0) == pytest.approx(0.5)
    assert shortest_pause(planned_in(0.5), executing=30.0) == SHORTEST_PAUSE


def test_while_roots_wait_that_a_pass_had_no_room_for_the_next_one_follows_sooner() -> None:
    assert shortest_pause(planned_in(1.0), has_backlog=True) == pytest.approx(0.5)
    assert shortest_pause(planned_in(1.0), executing=0.1, has_backlog=True) == pytest.approx(0.4)
