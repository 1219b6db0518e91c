"""Fields: paths of fields of a PodCliqueSet, the fields that all bodies have, and functions that read bodies of any shape."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from engine.ids import Kind
from engine.paths import get
from engine.resource import Body

TEMPLATE: Final = ("spec", "template")
CLIQUES: Final = ("spec", "template", "cliques")
GROUPS: Final = ("spec", "template", "podCliqueScalingGroups")


def mapping(value: Any) -> Mapping[str, Any]:
    """The value if it is a map, else an empty map."""
    return value if isinstance(value, Mapping) else {}


def mappings(value: Any) -> list[Body]:
    """The entries of a list; an entry that is not a map becomes an empty one. Empty if the value is no list."""
    return [mapping(entry) for entry in value] if isinstance(value, list | tuple) else []


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
