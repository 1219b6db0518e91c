"""Fields: the changed lines of an operation as they may be shown, and how a value is written on one line."""

from collections.abc import Mapping
from typing import Any

import orjson

from engine.diff import explain
from engine.mask import masked_change
from engine.operation import Change, Operation, Unknown, Verb
from engine.report.printable import clipped
from engine.resource import NOW

EXPLAINED = frozenset({Verb.PATCH, Verb.REPLACE, Verb.STATUS})
"""A create has nothing to be compared with, a delete and a release leave nothing to compare."""
WIDTH = 96
"""The longest that one side of a change gets in text; JSON has it whole."""


def lines_of(operation: Operation) -> tuple[Change, ...]:
    """The leaf-level changes of an operation, without what is secret in them."""
    if operation.verb not in EXPLAINED:
        return ()
    return tuple(masked_line(operation.id.kind, change) for change in explain(operation))


def masked_line(kind: str, change: Change) -> Change:
    """The change without what is secret in it."""
    old, new = masked_change(kind, change.path, change.old, change.new)
    return Change(change.path, old, new, change.cause)


def value_text(value: Any) -> str:
    """A value on one line, clipped and safe for a terminal; `(absent)` where there is none."""
    if value is None:
        return "(absent)"
    return clipped(orjson.dumps(value, default=placeholder).decode(), WIDTH)


def placeholder(value: object) -> str | dict[str, Any]:
    """What JSON does not know how to write: maps that cannot change, and values that are not known before the plan is executed."""
    if isinstance(value, Mapping):
        return dict(value)
    if value is NOW:
        return repr(value)
    if isinstance(value, Unknown):
        return f"(uid of {value.id})"
    raise TypeError(f"{type(value).__name__} has no place in a report")
