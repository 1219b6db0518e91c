"""Waiting, over HTTP, on a sandbox cluster whose API server fails in the usual ways."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from grove_sandbox.http.access import Denial
from grove_sandbox.http.faults import InjectedFault
from grove_sandbox.http.tls import loopback_identity
from initc.wait import LONGEST, pause
from tests.initc.cluster import Cluster, NoMoreActions, Waiter, nothing


def test_it_does_not_wait_for_pods_that_are_ready(cluster: Cluster) -> None:
    cluster.create("l-0", "x-0-l")
    waiter = Waiter(cluster.environment, {"x-0-l": 1})
    waiter.end()

    assert (waiter.lines(), waiter.pauses) == ([], [])


def test_it_ends_when_the_last_required_pod_is_ready(cluster: Cluster) -> None:
    cluster.create("l-0", "x-0-l", ready=False)
    waiter = Waiter(cluster.environment, {"x-0-l": 2, "x-0-r": 1})
    assert waiter.line() == "waiting for 2 of x-0-l, 1 of x-0-r"

    cluster.set_ready("l-0", True)
    assert waiter.line() == "waiting for 1 of x-0-l, 1 of x-0-r"
    cluster.create("r-0", "x-0-r")
    assert waiter.line() == "waiting for 1 of x-0-l"
    cluster.create("l-1", "x-0-l")
    waiter.end()


def test_pods_of_other_gangs_and_of_cliques_with_longer_names_do_not_count(cluster: Cluster) -> None:
    cluster.create("elsewhere", "x-0-l", gang="x-1")
    cluster.create("x-0-l-ab12c", "x-0-ll")
    waiter = Waiter(cluster.environment, {"x-0-l": 1})
    assert waiter.line() == "waiting for 1 of x-0-l"

    cluster.create("l-0", "x-0-l")
    waiter.end()


def test_all_must_be_ready_at_one_instant(cluster: Cluster) -> None:
    cluster.create("a-0", "a")
    waiter = Waiter(cluster.environment, {"a": 1, "b": 1})
    assert waiter.line() == "waiting for 1 of b"
    cluster.set_ready("a-0", False)
    assert waiter.line() == "waiting for 1 of a, 1 of b"
    cluster.create("b-0", "b")
    assert waiter.line() == "waiting for 1 of a"
    cluster.delete("b-0")
    assert waiter.line() == "waiting for 1 of a, 1 of b"

    cluster.set_ready("a-0", True)
    cluster.create("b-1", "b")
    waiter.end()


def test_an_expired_watch_is_followed_by_a_new_list(cluster: Cluster) -> None:
    cluster.inject(InjectedFault("expire", verb="watch", resource="pods"))
    cluster.create("l-0", "l", ready=False)
    waiter = Waiter(cluster.environment, {"l": 1}, lambda: cluster.set_ready("l-0", True))
    assert waiter.line() == "waiting for 1 of l"
    cluster.create("other", "other")
    waiter.end()

    assert waiter.lines() == ["the API server answers 410: the watch has expired; retrying"]


def watching(cluster: Cluster, *instead_of_sleep: Callable[[], None]) -> Waiter:
    """A waiter for two pods, one of which is ready. It has begun to watch: it has reported an event."""
    cluster.create("l-0", "l", ready=False)
    cluster.create("l-1", "l", ready=False)
    waiter = Waiter(cluster.environment, {"l": 2}, *instead_of_sleep)
    assert waiter.line() == "waiting for 2 of l"
    cluster.set_ready("l-0", True)
    assert waiter.line() == "waiting for 1 of l"
    return waiter


def test_after_a_closed_connection_nothing_in_between_is_missed(cluster: Cluster) -> None:
    waiter = watching(cluster, lambda: cluster.set_ready("l-1", True))
    cluster.hang_up()
    waiter.end()

    assert (waiter.lines(), len(waiter.pauses)) == ([], 1)


def test_a_replaced_token_is_read_again(cluster: Cluster) -> None:
    waiter = watching(cluster, nothing, lambda: cluster.set_ready("l-1", True))
    cluster.rotate("second")
    cluster.hang_up()
    assert waiter.line() == "waiting for 1 of l"
    cluster.set_ready("l-0", False)
    assert waiter.line() == "waiting for 2 of l"
    cluster.set_ready("l-0", True)
    assert waiter.line() == "waiting for 1 of l"
    cluster.rotate("third")
    cluster.hang_up()
    waiter.end()


def test_a_token_that_is_not_valid_yet_is_tried_again(cluster: Cluster) -> None:
    cluster.create("l-0", "l")
    cluster.mount("token", "unheard-of")
    waiter = Waiter(cluster.environment, {"l": 1}, nothing, lambda: cluster.rotate("known"))
    waiter.end()

    assert waiter.lines() == ["the API server answers 401: the token is not valid; retrying"] * 2
    assert not any("unheard-of" in line for line in waiter.lines())


def test_a_missing_permission_is_waited_for(cluster: Cluster) -> None:
    cluster.create("l-0", "l")
    denials = cluster.sandbox.access.denials
    denials.append(Denial(user="waiter", verb="list", resource="pods"))
    waiter = Waiter(cluster.environment, {"l": 1}, denials.clear)
    waiter.end()

    assert waiter.lines() == ["the API server answers 403: the service account may not list and watch pods; retrying"]


def test_permission_to_list_without_permission_to_watch_is_reported(cluster: Cluster) -> None:
    denials = cluster.sandbox.access.denials
    denials.append(Denial(user="waiter", verb="watch", resource="pods"))
    waiter = Waiter(cluster.environment, {"l": 1}, nothing, nothing)
    with pytest.raises(NoMoreActions):
        waiter.end()

    assert waiter.lines()[:2] == [
        "waiting for 1 of l",
        "the API server answers 403: the service account may not list and watch pods; retrying",
    ]
    assert len(waiter.pauses) == 3


@pytest.mark.parametrize("fault", [InjectedFault("cut"), InjectedFault("answer", code=500), InjectedFault("answer", code=429)])
def test_after_a_server_error_it_tries_again(cluster: Cluster, fault: InjectedFault) -> None:
    cluster.create("l-0", "l")
    cluster.inject(fault)
    waiter = Waiter(cluster.environment, {"l": 1}, nothing)
    waiter.end()

    assert len(waiter.lines()) == 1


@pytest.mark.parametrize("answer", [[], "busy", {"items": ["busy"], "metadata": {"resourceVersion": "1"}}])
def test_a_list_that_is_no_pod_list_is_tried_again(cluster: Cluster, monkeypatch: pytest.MonkeyPatch, answer: Any) -> None:
    genuine = json.load
    cluster.create("l-0", "x-0-l")
    monkeypatch.setattr("initc.wait.json.load", lambda response: answer)
    waiter = Waiter(cluster.environment, {"x-0-l": 1}, lambda: monkeypatch.setattr("initc.wait.json.load", genuine))

    assert waiter.line().endswith("; retrying")
    waiter.end()


def test_a_server_with_an_unknown_certificate_gets_no_token(cluster: Cluster) -> None:
    cluster.create("l-0", "l")
    cluster.mount("ca.crt", loopback_identity().authority.decode())
    waiter = Waiter(cluster.environment, {"l": 1}, lambda: cluster.mount("ca.crt", cluster.sandbox.authority.decode()))
    waiter.end()

    (line,) = waiter.lines()
    assert "CERTIFICATE_VERIFY_FAILED" in line


def test_proxies_of_the_environment_are_not_used(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    cluster.create("l-0", "l")

    Waiter(cluster.environment, {"l": 1}).end()


def test_pauses_grow_to_a_limit_and_have_jitter() -> None:
    assert all(0.5 <= pause(0) <= 1.0 for _ in range(20))
    assert all(2.0 <= pause(2) <= 4.0 for _ in range(20))
    assert all(LONGEST / 2 <= pause(failures) <= LONGEST for failures in (5, 50, 10_000))
    assert len({pause(1) for _ in range(20)}) > 1
