"""Transitions: the fields of a custom object that may not change. Of CEL only the rule `self == oldSelf` is evaluated.

As in a real server, a field may still be added or removed: the rule compares two values.
"""

from collections.abc import Iterator
from typing import NamedTuple

from grove_sandbox.product import Body, get
from grove_sandbox.types.status import Cause


class Transition(NamedTuple):
    """A field that may not change, and the message for a change."""

    path: tuple[str, ...]
    message: str


def transitions(schema: Body, path: tuple[str, ...] = ()) -> Iterator[Transition]:
    """The fields of a schema that may not change; those in lists and in maps of any keys are left out."""
    for rule in schema.get("x-kubernetes-validations") or ():
        if "".join(str(rule.get("rule", "")).split()) == "self==oldSelf":
            yield Transition(path, str(rule.get("message") or f"failed rule: {rule['rule']}"))
    for name, field in (schema.get("properties") or {}).items():
        yield from transitions(field, (*path, name))


def transition_faults(fixed: tuple[Transition, ...], new: Body, old: Body) -> list[Cause]:
    """The fields that have changed although they may not."""
    values = [(field, get(new, field.path), get(old, field.path)) for field in fixed]
    return [
        Cause("FieldValueInvalid", f"Invalid value: {field.message}", ".".join(field.path) or "<nil>")
        for field, now, before in values
        if now is not None and before is not None and now != before
    ]
