"""What the profiler writes of a process that waits for an answer."""

import json
import sys
import threading
from io import StringIO

import pytest

from engine.runtime.clock import SystemClock
from providers.profiling.activity import Activity
from providers.profiling.profiler import Profiler


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
