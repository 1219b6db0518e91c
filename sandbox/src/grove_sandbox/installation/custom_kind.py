"""CustomKind: the pieces of which CustomResourceDefinitions are written here."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from grove_sandbox.product import Kind

Schema = Mapping[str, Any]

TEXT: Final[Schema] = {"type": "string"}
FLAG: Final[Schema] = {"type": "boolean"}
NUMBER: Final[Schema] = {"type": "number"}
COUNT: Final[Schema] = {"type": "integer", "format": "int32"}
TIME: Final[Schema] = {"type": "string", "format": "date-time"}
ANYTHING: Final[Schema] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
INT_OR_TEXT: Final[Schema] = {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}
QUANTITIES: Final[Schema] = {"type": "object", "additionalProperties": INT_OR_TEXT}
"""Amounts of resources by name."""


def object_of(properties: Mapping[str, Schema], required: Iterable[str] = (), **more: Any) -> Schema:
    """The schema of an object with these fields."""
    return {"type": "object", "properties": properties} | ({"required": [*required]} if required else {}) | more


def list_of(items: Schema, **more: Any) -> Schema:
    """The schema of a list."""
    return {"type": "array", "items": items, **more}


def choice(*values: str, **more: Any) -> Schema:
    """The schema of a string that is one of these."""
    return {"type": "string", "enum": [*values], **more}


def definition(
    kind: Kind,
    schema: Schema,
    *,
    short_names: Iterable[str] = (),
    columns: Iterable[tuple[str, str, str]] = (),
    scale: Mapping[str, str] | None = None,
    has_status: bool | None = None,
) -> Mapping[str, Any]:
    """The CustomResourceDefinition of a kind in its one version.

    `columns` are name, type and path of what `kubectl get` prints; `has_status` says whether the status is a subresource, if
    that differs from `kind.status`.
    """
    complete = {**schema, "properties": {"apiVersion": TEXT, "kind": TEXT, "metadata": {"type": "object"}, **schema["properties"]}}
    status: dict[str, Any] = {"status": {}} if (kind.status if has_status is None else has_status) else {}
    subresources = status | ({"scale": dict(scale)} if scale else {})
    printed = [{"name": name, "type": type_, "jsonPath": path} for name, type_, path in columns]
    version = {"name": kind.version, "served": True, "storage": True, "schema": {"openAPIV3Schema": complete}}
    version |= ({"subresources": subresources} if subresources else {}) | ({"additionalPrinterColumns": printed} if printed else {})
    names = {"kind": kind.name, "listKind": f"{kind.name}List", "plural": kind.plural, "singular": kind.name.lower()}
    short = [*short_names]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{kind.group}"},
        "spec": {
            "group": kind.group,
            "names": names | ({"shortNames": short} if short else {}),
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "versions": [version],
        },
    }
