"""Ages: a span of time in the two or three characters that fit a column."""

import datetime
from typing import Any

_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86400, 365 * 86400


def human(seconds: float) -> str:
    """A span as kubectl prints it: exact while it is short, coarser the longer it is."""
    span = int(seconds)
    if span < 0:
        return "0s" if span >= -1 else "<invalid>"
    if span < 2 * _MINUTE:
        return f"{span}s"
    if span < 10 * _MINUTE:
        return _two(span, _MINUTE, "m", 1, "s")
    if span < 3 * _HOUR:
        return f"{span // _MINUTE}m"
    if span < 8 * _HOUR:
        return _two(span, _HOUR, "h", _MINUTE, "m")
    if span < 2 * _DAY:
        return f"{span // _HOUR}h"
    if span < 8 * _DAY:
        return _two(span, _DAY, "d", _HOUR, "h")
    if span < 2 * _YEAR:
        return f"{span // _DAY}d"
    if span < 8 * _YEAR:
        return _two(span, _YEAR, "y", _DAY, "d")
    return f"{span // _YEAR}y"


def _two(span: int, unit: int, mark: str, rest: int, rest_mark: str) -> str:
    small = span % unit // rest
    return f"{span // unit}{mark}{small}{rest_mark}" if small else f"{span // unit}{mark}"


def moment(text: Any) -> datetime.datetime | None:
    """The time that an RFC 3339 text names, or None for anything else."""
    if not isinstance(text, str):
        return None
    try:
        parsed = datetime.datetime.fromisoformat(text)
    except ValueError:
        return None
    return parsed if parsed.tzinfo else None


def since(text: Any, now: datetime.datetime) -> str:
    """The age of a timestamp: `<unknown>` where there is none, `<invalid>` for what is not a time."""
    if not text:
        return "<unknown>"
    then = moment(text)
    return "<invalid>" if then is None else human((now - then).total_seconds())
