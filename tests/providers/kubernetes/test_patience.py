"""Patience: what is worth another try, and after how long."""

import pytest

from engine.errors import ClusterError, Conflict, Forbidden, ServerFault, Throttled, Unreachable
from providers.kubernetes.faults import Cut, Unconnected
from providers.kubernetes.patience import TRIES, pause


def at(method: str, fault: ClusterError, tries: int = 1, chance: float = 0.5) -> float | None:
    return pause(method, fault, tries, lambda: chance)


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("fault", [ServerFault("x", retry_after=1), Cut("x"), Unreachable("x"), Conflict("x"), Forbidden("x")])
def test_a_write_that_may_have_happened_is_not_repeated(method: str, fault: ClusterError) -> None:
    assert at(method, fault) is None


@pytest.mark.parametrize("method", ["GET", "POST", "PATCH", "DELETE"])
@pytest.mark.parametrize("fault", [Throttled("x"), Unconnected("x")])
def test_what_was_not_carried_out_is_repeated_whatever_it_was(method: str, fault: ClusterError) -> None:
    assert at(method, fault) == 0.2


def test_pauses_grow_up_to_a_bound_and_end() -> None:
    pauses = [at("GET", ServerFault("x"), tries) for tries in range(1, TRIES + 1)]

    assert pauses == [0.2, 0.4, 0.8, 1.6, None]


def test_where_nobody_opens_we_soon_stop_knocking() -> None:
    assert [at("POST", Unconnected("x"), tries) for tries in (1, 2, 3)] == [0.2, 0.4, None]


def test_pauses_differ_so_that_clients_do_not_come_back_in_step() -> None:
    assert [at("GET", Cut("x"), chance=chance) for chance in (0.0, 1.0)] == [0.1, pytest.approx(0.3)]


def test_a_server_that_says_when_is_never_asked_earlier() -> None:
    assert at("GET", Throttled("x", retry_after=2), chance=0.0) == 2
    assert at("GET", Throttled("x", retry_after=0), chance=1.0) == 0
    assert at("GET", Throttled("x", retry_after=31)) is None
