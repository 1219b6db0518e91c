"""Durations in Go's notation (`4h`, `1h30m`, `0.5s`): parsed as Go parses them, written in Go's canonical spelling."""

import re
from datetime import timedelta
from typing import Final

UNITS: Final = {
    "ns": 1,
    "us": 1_000,
    "\u00b5s": 1_000,  # with the micro sign
    "\u03bcs": 1_000,  # with the Greek letter, which looks the same
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
"""Nanoseconds in each unit."""

LIMIT: Final = 2**63
"""Go's durations are signed 64-bit counts of nanoseconds: about 292 years, and one nanosecond more on the negative side."""

_TERM: Final = re.compile(r"([0-9]*+)(\.?+)([0-9]*+)([^0-9.]++)")
"""A number and its unit. Possessive quantifiers: a long text that is no duration is rejected in linear time."""


def parse(text: str) -> timedelta:
    """The duration, truncated towards zero to whole microseconds. Raises `ValueError` if the text is no duration."""
    count = nanoseconds(text)
    return timedelta(microseconds=count // 1_000 if count >= 0 else -(-count // 1_000))


def canonical(text: str) -> str:
    """The duration as Go prints it, exactly: `4h` becomes `4h0m0s`. Raises `ValueError` if the text is no duration."""
    return _spelled(nanoseconds(text))


def spell(duration: timedelta) -> str:
    """The duration in Go's canonical spelling; the inverse of `parse`. Raises `ValueError` beyond 292 years."""
    count = (duration // timedelta(microseconds=1)) * 1_000
    if not -LIMIT <= count < LIMIT:
        raise ValueError(f"a duration of {duration.days} days is too long")
    return _spelled(count)


def nanoseconds(text: str) -> int:
    """The duration in nanoseconds. Raises `ValueError` if the text is no duration, lacks a unit, or exceeds 292 years."""
    negative, terms = text[:1] == "-", text[1:] if text[:1] in ("-", "+") else text
    if terms == "0":
        return 0
    total, at = 0, 0
    while term := _TERM.match(terms, at):
        total, at = total + _term(*term.groups()), term.end()
    if at == 0 or at < len(terms):
        raise ValueError("not a duration such as 30s, 4h or 1h30m")
    if total > LIMIT or (total == LIMIT and not negative):
        raise ValueError("a duration longer than 292 years")
    return -total if negative else total


def _term(whole: str, point: str, fraction: str, unit: str) -> int:
    """One number with its unit, in nanoseconds. The fraction is computed with a float, as in Go, so that every digit agrees."""
    if not (whole or fraction) or unit not in UNITS:
        raise ValueError("not a duration such as 30s, 4h or 1h30m")
    digits = whole.lstrip("0")
    if len(digits) > len(str(LIMIT)):
        raise ValueError("a duration longer than 292 years")
    numerator, denominator = _significant(fraction)
    return int(digits or "0") * UNITS[unit] + int(float(numerator) * (UNITS[unit] / denominator))


def _significant(fraction: str) -> tuple[int, float]:
    """The leading digits of a fraction that fit 63 bits, and the power of ten to divide them by."""
    kept, scale = 0, 1.0
    for digit in fraction:
        if kept > (LIMIT - 1) // 10 or kept * 10 + int(digit) > LIMIT:
            break
        kept, scale = kept * 10 + int(digit), scale * 10
    return kept, scale


def _spelled(count: int) -> str:
    """Hours, minutes and seconds; below a second one smaller unit; no trailing zeros."""
    sign, size = ("-", -count) if count < 0 else ("", count)
    if size == 0:
        return "0s"
    if size < UNITS["s"]:
        unit = next(unit for unit in ("ms", "\u00b5s", "ns") if size >= UNITS[unit])
        return f"{sign}{_decimal(size, UNITS[unit])}{unit}"
    minutes, rest = divmod(size, UNITS["m"])
    hours, minutes = divmod(minutes, 60)
    head = f"{hours}h{minutes}m" if hours else f"{minutes}m" if minutes else ""
    return f"{sign}{head}{_decimal(rest, UNITS['s'])}s"


def _decimal(size: int, unit: int) -> str:
    """`size` in units, as a decimal without trailing zeros; exact, because every unit below a minute is a power of ten."""
    whole, rest = divmod(size, unit)
    return f"{whole}.{rest:0{len(str(unit)) - 1}d}".rstrip("0") if rest else str(whole)
