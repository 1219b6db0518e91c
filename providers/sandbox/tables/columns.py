"""Columns: what kubectl prints of an object; here those that a CRD declares, and those of a kind that declares none."""

import datetime
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from providers.sandbox.tables import ages, jsonpath

Body = Mapping[str, Any]
Cell = Callable[[Body, datetime.datetime], Any]
"""The value of a column for an object at a time; None prints as `<none>`."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a Table: its heading, its OpenAPI type and format, and how its cell is read off an object."""

    name: str
    cell: Cell
    type: str = "string"
    format: str = ""
    priority: int = 0
    """0 is always shown, anything above only with `-o wide`."""
    description: str = ""


def name(body: Body, now: datetime.datetime) -> str:
    """The object's own name."""
    return str(body["metadata"].get("name", ""))


def age(body: Body, now: datetime.datetime) -> str:
    """How long the object exists."""
    return ages.since(body["metadata"].get("creationTimestamp"), now)


NAME = Column("Name", name, format="name", description="Name must be unique within a namespace.")
AGE = Column("Age", age, description="The time since this object was created.")
CREATED_AT = Column("Created At", lambda body, now: body["metadata"].get("creationTimestamp"), type="date")

PLAIN = (NAME, CREATED_AT)
"""What the API server prints of a built-in kind for which nobody wrote columns."""


def declared(printer_columns: Sequence[Mapping[str, Any]]) -> tuple[Column, ...]:
    """The columns of a custom resource from its `additionalPrinterColumns`; with none declared, its name and age."""
    if not printer_columns:
        return (NAME, Column("Age", _dated(jsonpath.parse(".metadata.creationTimestamp")), type="date"))
    return (NAME, *(_declared(column) for column in printer_columns))


def _declared(column: Mapping[str, Any]) -> Column:
    path = jsonpath.parse(column["jsonPath"])
    return Column(
        column["name"],
        _CELLS.get(column["type"], _text)(path),
        type=column["type"],
        format=column.get("format", ""),
        priority=column.get("priority", 0),
        description=column.get("description") or f"Custom resource definition column (in JSONPath format): {column['jsonPath']}",
    )


def _first(path: jsonpath.JsonPath, body: Body) -> Any:
    return next(path.find(body), None)


def _text(path: jsonpath.JsonPath) -> Cell:
    def cell(body: Body, now: datetime.datetime) -> Any:
        value = _first(path, body)
        return value if value is None or isinstance(value, str) else json.dumps(value, separators=(",", ":"), sort_keys=True)

    return cell


def _integer(path: jsonpath.JsonPath) -> Cell:
    def cell(body: Body, now: datetime.datetime) -> Any:
        value = _first(path, body)
        return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else None

    return cell


def _number(path: jsonpath.JsonPath) -> Cell:
    def cell(body: Body, now: datetime.datetime) -> Any:
        value = _first(path, body)
        return value if isinstance(value, int | float) and not isinstance(value, bool) else None

    return cell


def _boolean(path: jsonpath.JsonPath) -> Cell:
    def cell(body: Body, now: datetime.datetime) -> Any:
        value = _first(path, body)
        return value if isinstance(value, bool) else None

    return cell


def _dated(path: jsonpath.JsonPath) -> Cell:
    def cell(body: Body, now: datetime.datetime) -> Any:
        value = _first(path, body)
        return ages.since(value, now) if isinstance(value, str) else None

    return cell


_CELLS: dict[str, Callable[[jsonpath.JsonPath], Cell]] = {
    "string": _text,
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "date": _dated,
}
