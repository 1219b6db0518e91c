"""JSON rules: an object must be JSON of limited depth and size before any other rule reads it."""

from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Any, Final

from resources.schema.issues import ErrorType, Issue, Path, shown

MAX_DEPTH: Final = 100
"""The largest number of nested lists and objects. A pod spec has a dozen."""
MAX_VALUES: Final = 500_000
"""The largest number of values. No stored object has as many, but YAML aliases can expand a small file to more."""

Entry = tuple[Path, Any]


def issues(value: Any, path: Path = ()) -> Iterator[Issue]:
    """The issues of a value that is not JSON, nested too deeply or too large. Values beyond a limit are not examined.

    `path`: where the value is in its object; it counts as depth.
    """
    if _is_plain(value, MAX_DEPTH - len(path)):
        return
    count = 0
    levels: list[Iterator[Entry]] = [iter([(path, value)])]
    while levels:
        for entry_path, entry in levels[-1]:
            count += 1
            if count > MAX_VALUES:
                yield Issue(path, ErrorType.MALFORMED, f"must not have more than {MAX_VALUES} values")
                return
            if isinstance(entry, str | int | float | None):
                if fault := _fault(entry):
                    yield Issue(entry_path, ErrorType.MALFORMED, fault)
            elif isinstance(entry, Mapping | list | tuple):
                yield from _key_issues(entry_path, entry)
                if len(levels) + len(path) <= MAX_DEPTH:
                    levels.append(_entries(entry_path, entry))
                    break
                yield Issue(entry_path, ErrorType.MALFORMED, f"must not be nested more than {MAX_DEPTH} levels deep")
            else:
                yield Issue(entry_path, ErrorType.MALFORMED, "must be JSON")
        else:
            levels.pop()


def _is_plain(value: Any, depth: int) -> bool:
    """Whether a value has no issue because everything in it is of the most usual kind. Most values are."""
    left = MAX_VALUES

    def is_plain(entry: Any, depth: int) -> bool:
        nonlocal left
        left -= 1
        kind = type(entry)
        if kind is str:
            return bool(entry.isascii())
        if kind is dict:
            if depth <= 0 or left < 0:
                return False
            for key, below in entry.items():
                if type(key) is not str or not key.isascii() or not is_plain(below, depth - 1):
                    return False
            return True
        if kind is list or kind is tuple:
            return depth > 0 and left >= 0 and all(is_plain(below, depth - 1) for below in entry)
        return entry is None or kind is bool or (kind is int and -(2**63) <= entry < 2**63)

    return is_plain(value, depth) and left >= 0


def _key_issues(path: Path, value: Any) -> Iterator[Issue]:
    for key in value if isinstance(value, Mapping) else ():
        if not _is_text(key):
            yield Issue(path, ErrorType.MALFORMED, f"must have text for keys, got {shown(key)}")


def _entries(path: Path, value: Mapping[str, Any] | list[Any] | tuple[Any, ...]) -> Iterator[Entry]:
    if isinstance(value, Mapping):
        return (((*path, key), entry) for key, entry in value.items() if _is_text(key))
    return (((*path, index), entry) for index, entry in enumerate(value))


def _fault(value: str | int | float | None) -> str:
    """What is wrong with a scalar; empty if nothing."""
    if isinstance(value, str):
        return "" if _is_text(value) else f"must be text that can be encoded, got {shown(value)}"
    if isinstance(value, float):
        return "" if isfinite(value) else f"must be a finite number, got {shown(value)}"
    return "" if value is None or -(2**63) <= value < 2**63 else f"must fit 64 bits, got {shown(value)}"


def _is_text(value: Any) -> bool:
    """Whether it is text that can be encoded: half of a surrogate pair cannot."""
    if not isinstance(value, str):
        return False
    return value.isascii() or not any("\ud800" <= character <= "\udfff" for character in value)
