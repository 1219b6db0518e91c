"""Ownership: which live fields are ours, so that a field we drop from a manifest is taken away, and nobody else's."""

from collections.abc import Mapping
from typing import Any

from engine.resource import Body

MANAGER = "engine"
"""The field manager under which we write."""

Fields = Mapping[str, Any]
"""A tree of owned fields as the API server keeps it: `f:name` for a key, `k:{…}` and `v:…` for entries of a list."""

NOTHING: Fields = {}


def owned(live: Body) -> Fields:
    """The fields of the main body that our own writes have set and that nobody has taken over since."""
    for entry in live["metadata"].get("managedFields", ()):
        if entry.get("manager") == MANAGER and not entry.get("subresource"):
            fields: Fields = entry.get("fieldsV1") or NOTHING
            return fields
    return NOTHING


def below(fields: Fields, key: str) -> Fields:
    """What we own beneath a key."""
    found: Fields = fields.get(f"f:{key}") or NOTHING
    return found


def owns(fields: Fields, key: str) -> bool:
    """Whether the key, or anything beneath it, is ours."""
    return f"f:{key}" in fields


def keys(fields: Fields) -> tuple[str, ...]:
    """The map keys of which we own something."""
    return tuple(name[2:] for name in fields if name.startswith("f:"))


def is_atomic(fields: Fields) -> bool:
    """Whether the value is ours as a whole: the server sees no fields or entries in it."""
    return not any(name != "." for name in fields)
