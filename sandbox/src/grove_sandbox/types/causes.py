"""Causes: one function for each reason for which the server refuses a field, in its words."""

from collections.abc import Sequence
from typing import Any

import orjson

from grove_sandbox.types.status import Cause


def shown(value: Any) -> str:
    """A value as the server quotes it: in JSON."""
    return str(value) if isinstance(value, float) else orjson.dumps(value).decode()


def required(field: str, detail: str = "") -> Cause:
    """A field that must be set is missing."""
    return Cause("FieldValueRequired", f"Required value: {detail}" if detail else "Required value", field)


def invalid(field: str, value: Any, detail: str) -> Cause:
    """A value is not acceptable."""
    return Cause("FieldValueInvalid", f"Invalid value: {shown(value)}: {detail}", field)


def unsupported(field: str, value: Any, supported: Sequence[str]) -> Cause:
    """A value is not one of the supported ones."""
    listed = ", ".join(orjson.dumps(choice).decode() for choice in supported)
    return Cause("FieldValueNotSupported", f"Unsupported value: {shown(value)}: supported values: {listed}", field)


def duplicate(field: str, value: Any) -> Cause:
    """A value is in a list twice."""
    return Cause("FieldValueDuplicate", f"Duplicate value: {shown(value)}", field)


def forbidden(field: str, detail: str) -> Cause:
    """A field may not be set, or not be changed."""
    return Cause("FieldValueForbidden", f"Forbidden: {detail}", field)


def not_found(field: str, value: Any) -> Cause:
    """A value refers to something that does not exist."""
    return Cause("FieldValueNotFound", f"Not found: {shown(value)}", field)


def too_long(field: str, limit: int) -> Cause:
    """A value is longer than `limit` bytes."""
    return Cause("FieldValueTooLong", f"Too long: may not be more than {limit} bytes", field)


def too_many(field: str, count: int, limit: int) -> Cause:
    """A list has more than `limit` items."""
    items = "item" if limit == 1 else "items"
    return Cause("FieldValueTooMany", f"Too many: {count}: must have at most {limit} {items}", field)


def changed(field: str, new: Any, old: Any) -> list[Cause]:
    """The cause for an immutable field, if its value has changed."""
    return [] if new == old else [invalid(field, new, "field is immutable")]
