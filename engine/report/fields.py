"""Fields: the changed fields of an operation as they may be shown, and values as one line of text."""

from collections.abc import Mapping
from typing import Any

import orjson

from engine.diff import explain
from engine.ids import ResourceId
from engine.mask import masked_change
from engine.operation import Change, Operation, Unknown
from engine.report.printable import clipped
from engine.resource import NOW
from engine.verb import Verb

EXPLAINED = frozenset({Verb.PATCH, Verb.REPLACE, Verb.STATUS})
"""The verbs whose operations change fields of an existing object."""
WIDTH = 96
"""The maximum length of one side of a change in text; JSON has the whole value."""
LEAD = 24
"""How many characters are shown before the first difference of two long values."""


def lines_of(operation: Operation) -> tuple[Change, ...]:
    """The changes of an operation down to their leaves, with secret values masked."""
    if operation.verb not in EXPLAINED:
        return ()
    return tuple(masked_line(operation.id.kind, change) for change in explain(operation))


def masked_line(kind: str, change: Change) -> Change:
    """The change with secret values masked."""
    old, new = masked_change(kind, change.path, change.old, change.new)
    return Change(change.path, old, new, change.cause)


def sides(change: Change) -> tuple[str, str]:
    """The old and new value, each on one line, clipped and safe for a terminal; of long values the part in which they differ."""
    old, new = value_text(change.old), value_text(change.new)
    start = 0
    if max(len(old), len(new)) > WIDTH:
        shared = next((index for index, (left, right) in enumerate(zip(old, new, strict=False)) if left != right), min(len(old), len(new)))
        start = max(0, shared - LEAD)
    return part(old, start), part(new, start)


def part(text: str, start: int) -> str:
    """As much of the text as fits, from that position on."""
    return clipped(f"…{text[start:]}" if 0 < start < len(text) else text, WIDTH)


def value_text(value: Any) -> str:
    """A value as JSON; `(absent)` for None."""
    return "(absent)" if value is None else orjson.dumps(value, default=placeholder).decode()


def json_text(value: Any) -> str:
    """A value as JSON with sorted keys."""
    return orjson.dumps(value, default=placeholder, option=orjson.OPT_SORT_KEYS).decode()


def placeholder(value: object) -> str | dict[str, Any]:
    """For `orjson`: read-only maps as dicts, and text for values that are not known before the plan is applied.

    Raises `TypeError` for anything else.
    """
    if isinstance(value, Mapping):
        return dict(value)
    if value is NOW:
        return repr(value)
    if isinstance(value, Unknown):
        return uid_of(value.id)
    raise TypeError(f"{type(value).__name__} cannot be shown in a report")


def uid_of(id: ResourceId) -> str:
    """The text for the uid of an object that does not exist yet."""
    return f"(uid of {id})"
