"""Retries: whether a failed request is sent again by the client, and after how long."""

from collections.abc import Callable

from engine.errors import ClusterError, ServerFault, Throttled
from providers.kubernetes.errors import ConnectionBroken, NotConnected

ATTEMPTS = 5
CONNECT_ATTEMPTS = 3
"""Attempts when no connection can be made: enough for a server that restarts, and short for a mistyped address."""
LONGEST_WAIT = 30.0
"""Seconds; a Retry-After that is longer is left to the caller."""
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0
"""Seconds between attempts if the server does not send Retry-After: doubled each time, before jitter."""

READS = frozenset({"GET", "HEAD"})


def delay(method: str, error: ClusterError, attempts: int, chance: Callable[[], float]) -> float | None:
    """Seconds until the next attempt; None: raise the error. `attempts` have failed; `chance` returns a number from 0 up to 1.

    A request that was never sent is repeated whatever its method. Otherwise only reads are repeated: a failed write may have been done, and
    a throttled one is repeated by `engine.runtime.apply` alone, which knows whether we still hold the lease.
    """
    if attempts >= (CONNECT_ATTEMPTS if isinstance(error, NotConnected) else ATTEMPTS) or not _is_repeatable(method, error):
        return None
    if error.retry_after is not None:
        return error.retry_after * (1 + 0.2 * chance()) if error.retry_after <= LONGEST_WAIT else None
    return min(LONGEST_PAUSE, FIRST_PAUSE * 2.0**attempts) * (0.5 + chance())


def _is_repeatable(method: str, error: ClusterError) -> bool:
    return isinstance(error, NotConnected) or (method in READS and isinstance(error, Throttled | ServerFault | ConnectionBroken))
