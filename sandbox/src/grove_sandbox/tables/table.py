"""Tables: objects as `meta.k8s.io/v1` Tables, which kubectl prints."""

import datetime
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from grove_sandbox.product import Body
from grove_sandbox.tables.columns import Column

_PARTIAL = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}


def table(
    bodies: Iterable[Body],
    columns: Sequence[Column],
    now: datetime.datetime,
    *,
    meta: Mapping[str, Any],
    include: str = "",
    headed: bool = True,
) -> dict[str, Any]:
    """The Table of the objects. `include` is the `includeObject` of the query; without `headed` there are no column definitions."""
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": dict(meta),
        "columnDefinitions": [_definition(column) for column in columns] if headed else None,
        "rows": [{"cells": [column.cell(body, now) for column in columns], "object": _included(body, include)} for body in bodies],
    }


def partial(body: Body) -> dict[str, Any]:
    """The PartialObjectMetadata of an object."""
    return {**_PARTIAL, "metadata": body["metadata"]}


def _definition(column: Column) -> dict[str, Any]:
    return {
        "name": column.name,
        "type": column.type,
        "format": column.format,
        "description": column.description,
        "priority": column.priority,
    }


def _included(body: Body, include: str) -> Body | None:
    if include == "None":
        return None
    return body if include == "Object" else partial(body)
