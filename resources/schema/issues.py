"""Issues: what is wrong with a manifest, field by field, in words that are safe to show."""

import json
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from engine.errors import InputError
from engine.report.printable import clipped

Path = tuple[str | int, ...]
"""The way to a field: keys, and indices of lists."""


class Child(str):
    """A key that is written behind a dot even where it is no plain word, as upstream writes `metadata.annotations.<key>`."""

    __slots__ = ()


SHOWN: Final = 20
"""How many issues one error tells; the rest is counted."""
WIDTH: Final = 80
"""How much of a value is shown, in characters."""
LONGEST: Final = 400
"""How long a path or a message may get, in characters."""
WIDEST: Final = 1024
"""Numbers of more bits than these are not written out."""


class Fault(StrEnum):
    """What sort of thing is wrong. Those of Kubernetes have its words."""

    UNKNOWN = "unknown field"
    MALFORMED = "malformed"
    REQUIRED = "Required value"
    INVALID = "Invalid value"
    UNSUPPORTED = "Unsupported value"
    DUPLICATE = "Duplicate value"
    NOT_FOUND = "Not found"
    FORBIDDEN = "Forbidden"
    TOO_LONG = "Too long"


VALUED: Final = frozenset({Fault.INVALID, Fault.UNSUPPORTED, Fault.DUPLICATE, Fault.NOT_FOUND})
"""The sorts whose text quotes the value, if it is told."""
UNSAID: Final = object()
"""In place of a value that would not help."""


@dataclass(frozen=True, slots=True)
class Issue:
    """One thing that is wrong with one field."""

    path: Path
    kind: Fault
    message: str = ""
    value: Any = UNSAID

    @property
    def field(self) -> str:
        """The path as people write it: `spec.template.cliques[1].name`."""
        return spelled(self.path)

    @property
    def complaint(self) -> str:
        """What is wrong, without the field: in Kubernetes' words where it has some, and with the value where that helps."""
        words = (self.kind.value,) if self.kind is not Fault.MALFORMED else ()
        value = (shown(self.value),) if self.kind in VALUED and self.value is not UNSAID else ()
        return ": ".join(part for part in (*words, *value, clipped(self.message, LONGEST)) if part)

    def __str__(self) -> str:
        """One line: the field, and what is wrong with it."""
        return f"{self.field}: {self.complaint}" if self.path else self.complaint


class Rejected(InputError):
    """A manifest that cannot be used, with everything that is wrong with it. Its text has a line for each issue, within bounds."""

    def __init__(self, issues: Iterable[Issue]) -> None:
        self.issues = tuple(issues)
        more = len(self.issues) - SHOWN
        lines = [str(issue) for issue in self.issues[:SHOWN]]
        super().__init__("\n".join(lines + ([f"and {more} more"] if more > 0 else [])))


def duplicates(values: Iterable[tuple[Path, Hashable]]) -> Iterator[Issue]:
    """Every value that was there before, where it comes again."""
    seen: set[Hashable] = set()
    for path, value in values:
        if value in seen:
            yield Issue(path, Fault.DUPLICATE, value=value)
        seen.add(value)


def spelled(path: Path) -> str:
    """A path as people write it; a key that is no plain word stands in brackets, unless it is a `Child`."""
    parts = (f"[{part}]" if isinstance(part, int) or not (isinstance(part, Child) or _is_word(part)) else f".{part}" for part in path)
    return clipped("".join(parts).removeprefix("."), LONGEST)


def shown(value: Any) -> str:
    """A value as JSON would have it, short and harmless; of lists and objects only that they are such."""
    if isinstance(value, str):
        return clipped(json.dumps(value[: WIDTH * 2], ensure_ascii=False), WIDTH)
    if isinstance(value, int) and value.bit_length() > WIDEST:
        return f"a number of {value.bit_length()} bits"
    if value is None or isinstance(value, bool | int | float):
        return clipped(json.dumps(value), WIDTH)
    return "a list" if isinstance(value, list | tuple) else "an object"


def _is_word(key: str) -> bool:
    return key.replace("-", "_").isidentifier()
