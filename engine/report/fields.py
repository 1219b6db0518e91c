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

EXPLAINED = frozenset({Verb.PATCH, Verb.SCALE, Verb.REPLACE, Verb.STATUS})
"""The verbs whose operations change fields of an existing object."""
WIDTH = 96
"""The maximum length of one side of a change in text; JSON has the whole value."""
LEAD = 24
"""How many characters are shown before the first difference of two long values."""


def changed_fields(operation: Operation) -> tuple[Change, ...]:
    """The changes of an operation down to their leaves, with secret values masked."""
    if operation.verb not in EXPLAINED:
        return ()
    return tuple(as_shown(operation.id.kind, change) for change in explain(operation))


def is_telling(change: Change) -> bool:
    """Whether a changed field tells people anything: not a hash that follows other changes, and not one kind of empty for another."""
    return not is_hash(change.path[-1]) and bool(change.old or change.new or change.old is change.new is False)


def as_shown(kind: str, change: Change) -> Change:
    """The change as it may be shown: with secret values masked."""
    old, new = masked_change(kind, change.path, change.old, change.new)
    return Change(change.path, old, new, change.cause)


def sides(change: Change) -> tuple[str, str]:
    """The old and new value, each on one line, clipped and safe for a terminal; of long values the part in which they differ."""
    old, new = value_text(without_hashes(change.old)), value_text(without_hashes(change.new))
    start = 0
    if max(len(old), len(new)) > WIDTH:
        shared = next((index for index, (left, right) in enumerate(zip(old, new, strict=False)) if left != right), min(len(old), len(new)))
        start = max(0, shared - LEAD)
    return excerpt(old, start), excerpt(new, start)


def without_hashes(value: Any) -> Any:
    """The value without fields that are hashes."""
    if isinstance(value, Mapping):
        return {key: without_hashes(child) for key, child in value.items() if not is_hash(key)}
    return [without_hashes(child) for child in value] if isinstance(value, list | tuple) else value


def is_hash(key: str) -> bool:
    """Whether a field of that name is a hash: nobody can read anything from it."""
    return key.lower().endswith("hash")


def excerpt(text: str, start: int) -> str:
    """At most `WIDTH` characters of the text, from that position on, safe for a terminal."""
    return clipped(f"…{text[start:]}" if 0 < start < len(text) else text, WIDTH)


def value_text(value: Any) -> str:
    """A value as JSON; `(absent)` for None."""
    return "(absent)" if value is None else orjson.dumps(value, default=json_default).decode()


def json_text(value: Any) -> str:
    """A value as JSON with sorted keys."""
    return orjson.dumps(value, default=json_default, option=orjson.OPT_SORT_KEYS).decode()


def json_default(value: object) -> str | dict[str, Any]:
    """What orjson writes for a value that it does not know: read-only maps as dicts, text for values that only the write determines.

    Raises `TypeError` for anything else.
    """
    if isinstance(value, Mapping):
        return dict(value)
    if value is NOW:
        return repr(value)
    if isinstance(value, Unknown):
        return uid_placeholder(value.id)
    raise TypeError(f"{type(value).__name__} cannot be shown in a report")


def uid_placeholder(id: ResourceId) -> str:
    """The text that stands for the uid of an object that does not exist yet."""
    return f"(uid of {id})"
