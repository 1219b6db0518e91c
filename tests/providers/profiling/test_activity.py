"""What a process is doing, from its stacks and its requests."""

import pytest

from providers.profiling.activity import Activity, Call, activity_of, awaited, doing, waiting_for

IDLE = (Call("selectors", "select"), Call("asyncio.base_events", "_run_once"))
"""The stack of an event loop that waits."""
PLANNING = (Call("deepdiff.diff", "compare"), Call("engine.diff", "compare"), Call("asyncio.events", "_run"))


@pytest.mark.parametrize(
    ("stack", "activity"),
    [
        (PLANNING, Activity.PLANNING),
        ((Call("json.decoder", "decode"), Call("providers.listing", "listed")), Activity.CODING),
        ((Call("engine.runtime.apply", "_send"),), Activity.APPLYING),
        ((Call("providers.kubernetes.client", "request"), Call("engine.runtime.apply", "_send")), Activity.SENDING),
        ((Call("enginepod", "main"),), Activity.OTHER),
        ((), Activity.OTHER),
        (IDLE, None),
    ],
)
def test_the_innermost_module_that_is_known_says_what_a_thread_does(stack: tuple[Call, ...], activity: Activity | None) -> None:
    assert activity_of(stack) == activity


def test_the_first_thread_that_works_counts_and_if_none_does_what_is_under_way() -> None:
    in_flight = {Activity.WAITING_FOR_WRITES: 3, Activity.WAITING_FOR_READS: 1, Activity.WAITING_FOR_STATE: 0}

    assert doing([IDLE, PLANNING], in_flight) == {Activity.PLANNING: 1.0}
    assert doing([IDLE, IDLE], in_flight) == {Activity.WAITING_FOR_WRITES: 0.75, Activity.WAITING_FOR_READS: 0.25}
    assert waiting_for({}) == {Activity.WAITING_FOR_CLUSTER: 1.0}


@pytest.mark.parametrize(
    ("method", "path", "activity"),
    [
        ("GET", "/api/v1/namespaces/a/pods?limit=500", Activity.WAITING_FOR_READS),
        ("POST", "/api/v1/namespaces/a/pods", Activity.WAITING_FOR_WRITES),
        ("PATCH", "/apis/grove.io/v1alpha1/namespaces/a/podcliques/c/status?x=1", Activity.WAITING_FOR_STATE),
        ("POST", "/apis/events.k8s.io/v1/namespaces/a/events", Activity.WAITING_FOR_STATE),
        ("PATCH", "/apis/events.k8s.io/v1/namespaces/a/events/e", Activity.WAITING_FOR_STATE),
        ("PUT", "/apis/coordination.k8s.io/v1/namespaces/a/leases/l", None),
    ],
)
def test_what_is_waited_for_follows_from_the_request(method: str, path: str, activity: Activity | None) -> None:
    assert awaited(method, path) == activity
