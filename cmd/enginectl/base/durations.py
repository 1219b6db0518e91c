"""Durations on the command line."""

from enginectl.base.errors import UsageError


def parse_seconds(text: str, option: str, *, zero: bool = False) -> float:
    """The seconds of a duration such as `90s`, `1h30m` or a bare number; 0 only with `zero`. Raises `UsageError` that names the option."""
    from engine.duration import nanoseconds

    try:
        seconds = nanoseconds(f"{text}s" if text.replace(".", "", 1).isdecimal() else text) / 1e9
    except ValueError as error:
        raise UsageError(f"{option} {text}: {error}") from None
    if seconds < 0 or (seconds == 0 and not zero):
        raise UsageError(f"{option} {text}: must {'not be negative' if zero else 'be greater than zero'}")
    return seconds
