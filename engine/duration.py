"""Durations as Go writes them: `4h`, `1h30m`, `0.5s`; read into nanoseconds or timedelta, written in the one canonical spelling."""

import re
from datetime import timedelta
from typing import Final

NANOSECONDS: Final = {
    "ns": 1,
    "us": 1_000,
    "\u00b5s": 1_000,  # the micro sign
    "\u03bcs": 1_000,  # the Greek letter, which Go takes for the same
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
LONGEST: Final = 2**63
"""One more than the longest duration, in nanoseconds: about 292 years. The most negative one is exactly this long."""

_TERM: Final = re.compile(r"([0-9]*)(?:(\.)([0-9]*))?([^0-9.]+)")


def parse(text: str) -> timedelta:
    """The duration that `text` says, cut to whole microseconds. Raises `ValueError` when it says none."""
    return timedelta(microseconds=int(nanoseconds(text) / 1_000)) if abs(nanoseconds(text)) < 1_000 else _whole(nanoseconds(text))
