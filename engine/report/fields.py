"""Fields: the changed fields of an operation as they may be shown, and values as one line of text."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import orjson
from msgspec.structs import replace

from engine.diff import LABELLED, keyed_entries
from engine.ids import ResourceId
from engine.mask import masked_change
from engine.operation import Change, Operation, Unknown
from engine.paths import spell
from engine.report.printable import clipped, printable
from engine.resource import NOW, Path
from engine.verb import Verb

EXPLAINED = frozenset({Verb.PATCH, Verb.SCALE, Verb.REPLACE, Verb.STATUS})
"""The verbs whose operations change fields of an existing object."""
WIDTH = 96
"""The maximum length of one side of a change in text; JSON has the whole value."""
LEAD = 24
"""How many characters are shown before the first difference of two long values."""
DECIDED_ON: Final = ("image", "command", "args", "env", "envFrom", "resources", "replicas", "minAvailable")
"""The fields that a reviewer decides on, in the order in which their changes are shown, before those of other fields."""
WORD: Final = re.compile(r"[\w./:@=+$-]+", re.ASCII)
"""What is written without quotes in a list of names."""


def changed_fields(operation: Operation) -> tuple[Change, ...]:
    """The changes of an operation down to their leaves, with secret values masked."""
    if operation.verb not in EXPLAINED or not operation.changes:
        return ()
    from engine.leaves import explain  # A preview of new objects needs none of it.

    return tuple(as_shown(operation.id.kind, change) for change in explain(operation))


def shown_fields(operation: Operation) -> tuple[Change, ...]:
    """The changed fields that matter to users, in the order of `rank`: all but hashes, which follow other changes.

    A map or a list of maps that comes or goes, and is too long for a line, is told field by field: none is cut off.
    """
    parts = sorted((part for change in changed_fields(operation) for part in _parts(change)), key=lambda part: rank(part.path))
    return tuple(part for part in parts if not is_hash(operation, part.path))


def rank(path: Path) -> int:
    """The place of a changed field among others: images, commands, resources and numbers first, labels and annotations last."""
    if not LABELLED.isdisjoint(path):
        return len(DECIDED_ON) + 1
    return next((place for place, key in enumerate(DECIDED_ON) if key in path), len(DECIDED_ON))


def _parts(change: Change) -> Iterator[Change]:
    value = change.new if change.old is None else change.old if change.new is None else None
    fields = _fields_of(value)
    if change.order or not fields or len(value_text(value)) <= WIDTH:
        yield change
        return
    for key, inner in fields.items():
        if inner is not None:
            part = replace(change, path=(*change.path, key))
            yield from _parts(replace(part, new=inner) if change.old is None else replace(part, old=inner))


def _fields_of(value: Any) -> Mapping[str, Any]:
    """The fields of a map, or the entries of a list of maps, by the steps of their paths; nothing for other values."""
    if isinstance(value, Mapping):
        return value
    if not isinstance(value, list | tuple) or not all(isinstance(entry, Mapping) for entry in value):
        return {}
    keyed = keyed_entries(value) or {str(at): entry for at, entry in enumerate(value)}
    return {f"[{key}]": entry for key, entry in keyed.items()}


def is_hash(operation: Operation, path: Path) -> bool:
    """Whether a field is a hash of what else the object has: the label that seals it, or a field of its status."""
    return path == ("metadata", "labels", operation.seal) or is_status_hash(path)


def is_status_hash(path: Path) -> bool:
    """Whether the path is that of a hash in a status. Statuses are written by the engine: users name no field in them."""
    return path[0] == "status" and path[-1].endswith("Hash")


def as_shown(kind: str, change: Change) -> Change:
    """The change as it may be shown: with secret values masked."""
    old, new = masked_change(kind, change.path, change.old, change.new)
    return replace(change, old=old, new=new)


def field_text(change: Change, path: Path | None = None) -> str:
    """One line: `spec.replicas: 1 → 2`, or `spec.podSpec.containers: order [a, b] → [b, a]`. `path`: a shorter one than the change has."""
    return f"{printable(spell(path or change.path))}:{' order' if change.order else ''} {' → '.join(sides(change))}"


def sides(change: Change) -> tuple[str, str]:
    """The old and new value, each on one line, clipped and safe for a terminal; of long values the part in which they differ."""
    text = order_text if change.order else value_text
    old, new = (text(without_hashes(side) if change.path[0] == "status" else side) for side in (change.old, change.new))
    start = 0
    if max(len(old), len(new)) > WIDTH:
        shared = next((index for index, (left, right) in enumerate(zip(old, new, strict=False)) if left != right), min(len(old), len(new)))
        start = max(0, shared - LEAD)
    return excerpt(old, start), excerpt(new, start)


def without_hashes(value: Any) -> Any:
    """A value of a status without fields that are hashes."""
    if isinstance(value, Mapping):
        return {key: without_hashes(child) for key, child in value.items() if not is_status_hash(("status", key))}
    return [without_hashes(child) for child in value] if isinstance(value, list | tuple) else value


def excerpt(text: str, start: int) -> str:
    """At most `WIDTH` characters of the text, from that position on, safe for a terminal."""
    return clipped(f"…{text[start:]}" if 0 < start < len(text) else text, WIDTH)


def value_text(value: Any) -> str:
    """A value as JSON; `(absent)` for None."""
    return "(absent)" if value is None else orjson.dumps(value, default=json_default).decode()


def order_text(entries: Sequence[Any]) -> str:
    """Entries in their order: `[main, side]`; those that are no plain words as JSON."""
    return f"[{', '.join(entry if isinstance(entry, str) and WORD.fullmatch(entry) else value_text(entry) for entry in entries)}]"


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
