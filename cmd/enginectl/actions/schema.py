"""`engine schema`: the shape of a document, or of one of our kinds, for programs and editors."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from engine.approval.wire import WirePlan
from engine.report.shapes import DiffDocument, SyncDocument
from enginectl.base import terminal
from enginectl.base.exit_codes import Exit, UsageError
from enginectl.base.options import DocumentName
from resources.schema import json_schema
from resources.schema.plan_policy import PlanPolicy


def print_schema(name: str, version: str = "", *, strict: bool = False) -> Exit:
    """Write the JSON Schema of a document or of a kind. Raises `UsageError` for a name or version that does not exist."""
    terminal.print_json(schema(DocumentName(name)) if _is_document(name, version, strict) else kind_schema(name.lower(), version, strict))
    terminal.flush()
    return Exit.DONE


def _is_document(name: str, version: str, strict: bool) -> bool:
    """Whether a name is that of a document. Raises `UsageError` for a document with options of kinds."""
    if name not in set(DocumentName):
        return False
    if version or strict:
        raise UsageError(f"{'--api-version' if version else '--strict'} is for kinds: {name} is a document")
    return True


def kind_schema(name: str, version: str, strict: bool) -> dict[str, Any]:
    """The schema of a kind in a version; without one in the oldest. Raises `UsageError`."""
    definitions = json_schema.definitions_of(name)
    if not definitions:
        raise UsageError(f"there is no schema of {name}; there are {', '.join((*DocumentName, *json_schema.names()))}")
    chosen = [definition for definition in definitions if version in ("", definition.kind.version)]
    if not chosen:
        raise UsageError(f"--api-version {version}: there are {', '.join(definition.kind.version for definition in definitions)}")
    return json_schema.json_schema(chosen[0], strict=strict)


DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
SHAPES: Final[Mapping[DocumentName, Any]] = {
    DocumentName.DIFF: DiffDocument,
    DocumentName.PLAN: WirePlan,
    DocumentName.SYNC: SyncDocument,
}
"""The documents that programs read."""


TITLES: Final[Mapping[DocumentName, str]] = {
    DocumentName.DIFF: "engine diff -o json",
    DocumentName.PLAN: "engine diff --out PLAN",
    DocumentName.SYNC: "engine sync -o json",
}
"""What writes each of them."""
PUBLISHED: Final[Mapping[str, str]] = {
    "WireOperation": "Operation",
    "WireRootPlan": "Plan",
    "WireRootReport": "RootReport",
    "WireStep": "Step",
    "WireTrial": "Trial",
}
"""Type of a saved plan -> the name that its schema has had since the first version."""


def schema(name: DocumentName) -> dict[str, Any]:
    """The schema of a document. It allows keys that it does not know: later releases add some within a version.

    Schemas of what the engine reads are strict: those of policies and of the maps of a saved plan allow no unknown fields.
    """
    if name is DocumentName.POLICY:
        return {"$schema": DIALECT, **PlanPolicy.model_json_schema(by_alias=True)}
    (shape,), definitions = msgspec.json.schema_components([SHAPES[name]], schema_hook=_of_other_types, ref_template="#/$defs/{name}")
    return {"$schema": DIALECT, "title": TITLES[name], **shape, "$defs": dict(sorted(_published(definitions).items()))}


def _published(value: Any) -> Any:
    """The definitions with the names that they are published under, in keys, titles and references."""
    if isinstance(value, dict):
        return {PUBLISHED.get(key, key): _published(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_published(each) for each in value]
    if not isinstance(value, str):
        return value
    before, slash, name = value.rpartition("/")
    return f"{before}{slash}{PUBLISHED.get(name, name)}"


def _of_other_types(type_: type) -> dict[str, Any]:
    """The schema of a type that documents do not contain: an error is written as its text, elsewhere."""
    if issubclass(type_, Exception):
        return {"type": "null"}
    raise NotImplementedError
