"""Columns: what kubectl prints of an object. Those of built-in kinds are read from `columns.yaml`, the others from a CRD."""

import datetime
import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import yaml
from msgspec import Struct

from grove_sandbox.product import Body
from grove_sandbox.tables import ages, jsonpath
from grove_sandbox.tables.cells import FORMATTERS, TIMED_FORMATTERS

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
    paths = [jsonpath.parse(path) for path in ([given] if isinstance(given, str) else given)]
    formatter, separator, default = column.get("as", "value"), column.get("join"), column.get("default", "")

    def cell(body: Body, now: datetime.datetime) -> Any:
        if separator is not None:
            return separator.join(str(value) for value in paths[0].findall(body))
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
    parsed = jsonpath.parse(path)
    return lambda body, now: _converted(_first(parsed, body), type_, now)


def _first(path: jsonpath.Path, body: Body) -> Any:
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
