"""CallLimit: how many calls are sent at a time, with servers that are far away, busy, or refuse calls."""

import heapq
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import EngineError, ServerFault, Throttled, Unreachable
from engine.runtime.call_limit import FIRST, LEAST, MANY, MEMORY, MOST, CallLimit


def sent(call_limit: CallLimit, seconds_of: Callable[[int], float], *, calls: int = 3000, at: float = 0.0) -> float:
    """Send calls one after the other, as many at a time as allowed. `seconds_of`: how long one takes beside so many. Returns the end."""
    in_progress: list[tuple[float, float, bool]] = []
    for _ in range(calls):
        while len(in_progress) >= call_limit.limit:
            at, began, busy = heapq.heappop(in_progress)
            call_limit.answered(began, at, None, busy=busy)
        beside = len(in_progress) + 1
        heapq.heappush(in_progress, (at + seconds_of(beside), at, beside >= call_limit.limit))
    return at


def far(beside: int) -> float:
    """A server with cores for every call, 100 ms away."""
    return 0.1


def slow(beside: int) -> float:
    """A server that answers one call after the other."""
    return 0.005 * beside


def test_to_a_server_far_away_many_calls_are_sent_at_a_time() -> None:
    call_limit = CallLimit()

    sent(call_limit, far)

    assert call_limit.limit == MOST


def test_before_a_busy_server_few_calls_wait() -> None:
    call_limit = CallLimit()

    sent(call_limit, slow)

    assert FIRST <= call_limit.limit <= MANY + 2


def test_a_server_that_becomes_busy_gets_fewer_calls() -> None:
    call_limit = CallLimit()
    at = sent(call_limit, far)
    before = call_limit.limit

    sent(call_limit, lambda beside: 0.1 * beside, at=at)

    assert call_limit.limit < before / 2


def test_a_way_that_has_become_longer_is_not_taken_for_a_busy_server() -> None:
    call_limit = CallLimit()
    at = sent(call_limit, lambda beside: 0.01)
    after = sent(call_limit, far, at=at)  # Until the fast answers are forgotten, these seem to wait.

    sent(call_limit, far, at=after + 2 * MEMORY, calls=20_000)

    assert call_limit.limit == MOST


@pytest.mark.parametrize("error", [Throttled("wait", retry_after=1), Unreachable("no answer")])
def test_a_refusal_halves_the_number_once_for_the_calls_that_were_sent_together(error: EngineError) -> None:
    call_limit = CallLimit(limit=32)

    for number in range(10):
        call_limit.answered(1.0, 1.1 + number / 100, error, busy=True)

    assert call_limit.limit == 16


def test_a_fault_of_a_single_call_changes_nothing() -> None:
    call_limit = CallLimit(limit=32)

    call_limit.answered(1.0, 1.1, ServerFault("a webhook failed"), busy=False)

    assert call_limit.limit == 32


def test_calls_that_are_too_few_to_learn_from_change_nothing() -> None:
    call_limit = CallLimit()

    for number in range(1000):
        call_limit.answered(float(number), number + 0.1, None, busy=False)

    assert call_limit.limit == FIRST


@given(st.lists(st.tuples(st.floats(0, 100), st.sampled_from([None, Throttled("wait", retry_after=1)]), st.booleans())))
def test_there_is_always_some_progress(answers: list[tuple[float, EngineError | None, bool]]) -> None:
    call_limit, at = CallLimit(), 0.0

    for took, error, busy in answers:
        at += took
        call_limit.answered(at - took, at, error, busy=busy)

    assert call_limit.limit >= LEAST
