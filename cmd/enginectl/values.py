"""Values: what the words on a command line mean."""

from enginectl.running import Misuse


def seconds(text: str, option: str) -> float:
    """A span of time, as `90s`, `1h30m` or a bare number of seconds. Raises `Misuse`, naming the option."""
    from engine.duration import nanoseconds

    try:
        found = nanoseconds(f"{text}s" if text.replace(".", "", 1).isdecimal() else text) / 1e9
    except ValueError as error:
        raise Misuse(f"{option} {text}: {error}") from None
    if found <= 0:
        raise Misuse(f"{option} {text}: must be more than nothing")
    return found
