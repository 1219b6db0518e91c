"""What the profiler writes of a process that waits for an answer."""

import json
import sys
import threading
from io import StringIO

import pytest

from engine.runtime.clock import SystemClock
from providers.profiling.profiler import Activity, Call, Profiler, activity_of, awaited, doing, waiting_for


@pytest.fixture(autouse=True)
def _one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """The profiler sees this thread alone: those of the test runner read sockets, which counts as work."""
    frames = sys._current_frames
    this = threading.get_ident()
    monkeypatch.setattr(sys, "_current_frames", lambda: {this: frames()[this]})


class Lines(StringIO):
    """A file that tells when it is written to."""

    def __init__(self) -> None:
        super().__init__()
        self.written = threading.Event()

    def flush(self) -> None:
        self.written.set()


def waited(profiler: Profiler) -> set[str]:
    """What the profiler says of a thread that waits until a line is written."""
    file = Lines()
    with profiler.running(file):
        file.written.wait()
    return set(json.loads(file.getvalue().splitlines()[0])["seconds"])


def test_a_thread_that_waits_while_a_read_is_in_flight_waits_for_it() -> None:
    profiler = Profiler(SystemClock())
    profiler.sent("GET", "/api/v1/pods?limit=500")

    seen = waited(profiler)

    assert Activity.WAITING_FOR_READS in seen
    assert Activity.WAITING_FOR_CLUSTER not in seen


def test_a_read_that_was_given_up_is_not_waited_for() -> None:
    profiler = Profiler(SystemClock())
    profiler.sent("GET", "/api/v1/pods?limit=500")
    profiler.abandoned("GET", "/api/v1/pods?limit=500")

    seen = waited(profiler)

    assert Activity.WAITING_FOR_CLUSTER in seen
    assert Activity.WAITING_FOR_READS not in seen


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
