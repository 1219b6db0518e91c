"""How many cases a law is tried on."""

import os
from typing import Final

from hypothesis import HealthCheck, settings

TIMES: Final = 3 if os.environ.get("CASES") == "new" else 1
"""Cases that are generated anew are worth more than those that are the same every time."""


def cases(number: int) -> settings:
    """So many of the same cases, and `TIMES` as many with `make laws`."""
    return settings(max_examples=number * TIMES, deadline=None, suppress_health_check=list(HealthCheck))
