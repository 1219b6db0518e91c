"""Schemas: JSON Schema of the documents for programs."""

from collections.abc import Mapping
from typing import Any

import msgspec

from engine.report.shapes import DiffDocument, SyncDocument
from enginectl.base.options import DocumentName

DIALECT = "https://json-schema.org/draft/2020-12/schema"
SHAPES: Mapping[DocumentName, Any] = {DocumentName.DIFF: DiffDocument, DocumentName.SYNC: SyncDocument}


def schema(name: DocumentName) -> dict[str, Any]:
    """The schema of a document. It allows keys that it does not know: later releases add some within a version."""
    (shape,), definitions = msgspec.json.schema_components([SHAPES[name]], ref_template="#/$defs/{name}")
    return {"$schema": DIALECT, "title": f"engine {name} -o json", **shape, "$defs": definitions}
