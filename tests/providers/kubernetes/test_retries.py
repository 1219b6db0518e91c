"""Retries: which failed requests the client sends again, and after how long."""

import pytest

from engine.errors import ClusterError, Conflict, Forbidden, ServerFault, Throttled, Unreachable
from providers.kubernetes.errors import ATTEMPTS, ConnectionBroken, NotConnected, NotConverted, delay

WRITES = ("POST", "PUT", "PATCH", "DELETE")


def after(method: str, error: ClusterError, attempts: int = 1, chance: float = 0.5) -> float | None:
    return delay(method, error, attempts, lambda: chance)


@pytest.mark.parametrize("method", WRITES)
@pytest.mark.parametrize("error", [ServerFault("x", retry_after=1), ConnectionBroken("x"), Unreachable("x"), Conflict("x"), Forbidden("x")])
def test_a_write_that_may_have_been_done_is_not_repeated(method: str, error: ClusterError) -> None:
    assert after(method, error) is None


@pytest.mark.parametrize("method", WRITES)
def test_a_throttled_write_is_left_to_the_caller(method: str) -> None:
    assert after(method, Throttled("x", retry_after=1)) is None


@pytest.mark.parametrize("method", ["GET", *WRITES])
def test_a_request_that_was_never_sent_is_repeated_whatever_its_method(method: str) -> None:
    assert after(method, NotConnected("x")) == 0.2


@pytest.mark.parametrize("error", [Throttled("x"), ServerFault("x"), ConnectionBroken("x")])
def test_a_read_is_repeated(error: ClusterError) -> None:
    assert after("GET", error) == 0.2


def test_pauses_grow_and_attempts_end() -> None:
    pauses = [after("GET", ServerFault("x"), attempts) for attempts in range(1, ATTEMPTS + 1)]

    assert pauses == [0.2, 0.4, 0.8, 1.6, None]


def test_attempts_to_connect_end_earlier() -> None:
    assert [after("POST", NotConnected("x"), attempts) for attempts in (1, 2, 3)] == [0.2, 0.4, None]


def test_objects_that_nothing_converts_are_asked_for_twice() -> None:
    error = NotConverted("x", retry_after=1)

    assert [after("GET", error, attempts) for attempts in (1, 2)] == [pytest.approx(1.1), None]


def test_pauses_are_random_so_that_clients_do_not_come_back_together() -> None:
    assert [after("GET", ConnectionBroken("x"), chance=chance) for chance in (0.0, 1.0)] == [0.1, pytest.approx(0.3)]


def test_a_request_is_never_repeated_earlier_than_retry_after() -> None:
    assert after("GET", Throttled("x", retry_after=2), chance=0.0) == 2
    assert after("GET", Throttled("x", retry_after=0), chance=1.0) == 0
    assert after("GET", Throttled("x", retry_after=31)) is None
