"""Go time: which texts are times to the server, what it stores for them, and in what words it refuses others."""

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta

SECONDS = ("2006", "-", "01", "-", "02", "T", "15", ":", "04", ":", "05", "Z07:00")
"""The layout of most times, piece by piece; a fraction of a second may stand there and is dropped."""
MICROSECONDS = (*SECONDS[:-1], ".000000", SECONDS[-1])
"""The layout of those with six places behind the point, no more and no fewer."""
_LIMITS = {"01": ("month", 1, 12), "15": ("hour", 0, 23), "04": ("minute", 0, 59), "05": ("second", 0, 59)}


def canonical(text: str, layout: tuple[str, ...]) -> str | None:
    """The time in UTC as the server writes it; None for the zero of times. Raises `ValueError` in Go's words."""
    parts: dict[str, int] = {}
    rest = text
    for piece in layout:
        held = rest
        taken = _taken(piece, rest, fraction=layout is SECONDS)
        if taken is None:
            raise ValueError(
                f"parsing time {_quoted(text)} as {_quoted(''.join(layout))}: cannot parse {_quoted(held)} as {_quoted(piece)}"
            )
        rest, number = taken
        parts[piece] = number
        if fault := _out_of_range(piece, number, held):
            raise ValueError(f"parsing time {_quoted(text)}: {fault} out of range")
    if rest:
        raise ValueError(f"parsing time {_quoted(text)}: extra text: {_quoted(rest)}")
    try:
        day = datetime(parts["2006"] or 4, parts["01"], parts["02"], parts["15"], parts["04"], parts["05"], parts.get(".000000", 0), UTC)
    except ValueError:
        raise ValueError(f"parsing time {_quoted(text)}: day out of range") from None
    return _written(day, parts["Z07:00"], layout) if parts["2006"] else text


def _written(local: datetime, minutes: int, layout: tuple[str, ...]) -> str | None:
    try:
        there = local - timedelta(minutes=minutes)
    except OverflowError:
        there = local
    if there == _ZERO:
        return None
    return there.isoformat(timespec="microseconds" if layout is MICROSECONDS else "seconds").replace("+00:00", "Z")


_ZERO = datetime.min.replace(tzinfo=UTC)
_NUMBERS = {"2006": r"\d{4}", "01": r"\d\d", "02": r"\d\d", "15": r"\d\d?", "04": r"\d\d", "05": r"\d\d", ".000000": r"[.,]\d{6}"}
_ZONE = re.compile(r"([+-])(\d\d):(\d\d)", re.ASCII)
_FRACTION = re.compile(r"[.,]\d+", re.ASCII)


def _taken(piece: str, text: str, *, fraction: bool) -> tuple[str, int] | None:
    """What is left behind the piece, and the number that it is; None: it is not there. Zones are minutes."""
    if piece not in _NUMBERS and piece != "Z07:00":
        return (text[len(piece) :], 0) if text.startswith(piece) else None
    if piece == "Z07:00":
        if text.startswith("Z"):
            return text[1:], 0
        zone = _ZONE.match(text)
        minutes = zone and int(zone[2]) * 60 + int(zone[3])
        return zone and (text[zone.end() :], (minutes or 0) * (-1 if zone[1] == "-" else 1))
    found = re.compile(_NUMBERS[piece], re.ASCII).match(text)
    if found is None:
        return None
    rest = text[found.end() :]
    if piece == "05" and fraction and (behind := _FRACTION.match(rest)):
        rest = rest[behind.end() :]
    return rest, int(found[0].lstrip(".,"))


def _out_of_range(piece: str, number: int, text: str) -> str:
    if piece in _LIMITS:
        name, least, most = _LIMITS[piece]
        return "" if least <= number <= most else name
    zone = _ZONE.match(text) if piece == "Z07:00" else None
    if zone is not None and int(zone[2]) > 24:
        return "time zone offset hour"
    return "time zone offset minute" if zone is not None and int(zone[3]) > 60 else ""


def _quoted(text: str) -> str:
    """The text as Go's `time` quotes it: byte by byte where it is not plain."""
    escaped = (f"\\{letter}" if letter in '"\\' else letter if " " <= letter <= "~" else _bytes(letter) for letter in text)
    return f'"{"".join(escaped)}"'


def _bytes(letter: str) -> str:
    return letter if letter == "\x7f" else "".join(f"\\x{byte:02x}" for byte in letter.encode(errors="replace"))


_CLOCK = re.compile(r"(\d\d):(\d\d):(\d\d)(.\d+)?(z|[+-]\d\d:\d\d)", re.ASCII)


def is_date_time(text: str) -> bool:
    """Whether the text passes for the format `date-time` in a custom kind's schema: its zone is not looked at."""
    day, t, rest = text.lower().partition("t")
    clock = _CLOCK.fullmatch(rest.partition("t")[0])
    return bool(t) and is_date(day) and clock is not None and clock[1] <= "23" and clock[2] <= "59" and clock[3] <= "59"


def is_date(text: str) -> bool:
    """The same for the format `date`."""
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII):
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


FORMATS: dict[str, Callable[[str], bool]] = {"date-time": is_date_time, "date": is_date}
