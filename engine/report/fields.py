"""Fields: the changed lines of an operation as they may be shown, and how a value is written on one line."""

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
"""A create has nothing to be compared with, a delete and a release leave nothing to compare."""
WIDTH = 96
"""The longest that one side of a change gets in text; JSON has it whole."""
LEAD = 24
"""How much is shown of what two long values share, before they differ."""


def lines_of(operation: Operation) -> tuple[Change, ...]:
    """The leaf-level changes of an operation, without what is secret in them."""
    if operation.verb not in EXPLAINED:
        return ()
    return tuple(masked_line(operation.id.kind, change) for change in explain(operation))


def masked_line(kind: str, change: Change) -> Change:
    """The change without what is secret in it."""
    old, new = masked_change(kind, change.path, change.old, change.new)
    return Change(change.path, old, new, change.cause)


def sides(change: Change) -> tuple[str, str]:
    """Both sides of a change on one line each, clipped and safe for a terminal; of long ones the part in which they differ."""
    old, new = value_text(change.old), value_text(change.new)
    start = 0
    if max(len(old), len(new)) > WIDTH:
        shared = next((at for at, (one, other) in enumerate(zip(old, new, strict=False)) if one != other), min(len(old), len(new)))
        start = max(0, shared - LEAD)
    return part(old, start), part(new, start)


def part(text: str, start: int) -> str:
    """What fits of a text, from there on."""
    return clipped(f"…{text[start:]}" if 0 < start < len(text) else text, WIDTH)


def value_text(value: Any) -> str:
    """A value as JSON; `(absent)` where there is none."""
    return "(absent)" if value is None else orjson.dumps(value, default=placeholder).decode()


def placeholder(value: object) -> str | dict[str, Any]:
    """What JSON does not know how to write: maps that cannot change, and values that are not known before the plan is executed."""
    if isinstance(value, Mapping):
        return dict(value)
    if value is NOW:
        return repr(value)
    if isinstance(value, Unknown):
        return uid_of(value.id)
    raise TypeError(f"{type(value).__name__} has no place in a report")


def uid_of(id: ResourceId) -> str:
    """What stands for the uid of an object that does not exist yet."""
    return f"(uid of {id})"
