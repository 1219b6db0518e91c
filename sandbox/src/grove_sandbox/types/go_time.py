"""Go time: parses times as Go does, with its error messages, and formats them as the server stores them."""

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache

SECONDS = ("2006", "-", "01", "-", "02", "T", "15", ":", "04", ":", "05", "Z07:00")
"""Go's layout of most times, in parts. A fraction of a second is accepted and dropped."""
MICROSECONDS = (*SECONDS[:-1], ".000000", SECONDS[-1])
"""The layout of times with exactly six decimal places."""
_PATTERNS = {
    "2006": r"\d{4}",
    "01": r"\d\d",
    "02": r"\d\d",
    "15": r"\d\d?",
    "04": r"\d\d",
    "05": r"\d\d",
    ".000000": r"[.,]\d{6}",
    "Z07:00": r"Z|[+-]\d\d:\d\d",
}
_LIMITS = {"01": ("month", 1, 12), "15": ("hour", 0, 23), "04": ("minute", 0, 59), "05": ("second", 0, 59)}
_ZERO = datetime.min.replace(tzinfo=UTC)


@lru_cache(maxsize=1024)
def canonical(text: str, layout: tuple[str, ...]) -> str | None:
    """The time in UTC as the server stores it; None for Go's zero time. Raises `ValueError` with Go's message.

    Remembered: most times of an object are those that it already had when it was last written.
    """
    parts: dict[str, str] = {}
    rest = text
    for piece in layout:
        match = re.match(_PATTERNS.get(piece, re.escape(piece)), rest, re.ASCII)
        if match is None:
            raise ValueError(
                f"parsing time {_quoted(text)} as {_quoted(''.join(layout))}: cannot parse {_quoted(rest)} as {_quoted(piece)}"
            )
        parts[piece], rest = match[0], rest[match.end() :]
        if fault := _out_of_range(piece, match[0]):
            raise ValueError(f"parsing time {_quoted(text)}: {fault} out of range")
        if piece == "05" and layout is SECONDS:
            rest = re.sub(r"\A[.,]\d+", "", rest, flags=re.ASCII)
    if rest:
        raise ValueError(f"parsing time {_quoted(text)}: extra text: {_quoted(rest)}")
    year, month, day, hour, minute, second = (int(parts[piece]) for piece in ("2006", "01", "02", "15", "04", "05"))
    try:
        local = datetime(year or 4, month, day, hour, minute, second, int(parts.get(".000000", ".0")[1:]), UTC)
    except ValueError:
        raise ValueError(f"parsing time {_quoted(text)}: day out of range") from None
    return _stored(local, parts["Z07:00"], layout) if year else text


def _stored(local: datetime, zone: str, layout: tuple[str, ...]) -> str | None:
    minutes = 0 if zone == "Z" else int(f"{zone[0]}1") * (int(zone[1:3]) * 60 + int(zone[4:]))
    try:
        utc = local - timedelta(minutes=minutes)
    except OverflowError:
        utc = local
    if utc == _ZERO:
        return None
    return utc.isoformat(timespec="microseconds" if layout is MICROSECONDS else "seconds").replace("+00:00", "Z")


def _out_of_range(piece: str, text: str) -> str:
    """What is out of range, or an empty text."""
    if piece in _LIMITS:
        name, least, most = _LIMITS[piece]
        return "" if least <= int(text) <= most else name
    if piece != "Z07:00" or text == "Z":
        return ""
    if int(text[1:3]) > 24:
        return "time zone offset hour"
    return "time zone offset minute" if int(text[4:]) > 60 else ""


def _quoted(text: str) -> str:
    """The text as Go's `time` quotes it: bytes that are not printable ASCII as `\\x..`."""
    escaped = (f"\\{letter}" if letter in '"\\' else letter if " " <= letter <= "~" else _bytes(letter) for letter in text)
    return f'"{"".join(escaped)}"'


def _bytes(letter: str) -> str:
    return letter if letter == "\x7f" else "".join(f"\\x{byte:02x}" for byte in letter.encode(errors="replace"))


_CLOCK = re.compile(r"(\d\d):(\d\d):(\d\d)(.\d+)?(z|[+-]\d\d:\d\d)", re.ASCII)


def is_date_time(text: str) -> bool:
    """Whether the text has the format `date-time` of a CRD's schema. The range of its zone is not checked."""
    day, t, rest = text.lower().partition("t")
    clock = _CLOCK.fullmatch(rest.partition("t")[0])
    return bool(t) and is_date(day) and clock is not None and clock[1] <= "23" and clock[2] <= "59" and clock[3] <= "59"


def is_date(text: str) -> bool:
    """Whether the text has the format `date` of a CRD's schema."""
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII):
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


FORMATS: dict[str, Callable[[str], bool]] = {"date-time": is_date_time, "date": is_date}
