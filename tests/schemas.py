"""Published schemas in tests: every document is checked against its schema, without the keys that a later release may add."""

from functools import cache
from typing import Any

import jsonschema_rs

from enginectl.actions.schema import schema
from enginectl.base.options import DocumentName

KINDS = {"Diff": DocumentName.DIFF, "Sync": DocumentName.SYNC, "SavedPlan": DocumentName.PLAN}


def checked(document: Any) -> Any:
    """The document. Raises if it has a published schema and a key, a type or a value that this does not have."""
    name = KINDS.get(document.get("kind", "")) if isinstance(document, dict) else None
    if name is not None:
        validator(name).validate(document)
    return document


@cache
def validator(name: DocumentName) -> Any:
    """Validates documents against the schema, closed."""
    return jsonschema_rs.validator_for(closed(schema(name)))


def closed(value: Any) -> Any:
    """The schema with no other keys than those it names."""
    if isinstance(value, dict):
        inner = {key: closed(each) for key, each in value.items()}
        return {**inner, "additionalProperties": False} if isinstance(value.get("properties"), dict) else inner
    return [closed(each) for each in value] if isinstance(value, list) else value
