"""Schemas: JSON Schema of the documents for programs, and of policies."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from engine.report.shapes import DiffDocument, SyncDocument
from enginectl.base.options import DocumentName
from resources.schema.plan_policy import PlanPolicy

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
SHAPES: Final[Mapping[DocumentName, Any]] = {DocumentName.DIFF: DiffDocument, DocumentName.SYNC: SyncDocument}
"""The documents that programs read."""


def schema(name: DocumentName) -> dict[str, Any]:
    """The schema of a document. It allows keys that it does not know: later releases add some within a version.

    That of policies, which the engine reads, allows only the fields that there are.
    """
    if name is DocumentName.POLICY:
        return {"$schema": DIALECT, **PlanPolicy.model_json_schema(by_alias=True)}
    (shape,), definitions = msgspec.json.schema_components([SHAPES[name]], ref_template="#/$defs/{name}")
    return {"$schema": DIALECT, "title": f"engine {name} -o json", **shape, "$defs": definitions}
