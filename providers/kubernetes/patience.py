"""Patience: whether a failed request is worth another try, and after how long."""

from collections.abc import Callable

from engine.errors import ClusterError, ServerFault, Throttled
from providers.kubernetes.faults import Cut, Unconnected

TRIES = 5
KNOCKS = 3
"""Tries where nobody opens: a server that restarts is back by then, and who mistyped its address is not kept waiting."""
LONGEST_WAIT = 30.0
"""Seconds; a server that wants us away for longer is not waited for inside a request."""
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0

READS = frozenset({"GET", "HEAD"})


def pause(method: str, fault: ClusterError, tries: int, chance: Callable[[], float]) -> float | None:
    """Seconds to wait before the next try, or none: this is the answer. `tries` have failed; `chance` is from 0 up to 1.

    A throttled request and one that was never sent were not carried out, whatever they ask for. Any other failed write may have been,
    and a blind second one would be told `AlreadyExists`, `Conflict` or `NotFound` of the first one's doing: its caller looks instead.
    """
    if tries >= (KNOCKS if isinstance(fault, Unconnected) else TRIES) or not _repeatable(method, fault):
        return None
    if fault.retry_after is not None:
        return fault.retry_after * (1 + 0.2 * chance()) if fault.retry_after <= LONGEST_WAIT else None
    return min(LONGEST_PAUSE, FIRST_PAUSE * 2.0**tries) * (0.5 + chance())


def _repeatable(method: str, fault: ClusterError) -> bool:
    return isinstance(fault, Throttled | Unconnected) or (method in READS and isinstance(fault, ServerFault | Cut))
