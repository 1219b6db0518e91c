"""Plain: what every part of an object must be before anybody looks at what it says: JSON, of a depth and a size that can be handled."""

from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Any, Final

from resources.schema.issues import Fault, Issue, Path, shown

DEEPEST: Final = 100
"""How many levels of lists and objects there may be. A pod spec has a dozen."""
MOST: Final = 500_000
"""How many parts there may be; what a cluster can store has fewer. Aliases in YAML make much of little."""

Part = tuple[Path, Any]


def issues(value: Any, path: Path = ()) -> Iterator[Issue]:
    """What about a value is no JSON, or more than can be handled. Where it is too deep or too large, nothing below is looked at."""
    count = 0
    ahead: list[Iterator[Part]] = [iter([(path, value)])]
    while ahead:
        for here, part in ahead[-1]:
            count += 1
            if count > MOST:
                yield Issue(path, Fault.MALFORMED, f"must not have more than {MOST} parts")
                return
            if isinstance(part, str | int | float | None):
                if fault := _fault(part):
                    yield Issue(here, Fault.MALFORMED, fault)
            elif isinstance(part, Mapping | list | tuple):
                yield from _wrong_keys(here, part)
                if len(ahead) <= DEEPEST:
                    ahead.append(_parts(here, part))
                    break
                yield Issue(here, Fault.MALFORMED, f"must not be nested more than {DEEPEST} levels deep")
            else:
                yield Issue(here, Fault.MALFORMED, "must be JSON")
        else:
            ahead.pop()


def _wrong_keys(path: Path, part: Any) -> Iterator[Issue]:
    for key in part if isinstance(part, Mapping) else ():
        if not _is_text(key):
            yield Issue(path, Fault.MALFORMED, f"must have text for keys, got {shown(key)}")


def _parts(path: Path, value: Mapping[str, Any] | list[Any] | tuple[Any, ...]) -> Iterator[Part]:
    if isinstance(value, Mapping):
        return (((*path, key), part) for key, part in value.items() if _is_text(key))
    return (((*path, index), part) for index, part in enumerate(value))


def _fault(value: str | int | float | None) -> str:
    """What is wrong with a part that holds no others."""
    if isinstance(value, str):
        return "" if _is_text(value) else f"must be text that can be encoded, got {shown(value)}"
    if isinstance(value, float):
        return "" if isfinite(value) else f"must be a finite number, got {shown(value)}"
    return "" if value is None or -(2**63) <= value < 2**63 else f"must fit 64 bits, got {shown(value)}"


def _is_text(value: Any) -> bool:
    """Half of a surrogate pair is no text: nobody can send it."""
    if not isinstance(value, str):
        return False
    return value.isascii() or not any("\ud800" <= character <= "\udfff" for character in value)
