"""What the profiler writes of a process that waits for an answer."""

import json
import threading
from io import StringIO

from engine.runtime.clock import SystemClock
from providers.profiling.activity import Activity
from providers.profiling.profiler import Profiler


def waited(profiler: Profiler) -> set[str]:
    """What the profiler says of a thread that waits until a line is written."""
    file = StringIO()
    with profiler.running(file):
        while not file.getvalue():
            threading.Event().wait(0.02)
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
