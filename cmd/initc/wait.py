"""Waiting until enough pods of every clique are ready at one instant, however long it takes and whatever errors the API server returns."""

import random
from collections.abc import Callable, Mapping
from http.client import HTTPException
from typing import Any

from initc.environment import Environment
from initc.pods import Refused, pod_events
from initc.tally import Tally

SHORTEST, LONGEST = 1.0, 30.0
"""Seconds between two attempts, before jitter takes off up to half of them: pods that wait together must not call together."""

RETRIED = (Refused, OSError, HTTPException, ValueError, LookupError, TypeError, AttributeError)
"""Errors that the next attempt may not have: late permissions, replaced tokens, restarting servers, a proxy's own JSON."""


def wait(environment: Environment, required: Mapping[str, int], report: Callable[[str], None], sleep: Callable[[float], object]) -> None:
    """Return when enough pods are ready. Calls `report` with a line when something changes, `sleep` with the seconds to pause."""
    tally, failures, cached = Tally(required), 0, True
    while True:
        received = 0
        try:
            for event, body in pod_events(environment, cached=cached):
                received += 1
                if _is_complete(tally, event, body, report):
                    return
            failures, cached = 0, True
        except RETRIED as error:
            # More than the list came through: the connection worked, so this counts as the first failure.
            failures = 1 if received > 1 else failures + 1
            cached = not (isinstance(error, Refused) and error.status == 410)
            report(f"{str(error) or type(error).__name__}; retrying")
        sleep(pause(failures))


def _is_complete(tally: Tally, event: str, body: Mapping[str, Any], report: Callable[[str], None]) -> bool:
    """Apply an event to the tally, report what is still missing if that has changed, and return whether nothing is."""
    before = tally.missing
    tally.apply(event, body)
    missing = tally.missing
    if missing and (missing != before or event == "LIST"):
        report(f"waiting for {', '.join(f'{count} of {clique}' for clique, count in missing.items())}")
    return not missing


def pause(failures: int) -> float:
    """Seconds to sleep after that many failures in a row."""
    return min(LONGEST, SHORTEST * 2.0 ** min(failures, 10)) * random.uniform(0.5, 1.0)
