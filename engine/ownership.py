"""Ownership: which fields of a live object this engine set, so that a field dropped from a manifest is removed and no other field is."""

from collections.abc import Mapping
from typing import Any

from engine.resource import Body

MANAGER = "engine"
"""The field manager of our writes."""

Fields = Mapping[str, Any]
"""A tree of owned fields in the API's format: `f:name` for a key, `k:{…}` and `v:…` for list entries."""

NOTHING: Fields = {}
NOT_OWNED = frozenset({"apiVersion", "kind", "status"})
"""Fields that no write of the main body sets."""


def owned(live: Body) -> Fields:
    """The fields of the main body that our writes set and that no other manager has taken over since."""
    for entry in live["metadata"].get("managedFields", ()):
        if entry.get("manager") == MANAGER and not entry.get("subresource"):
            fields: Fields = entry.get("fieldsV1") or NOTHING
            return fields
    return NOTHING


def with_owned(live: Body, written: Body) -> Body:
    """The live object as the server returns it after we have written these fields: they are ours, besides those that were."""
    metadata = live["metadata"]
    others = [entry for entry in metadata.get("managedFields", ()) if entry.get("manager") != MANAGER or entry.get("subresource")]
    fields = _joined(owned(live), _fields_of({key: value for key, value in written.items() if key not in NOT_OWNED}))
    return {**live, "metadata": {**metadata, "managedFields": [*others, {"manager": MANAGER, "fieldsV1": fields}]}}


def _fields_of(value: Any) -> Fields:
    """The tree of everything in a value; lists count as atomic."""
    return {".": {}, **{f"f:{key}": _fields_of(inner) for key, inner in value.items()}} if isinstance(value, Mapping) else NOTHING


def _joined(left: Fields, right: Fields) -> Fields:
    return {**left, **{key: _joined(left[key], inner) if left.get(key) else inner for key, inner in right.items()}}


def below(fields: Fields, key: str) -> Fields:
    """The owned fields beneath a key."""
    inner: Fields = fields.get(f"f:{key}") or NOTHING
    return inner


def owns(fields: Fields, key: str) -> bool:
    """Whether the key, or anything beneath it, is owned."""
    return f"f:{key}" in fields


def keys(fields: Fields) -> tuple[str, ...]:
    """The keys that are owned, or beneath which something is."""
    return tuple(name[2:] for name in fields if name.startswith("f:"))


def is_atomic(fields: Fields) -> bool:
    """Whether the value is owned as a whole: the server tracks no fields or entries in it."""
    return not any(name != "." for name in fields)


def owns_all(fields: Fields, value: Any) -> bool:
    """Whether the value is ours with everything in it: `fields` are those that we own in it."""
    if not isinstance(value, Mapping) or is_atomic(fields):
        return True
    return "." in fields and all(owns(fields, key) and owns_all(below(fields, key), inner) for key, inner in value.items())
