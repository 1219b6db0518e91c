"""Pod checks: the words in which the rules of pod specs are written. What they find, an API server would refuse when it creates the pods.

Rules read values whose types may be wrong, which other checks report: a value of another type has no fault here.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from resources.schema.issues import NO_VALUE, ErrorType, Issue, Path

Fields = Mapping[str, Any]
"""An object of a pod spec."""
Check = Callable[[Any, Path], Iterable[Issue]]
"""A value and its path -> what is wrong with the value."""
Rule = Callable[[Fields, Path], Iterable[Issue]]
"""An object and its path -> what is wrong with its fields together."""
Form = Callable[[str], Iterable[str]]
"""A text -> what is wrong with its form, in words."""


NOTHING: Final[Fields] = {}


def fault(path: Path, type_: ErrorType, message: str = "", value: Any = NO_VALUE) -> Issue:
    """Something for which an API server would refuse the pods, although it stores the object that has the pod spec."""
    return Issue(path, type_, message, value, pods_only=True)


def invalid(path: Path, value: Any, message: str) -> Issue:
    """A value that is not allowed."""
    return fault(path, ErrorType.INVALID, message, value)


def missing(path: Path, message: str = "") -> Issue:
    """A field that has to be set."""
    return fault(path, ErrorType.REQUIRED, message)


def forbidden(path: Path, message: str) -> Issue:
    """A field that must not be set."""
    return fault(path, ErrorType.FORBIDDEN, message)


def unsupported(path: Path, value: Any, words: Iterable[str]) -> Issue:
    """A word that is none of those that are known."""
    return fault(path, ErrorType.UNSUPPORTED, f"supported values: {quoted(words)}", value)


def duplicate(path: Path, value: Any) -> Issue:
    """A value that an earlier entry has as well."""
    return fault(path, ErrorType.DUPLICATE, value=value)


def quoted(words: Iterable[str]) -> str:
    """The words in quotation marks, separated by commas."""
    return ", ".join(f'"{word}"' for word in words)


def text(holder: Fields, field: str) -> str:
    """The text of a field; empty if it is none."""
    value = holder.get(field)
    return value if isinstance(value, str) else ""


def is_map(value: Any) -> bool:
    """Whether a value is an object. Most are dictionaries, which is found out sooner than whether they are maps of another type."""
    return value.__class__ is dict or isinstance(value, Mapping)


def entries(holder: Fields, field: str) -> Sequence[tuple[int, Fields]]:
    """The objects in a list with their indices; entries of other types are skipped."""
    value = holder.get(field)
    if value.__class__ is list or isinstance(value, list | tuple):
        return [(number, entry) for number, entry in enumerate(value) if is_map(entry)]
    return ()


def texts(holder: Fields, field: str) -> Iterator[tuple[int, str]]:
    """The texts in a list with their indices; entries of other types are skipped."""
    value = holder.get(field)
    yield from ((number, entry) for number, entry in enumerate(value if isinstance(value, list | tuple) else ()) if isinstance(entry, str))


def part(holder: Fields, *fields: str) -> Fields:
    """The object below these fields; empty if there is none."""
    value: Any = holder
    for field in fields:
        value = value.get(field)
        if not is_map(value):
            return NOTHING
    return value  # type: ignore[no-any-return]


def size(holder: Fields, field: str) -> int:
    """The number of entries of a list or map; 0 if it is none."""
    value = holder.get(field)
    return len(value) if isinstance(value, list | tuple | Mapping) else 0


def whole(holder: Fields, field: str) -> int | None:
    """The integer of a field; None if it is none."""
    value = holder.get(field)
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def form(of: Form, *, may_be_empty: bool = True) -> Check:
    """A text must have this form. An empty one counts as absent, unless `may_be_empty` is false."""

    def check(value: Any, path: Path) -> Iterator[Issue]:
        if isinstance(value, str) and (value or not may_be_empty):
            yield from (invalid(path, value, message) for message in of(value))

    return check


def between(least: int, most: int, message: str = "") -> Check:
    """An integer must be in this range, both ends included."""
    words = message or f"must be between {least} and {most}, inclusive"
    return _integer(lambda value: least <= value <= most, words)


def at_least(least: int, message: str = "") -> Check:
    """An integer must not be smaller."""
    return _integer(lambda value: value >= least, message or f"must be greater than or equal to {least}")


def _integer(is_valid: Callable[[float], bool], message: str) -> Check:
    def check(value: Any, path: Path) -> Iterator[Issue]:
        if isinstance(value, int | float) and not isinstance(value, bool) and not is_valid(value):
            yield invalid(path, value, message)

    return check


def one_of(*words: str) -> Check:
    """A text must be one of these words."""

    def check(value: Any, path: Path) -> Iterator[Issue]:
        if isinstance(value, str) and value not in words:
            yield unsupported(path, value, words)

    return check


def each(check: Check) -> Check:
    """Every entry of a list must pass the check."""

    def check_all(value: Any, path: Path) -> Iterator[Issue]:
        for number, entry in enumerate(value if isinstance(value, list | tuple) else ()):
            yield from check(entry, (*path, number))

    return check_all


def all_of(*checks: Check) -> Check:
    """The value must pass every check."""
    return lambda value, path: (issue for check in checks for issue in check(value, path))


def at_most(number: int, of_what: str) -> Check:
    """A list must not have more entries."""

    def check(value: Any, path: Path) -> Iterator[Issue]:
        if isinstance(value, list | tuple) and len(value) > number:
            yield invalid(path, value, f"must not have more than {number} {of_what}")

    return check


def unique(entry_field: str = "", message: str = "", *, at_entry: bool = False) -> Check:
    """No two entries of a list may be equal, or have equal texts in this field."""

    def check(value: Any, path: Path) -> Iterator[Issue]:
        earlier: set[Hashable] = set()
        for number, entry in enumerate(value if isinstance(value, list | tuple) else ()):
            key = text(entry, entry_field) if entry_field and isinstance(entry, Mapping) else entry
            if not isinstance(key, str) or not key:
                continue
            at = (*path, number) if at_entry or not entry_field else (*path, number, entry_field)
            if key in earlier:
                yield invalid(at, key, message) if message else duplicate(at, key)
            earlier.add(key)

    return check


def keys(of: Form) -> Check:
    """The keys of a map must have this form; they are reported at the map."""

    def check(value: Any, path: Path) -> Iterator[Issue]:
        for key in value if isinstance(value, Mapping) else ():
            yield from (invalid(path, key, message) for message in of(str(key)))

    return check


def values(check: Check) -> Check:
    """Every value of a map must pass the check."""

    def check_all(value: Any, path: Path) -> Iterator[Issue]:
        for key, entry in value.items() if isinstance(value, Mapping) else ():
            yield from check(entry, (*path, key))

    return check_all


def exactly_one(fields: Sequence[str], *, none: str, many: str = "", at_field: bool = False) -> Rule:
    """One of these fields must be set. `none` and `many` say what is wrong; without `none`, none may be set as well."""

    def check(holder: Fields, path: Path) -> Iterator[Issue]:
        used = [field for field in fields if holder.get(field) is not None]
        if not used and none:
            yield missing(path, none)
        if at_field:
            yield from (forbidden((*path, field), many) for field in used[1:])
        elif len(used) > 1:
            yield invalid(path, NO_VALUE, many)

    return check


def no_steps_back(value: str) -> Iterator[str]:
    """What is wrong with a path that must not have `..` in it."""
    if ".." in value.split("/"):
        yield "must not contain '..'"


def descending(value: str) -> Iterator[str]:
    """What is wrong with a relative path that must stay in its directory."""
    if value.startswith("/"):
        yield "must be a relative path"
    yield from no_steps_back(value)


def local(value: str) -> Iterator[str]:
    """The same for one whose first name must not start with `..`."""
    yield from descending(value)
    if value.startswith("..") and ".." not in value.split("/"):
        yield "must not start with '..'"
