"""Waiting: until, at one instant, enough pods of every clique are ready. However long it takes, and whatever the API server says."""

import random
from collections.abc import Callable, Mapping
from http.client import HTTPException
from typing import Any

from initc.place import Place
from initc.pods import Refused, news
from initc.tally import Tally

SHORTEST, LONGEST = 1.0, 30.0
"""Seconds between two attempts, before chance takes up to half of them away: pods that wait together shall not ask together."""

TROUBLES = (Refused, OSError, HTTPException, ValueError, LookupError)
"""What may be better the next time: rights that come late, tokens that are replaced, servers that restart, proxies that babble."""


def wait(place: Place, needs: Mapping[str, int], tell: Callable[[str], None], rest: Callable[[float], object]) -> None:
    """Return when all that is needed is ready. `tell` is handed each line that is new, `rest` the seconds until the next attempt."""
    tally, failures, cached = Tally(needs), 0, True
    while True:
        heard = 0
        try:
            for event, body in news(place, cached=cached):
                heard += 1
                if _is_complete(tally, event, body, tell):
                    return
            failures, cached = 0, True
        except TROUBLES as error:
            # A connection that has brought something was good: what broke it is no reason to lose heart.
            failures = 1 if heard > 1 else failures + 1
            cached = not (isinstance(error, Refused) and error.status == 410)
            tell(f"{str(error) or type(error).__name__}; tries again")
        rest(pause(failures))


def _is_complete(tally: Tally, event: str, body: Mapping[str, Any], tell: Callable[[str], None]) -> bool:
    before = tally.missing
    tally.take(event, body)
    missing = tally.missing
    if missing and (missing != before or event == "LIST"):
        tell(f"waits for {', '.join(f'{count} of {clique}' for clique, count in missing.items())}")
    return not missing


def pause(failures: int) -> float:
    """How many seconds to rest after so many failures in a row."""
    return min(LONGEST, SHORTEST * 2.0 ** min(failures, 10)) * random.uniform(0.5, 1.0)
