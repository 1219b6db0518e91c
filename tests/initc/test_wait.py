"""Waiting, over HTTP, on a cluster whose API server does what API servers do."""

from collections.abc import Callable

import pytest

from initc.wait import LONGEST, pause
from providers.sandbox.http.access import Denial
from providers.sandbox.http.faults import Fault
from providers.sandbox.http.tls import loopback_identity
from tests.initc.cluster import Cluster, Enough, Waiter, nothing


def test_what_is_ready_already_is_not_waited_for(cluster: Cluster) -> None:
    cluster.create("l-0", "x-0-l")
    waiter = Waiter(cluster.place, {"x-0-l": 1})
    waiter.end()

    assert (waiter.lines(), waiter.rests) == ([], [])


def test_it_ends_when_the_last_of_those_that_are_needed_is_ready(cluster: Cluster) -> None:
    cluster.create("l-0", "x-0-l", ready=False)
    waiter = Waiter(cluster.place, {"x-0-l": 2, "x-0-r": 1})
    assert waiter.line() == "waits for 2 of x-0-l, 1 of x-0-r"

    cluster.tell_ready("l-0", True)
    assert waiter.line() == "waits for 1 of x-0-l, 1 of x-0-r"
    cluster.create("r-0", "x-0-r")
    assert waiter.line() == "waits for 1 of x-0-l"
    cluster.create("l-1", "x-0-l")
    waiter.end()


def test_pods_of_other_gangs_and_of_cliques_with_longer_names_do_not_count(cluster: Cluster) -> None:
    cluster.create("elsewhere", "x-0-l", gang="x-1")
    cluster.create("x-0-l-ab12c", "x-0-ll")
    waiter = Waiter(cluster.place, {"x-0-l": 1})
    assert waiter.line() == "waits for 1 of x-0-l"

    cluster.create("l-0", "x-0-l")
    waiter.end()


def test_all_must_be_ready_at_one_instant(cluster: Cluster) -> None:
    cluster.create("a-0", "a")
    waiter = Waiter(cluster.place, {"a": 1, "b": 1})
    assert waiter.line() == "waits for 1 of b"
    cluster.tell_ready("a-0", False)
    assert waiter.line() == "waits for 1 of a, 1 of b"
    cluster.create("b-0", "b")
    assert waiter.line() == "waits for 1 of a"
    cluster.delete("b-0")
    assert waiter.line() == "waits for 1 of a, 1 of b"

    cluster.tell_ready("a-0", True)
    cluster.create("b-1", "b")
    waiter.end()


def test_a_watch_that_is_told_to_begin_anew_does(cluster: Cluster) -> None:
    cluster.inject(Fault("expire", verb="watch", resource="pods"))
    cluster.create("l-0", "l", ready=False)
    waiter = Waiter(cluster.place, {"l": 1}, lambda: cluster.tell_ready("l-0", True))
    assert waiter.line() == "waits for 1 of l"
    cluster.create("other", "other")
    waiter.end()

    assert waiter.lines() == ["the API server answers 410: it has forgotten that revision; tries again"]


def watching(cluster: Cluster, *instead_of_rest: Callable[[], None]) -> Waiter:
    """A waiter for two leaders, one of which is ready, that has begun to watch: it has told of an event."""
    cluster.create("l-0", "l", ready=False)
    cluster.create("l-1", "l", ready=False)
    waiter = Waiter(cluster.place, {"l": 2}, *instead_of_rest)
    assert waiter.line() == "waits for 2 of l"
    cluster.tell_ready("l-0", True)
    assert waiter.line() == "waits for 1 of l"
    return waiter


def test_a_server_that_hangs_up_is_asked_again_and_nothing_in_between_is_missed(cluster: Cluster) -> None:
    waiter = watching(cluster, lambda: cluster.tell_ready("l-1", True))
    cluster.hang_up()
    waiter.end()

    assert (waiter.lines(), len(waiter.rests)) == ([], 1)


def test_a_token_that_is_replaced_is_read_again(cluster: Cluster) -> None:
    waiter = watching(cluster, nothing, lambda: cluster.tell_ready("l-1", True))
    cluster.rotate("second")
    cluster.hang_up()
    assert waiter.line() == "waits for 1 of l"
    cluster.tell_ready("l-0", False)
    assert waiter.line() == "waits for 2 of l"
    cluster.tell_ready("l-0", True)
    assert waiter.line() == "waits for 1 of l"
    cluster.rotate("third")
    cluster.hang_up()
    waiter.end()


def test_a_token_that_the_server_does_not_know_yet_is_shown_again(cluster: Cluster) -> None:
    cluster.create("l-0", "l")
    cluster.mount("token", "unheard-of")
    waiter = Waiter(cluster.place, {"l": 1}, nothing, lambda: cluster.rotate("known"))
    waiter.end()

    assert waiter.lines() == ["the API server answers 401: it does not know the token; tries again"] * 2
    assert not any("unheard-of" in line for line in waiter.lines())


def test_a_right_that_comes_late_is_waited_for(cluster: Cluster) -> None:
    cluster.create("l-0", "l")
    denials = cluster.sandbox.access.denials
    denials.append(Denial(user="waiter", verb="list", resource="pods"))
    waiter = Waiter(cluster.place, {"l": 1}, denials.clear)
    waiter.end()

    assert waiter.lines() == ["the API server answers 403: the account may not see pods; tries again"]


def test_a_right_to_look_without_one_to_watch_is_not_enough_and_is_told(cluster: Cluster) -> None:
    denials = cluster.sandbox.access.denials
    denials.append(Denial(user="waiter", verb="watch", resource="pods"))
    waiter = Waiter(cluster.place, {"l": 1}, nothing, nothing)
    with pytest.raises(Enough):
        waiter.end()

    assert waiter.lines()[:2] == ["waits for 1 of l", "the API server answers 403: the account may not see pods; tries again"]
    assert len(waiter.rests) == 3


@pytest.mark.parametrize("fault", [Fault("cut"), Fault("answer", code=500), Fault("answer", code=429)])
def test_a_server_in_trouble_is_asked_again(cluster: Cluster, fault: Fault) -> None:
    cluster.create("l-0", "l")
    cluster.inject(fault)
    waiter = Waiter(cluster.place, {"l": 1}, nothing)
    waiter.end()

    assert len(waiter.lines()) == 1


def test_a_server_that_cannot_prove_who_it_is_gets_no_token(cluster: Cluster) -> None:
    cluster.create("l-0", "l")
    cluster.mount("ca.crt", loopback_identity().authority.decode())
    waiter = Waiter(cluster.place, {"l": 1}, lambda: cluster.mount("ca.crt", cluster.sandbox.authority.decode()))
    waiter.end()

    (line,) = waiter.lines()
    assert "CERTIFICATE_VERIFY_FAILED" in line


def test_proxies_are_for_others(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    cluster.create("l-0", "l")

    Waiter(cluster.place, {"l": 1}).end()


def test_pauses_grow_to_a_limit_and_are_never_quite_the_same() -> None:
    assert all(0.5 <= pause(0) <= 1.0 for _ in range(20))
    assert all(2.0 <= pause(2) <= 4.0 for _ in range(20))
    assert all(LONGEST / 2 <= pause(failures) <= LONGEST for failures in (5, 50, 10_000))
    assert len({pause(1) for _ in range(20)}) > 1
