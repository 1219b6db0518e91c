"""Ages: a span of time in the two to six characters that fit a column."""

import datetime
from typing import Any

_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86400, 365 * 86400

# A span below the limit is written in whole units, followed by the remainder in smaller ones where these are named.
_STEPS = (
    (2 * _MINUTE, 1, "s", 0, ""),
    (10 * _MINUTE, _MINUTE, "m", 1, "s"),
    (3 * _HOUR, _MINUTE, "m", 0, ""),
    (8 * _HOUR, _HOUR, "h", _MINUTE, "m"),
    (2 * _DAY, _HOUR, "h", 0, ""),
    (8 * _DAY, _DAY, "d", _HOUR, "h"),
    (2 * _YEAR, _DAY, "d", 0, ""),
    (8 * _YEAR, _YEAR, "y", _DAY, "d"),
    (float("inf"), _YEAR, "y", 0, ""),
)


def human(seconds: float) -> str:
    """A span as kubectl prints it: exact while it is short, coarser the longer it is."""
    span = int(seconds)
    if span < 0:
        return "0s" if span >= -1 else "<invalid>"
    unit, mark, rest, rest_mark = next(step[1:] for step in _STEPS if span < step[0])
    remainder = span % unit // rest if rest else 0
    return f"{span // unit}{mark}" + (f"{remainder}{rest_mark}" if remainder else "")


def moment(text: Any) -> datetime.datetime | None:
    """The time that an RFC 3339 text names, or None for anything else."""
    try:
        parsed = datetime.datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None
    return parsed if parsed.tzinfo else None


def since(text: Any, now: datetime.datetime) -> str:
    """The age of a timestamp: `<unknown>` where there is none, `<invalid>` for what is not a time."""
    if not text:
        return "<unknown>"
    then = moment(text)
    return "<invalid>" if then is None else human((now - then).total_seconds())
