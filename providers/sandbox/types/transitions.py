"""Transitions: what of a custom object may not change. Of CEL, the one rule `self == oldSelf` is understood.

As in a real server a rule holds only where there was a value before and is one now: what is added or taken away as a whole passes.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from providers.sandbox.types.status import Cause

Body = Mapping[str, Any]


class Transition(NamedTuple):
    """A field that must stay as it is, and the words for who changes it."""

    path: tuple[str, ...]
    message: str


def transitions(schema: Body, path: tuple[str, ...] = ()) -> Iterator[Transition]:
    """Every such field of a schema; those inside lists and maps of any keys are left out."""
    for rule in schema.get("x-kubernetes-validations") or ():
        if "".join(str(rule.get("rule", "")).split()) == "self==oldSelf":
            yield Transition(path, str(rule.get("message") or f"failed rule: {rule['rule']}"))
    for name, field in (schema.get("properties") or {}).items():
        yield from transitions(field, (*path, name))


def transition_faults(found: tuple[Transition, ...], new: Body, old: Body) -> list[Cause]:
    """What has changed and must not."""
    pairs = [(one, _at(new, one.path), _at(old, one.path)) for one in found]
    return [
        Cause("FieldValueInvalid", f"Invalid value: {one.message}", ".".join(one.path) or "<nil>")
        for one, now, before in pairs
        if now is not None and before is not None and now != before
    ]


def _at(body: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        body = body.get(name) if isinstance(body, Mapping) else None
    return body
