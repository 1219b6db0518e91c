"""Data of plans for tests of policies: every field is there, and empty unless a test says otherwise."""

from typing import Any

from engine.ids import ResourceId
from resources.plan_policies.data_types import BOOL, DATA_TYPES, INT, STRING, STRINGS, item_of
from resources.plan_policies.plan_data import PlanData, SetData, deletions

EMPTY = {BOOL: False, INT: 0, STRING: "", STRINGS: {}}
PYTHON = {BOOL: bool, INT: int, STRING: str}
MONDAY = "2026-11-23T09:00:00Z"
"""Ten o'clock in Berlin."""


def blank(type: str, **fields: Any) -> Any:
    """The data of a type, without anything in it but these fields."""
    if type in EMPTY:
        return EMPTY[type]
    if item_of(type):
        return []
    return {name: blank(field.type) for name, field in DATA_TYPES[type].fields.items()} | fields


def operation(verb: str = "patch", kind: str = "Pod", name: str = "x", **fields: Any) -> dict[str, Any]:
    """The data of an operation."""
    data: dict[str, Any] = blank("Operation", verb=verb, kind=kind, name=name, **fields)
    return data


def set_data(name: str = "demo", namespace: str = "prod", summary: dict[str, int] | None = None, **fields: Any) -> SetData:
    """A set with one operation. `summary`: its totals that are not 0."""
    data = blank("Set", kind="PodCliqueSet", namespace=namespace, name=name, **{"end": "settled", "operations": [operation()], **fields})
    data["summary"] |= summary or {}
    data["deletions"] = deletions(data["operations"])
    return SetData(ResourceId("grove.io", "PodCliqueSet", namespace, name), data)


def plan_data(*sets: SetData, now: str = MONDAY, complete: bool = True) -> PlanData:
    """The data of a plan; without sets, of one set."""
    return PlanData(sets or (set_data(),), complete, now)


def misfits(type: str, value: Any, path: str = "") -> list[str]:
    """Where a value is not of a type: fields that are missing, of another type, or not declared."""
    if type in PYTHON:
        return [] if isinstance(value, PYTHON[type]) else [f"{path}: {value!r}"]
    if type == STRINGS:
        return [path for key, each in value.items() if not (isinstance(key, str) and isinstance(each, str))]
    if item := item_of(type):
        return [misfit for number, each in enumerate(value) for misfit in misfits(item, each, f"{path}[{number}]")]
    fields = DATA_TYPES[type].fields
    wrong = [f"{path}.{name}" for name in fields.keys() ^ value.keys()]
    return wrong + [misfit for name in fields.keys() & value.keys() for misfit in misfits(fields[name].type, value[name], f"{path}.{name}")]
