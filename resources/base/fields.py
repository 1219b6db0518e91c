"""Fields: paths of fields of a PodCliqueSet, the fields that all bodies have, and functions that read bodies of any shape."""

from collections.abc import Mapping, Sequence
from functools import cache
from pkgutil import get_data
from typing import Any, Final

import orjson

from engine.ids import Kind
from engine.paths import MAPS, get
from engine.quantity import NOTHING_OMITTED, Omitted
from engine.resource import Body

TEMPLATE: Final = ("spec", "template")
CLIQUES: Final = ("spec", "template", "cliques")
GROUPS: Final = ("spec", "template", "podCliqueScalingGroups")
WRITTEN_BY_SERVER: Final = frozenset({"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"})
"""Metadata that no rule of admission reads."""


def mapping(value: Any) -> Mapping[str, Any]:
    """The value if it is a map, else an empty map."""
    return value if isinstance(value, MAPS) else {}


def mappings(value: Any) -> list[Body]:
    """The entries of a list; an entry that is not a map becomes an empty one. Empty if the value is no list."""
    return [mapping(entry) for entry in value] if isinstance(value, list | tuple) else []


def count(value: Any) -> int:
    """The value if it is a positive integer, else 0."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def annotations_of(body: Body) -> Mapping[str, Any]:
    """The annotations of an object; empty if they are not a map."""
    return mapping(get(body, ("metadata", "annotations"), {}))


def cliques_of(body: Body) -> list[Body]:
    """The cliques of a set's template. An entry that is not a map becomes an empty one, so that indices are kept."""
    return mappings(get(body, CLIQUES, ()))


def members_of(group: Body) -> list[str]:
    """The names of the cliques in a scaling group of a set's template, those that are strings; empty if they are no list."""
    members = group.get("cliqueNames")
    return [name for name in members if isinstance(name, str)] if isinstance(members, list | tuple) else []


def manifest(
    kind: Kind,
    namespace: str,
    name: str,
    labels: Mapping[str, str],
    *,
    annotations: Mapping[str, str] | None = None,
    finalizers: Sequence[str] = (),
    **fields: Any,
) -> dict[str, Any]:
    """A body with `apiVersion`, `kind`, metadata and `fields`; empty annotations and finalizers are left out."""
    metadata: dict[str, Any] = {"name": name, "namespace": namespace, "labels": labels}
    if annotations:
        metadata["annotations"] = annotations
    if finalizers:
        metadata["finalizers"] = list(finalizers)
    return {"apiVersion": kind.api_version, "kind": kind.name, "metadata": metadata, **fields}


@cache
def omitted_fields(kind: Kind) -> Omitted:
    """The fields of a built-in kind that its server leaves out; nothing for other kinds."""
    recorded = _recorded()
    root = recorded["kinds"].get(f"{kind.api_version} {kind.name}")
    return _of_type(root) if root else NOTHING_OMITTED


@cache
def _recorded() -> Mapping[str, Any]:
    content: Mapping[str, Any] = orjson.loads(get_data(__package__, "omitted_fields.json") or b"")
    return content


@cache
def _of_type(name: str) -> Omitted:
    """The omitted fields of a type: in the file, they have the value null, and other fields the name of their type."""
    row: Mapping[str, str | None] = _recorded()["types"][name]
    below = {field: _of_type(type_) for field, type_ in row.items() if type_ is not None}
    return Omitted(frozenset(field for field, type_ in row.items() if type_ is None), below)


def as_specified(body: Body) -> Body:
    """An object without its status and without what the server changes at every write."""
    metadata = {key: value for key, value in body["metadata"].items() if key not in WRITTEN_BY_SERVER}
    return {**{key: value for key, value in body.items() if key != "status"}, "metadata": metadata}
