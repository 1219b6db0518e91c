"""Columns: what kubectl prints of an object. Those of built-in kinds are read from `columns.yaml`, the others from a CRD."""

import datetime
import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import jsonpath
import yaml
from msgspec import Struct

from grove_sandbox.product import Body, conditions
from grove_sandbox.tables import ages, pod_cells

JSONPath = jsonpath.JSONPath | jsonpath.CompoundJSONPath
Cell = Callable[[Body, datetime.datetime], Any]
"""The value of a column for an object at a time; None prints as `<none>`."""


class Column(Struct, frozen=True):
    """One column of a Table: its heading, its OpenAPI type and format, and how its cell is read from an object."""

    name: str
    cell: Cell
    type: str = "string"
    format: str = ""
    priority: int = 0
    """0 is always shown, anything above only with `-o wide`."""
    description: str = ""


@lru_cache(maxsize=256)
def of_builtin(group: str, kind: str) -> tuple[Column, ...]:
    """The columns of a built-in kind, whatever its version."""
    document = _document()
    columns = document["kinds"].get(f"{kind}.{group}" if group else kind, ["Name", "Created At"])
    return tuple(_builtin({"name": each, **document["shared"][each]} if isinstance(each, str) else each) for each in columns)


@cache
def _document() -> Mapping[str, Any]:
    document: Mapping[str, Any] = yaml.safe_load(Path(__file__).with_name("columns.yaml").read_text(encoding="utf-8"))
    return document


def _builtin(column: Mapping[str, Any]) -> Column:
    shown = {key: column[key] for key in ("type", "format", "priority", "description") if key in column}
    return Column(column["name"], _builtin_cell(column), **shown)


def _builtin_cell(column: Mapping[str, Any]) -> Cell:
    given = column.get("path", "$")
    paths = [_parsed(path) for path in ([given] if isinstance(given, str) else given)]
    formatter, default = column.get("as", "value"), column.get("default", "")

    def cell(body: Body, now: datetime.datetime) -> Any:
        value = next((value for path in paths if (value := _first(path, body)) not in (None, "")), None)
        if value is None:
            return default
        text = TIMED_FORMATTERS[formatter](value, now) if formatter in TIMED_FORMATTERS else FORMATTERS[formatter](value)
        return default if text == "" else text

    return cell


def of_custom(printer_columns: Sequence[Mapping[str, Any]]) -> tuple[Column, ...]:
    """The columns of a custom kind from its `additionalPrinterColumns`; with none declared, its name and age.

    Raises `ValueError` for a column whose `jsonPath` is none.
    """
    name = of_builtin("", "")[0]
    if not printer_columns:
        return name, Column("Age", _custom_cell("date", ".metadata.creationTimestamp"), type="date")
    return name, *(_custom(column) for column in printer_columns)


def _custom(column: Mapping[str, Any]) -> Column:
    return Column(
        column["name"],
        _custom_cell(column["type"], column["jsonPath"]),
        type=column["type"],
        format=column.get("format", ""),
        priority=column.get("priority", 0),
        description=column.get("description") or f"Custom resource definition column (in JSONPath format): {column['jsonPath']}",
    )


def _custom_cell(type_: str, path: str) -> Cell:
    parsed = _parsed(path)
    return lambda body, now: _converted(_first(parsed, body), type_, now)


def _first(path: JSONPath, body: Body) -> Any:
    match = path.match(body)
    return None if match is None else match.obj


def _converted(value: Any, type_: str, now: datetime.datetime) -> Any:
    """The value as a column of that type shows it; None where it is of another type."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    match type_:
        case "integer":
            return int(value) if is_number else None
        case "number":
            return value if is_number else None
        case "boolean":
            return value if isinstance(value, bool) else None
        case "date":
            return ages.since(value, now) if isinstance(value, str) else None
    return value if value is None or isinstance(value, str) else json.dumps(value, separators=(",", ":"), sort_keys=True)


# A bracket as it stands, or the name of a child, in which kubectl escapes dots where the library wants quotes.
_PART = re.compile(r"\[[^\]]*\]|\.(?P<name>(?:\\.|[^.\[\]\\])+)")


@lru_cache(maxsize=1024)
def _parsed(text: str) -> JSONPath:
    """The compiled path, written as for kubectl, with or without braces around it. Raises `ValueError` for anything else."""
    path = text.strip().removeprefix("{").removesuffix("}").removeprefix("$")
    if path and path[0] not in ".[":
        raise ValueError(f"not a JSONPath: {text!r} begins with neither a dot nor a bracket")
    try:
        return jsonpath.compile("$" + _PART.sub(_quoted, path))
    except jsonpath.JSONPathError as error:
        raise ValueError(f"not a JSONPath: {text!r}") from error


def _quoted(part: re.Match[str]) -> str:
    name = part["name"]
    if name is None or name == "*" or re.fullmatch(r"\w+", name):
        return part[0]
    unescaped = re.sub(r"\\(.)", r"\1", name)
    return f"['{unescaped}']"


# --- the formatters that `columns.yaml` names: each makes a cell of the value at a column's path


def _data_keys(body: Body) -> int:
    return len(body.get("data") or ()) + len(body.get("binaryData") or ())


def _lower_reference(reference: Body) -> str:
    return f"{reference.get('kind', '').lower()}/{reference.get('name', '')}"


def _ready_replicas(body: Body) -> str:
    return f"{(body.get('status') or {}).get('readyReplicas', 0)}/{body['spec'].get('replicas', 1)}"


def _node_status(node: Body) -> str:
    ready = conditions.find((node.get("status") or {}).get("conditions") or (), "Ready")
    word = "Unknown" if ready is None else "Ready" if ready["status"] == "True" else "NotReady"
    return f"{word},SchedulingDisabled" if (node.get("spec") or {}).get("unschedulable") else word


def _gang_policy(policy: Body) -> str:
    return "Gang" if policy.get("gang") else "Basic"


def _pod_group_status(group_conditions: Sequence[Body]) -> str:
    if (disrupted := conditions.find(group_conditions, "DisruptionTarget")) is not None:
        return str(disrupted["reason"])
    scheduled = conditions.find(group_conditions, "PodGroupInitiallyScheduled")
    return "" if scheduled is None else "Scheduled" if scheduled["status"] == "True" else "Unschedulable"


FORMATTERS: Mapping[str, Callable[[Any], Any]] = {
    "value": lambda value: value,
    "data_keys": _data_keys,
    "gang_policy": _gang_policy,
    "lower_reference": _lower_reference,
    "node_status": _node_status,
    "pod_group_status": _pod_group_status,
    "pod_ready": pod_cells.ready,
    "pod_status": pod_cells.status,
    "ready_replicas": _ready_replicas,
}
TIMED_FORMATTERS: Mapping[str, Callable[[Any, datetime.datetime], Any]] = {
    "age": ages.since,
    "pod_restarts": pod_cells.restarts,
}
"""The formatters that need the time as well."""
