"""OpenAPI v3: the schemas of all served kinds, one document for each group and version."""

import hashlib
from collections.abc import Mapping
from typing import Any

import orjson

from grove_sandbox.kinds.served import Catalogue, Served
from grove_sandbox.product import Kind
from grove_sandbox.types.shapes import ABSENT, Shape, builtin

_REF = "#/components/schemas/"
_SCALARS: Mapping[str, dict[str, Any]] = {
    "string": {"type": "string"},
    "boolean": {"type": "boolean"},
    "number": {"type": "number"},
    "quantity": {"type": "string", "description": "Quantity is a fixed-point number such as 500m, 1.5 or 2Gi."},
    "int-or-string": {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]},
    "time": {"type": "string", "format": "date-time"},
    "bytes": {"type": "string", "format": "byte"},
    # Never empty: kubectl takes an empty schema for none.
    "any": {"description": "Any JSON value."},
}
_TYPE_META = {
    "apiVersion": {"type": "string", "description": "The group and version of the schema that this object follows."},
    "kind": {"type": "string", "description": "The kind of this object, in CamelCase."},
}
_METADATA = {"description": "What every object has: its name, its labels, its owners, its history."}
_LIST_META = {
    "type": "object",
    "properties": {
        "resourceVersion": {"type": "string"},
        "continue": {"type": "string"},
        "remainingItemCount": {"type": "integer", "format": "int64"},
        "selfLink": {"type": "string"},
    },
}
_PARAMETERS = [
    {"name": name, "in": "query", "schema": {"type": kind, "uniqueItems": True}}
    for name, kind in (("dryRun", "string"), ("fieldManager", "string"), ("fieldValidation", "string"), ("force", "boolean"))
]


class OpenApi:
    """The documents of a catalogue, made on demand and again after the catalogue has changed."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._revision = -1
        self._documents: dict[str, bytes] = {}

    def index(self) -> dict[str, Any]:
        """The document of `/openapi/v3`: the URL of each document, with a hash of its content."""
        return {"paths": {path: {"serverRelativeURL": f"/openapi/v3/{path}?hash={_hash(text)}"} for path, text in self._all().items()}}

    def document(self, path: str) -> bytes | None:
        """The document of `api/v1` or `apis/GROUP/VERSION`; None for what is not served."""
        return self._all().get(path)

    def _all(self) -> dict[str, bytes]:
        if self._revision != self._catalogue.revision:
            versions = dict.fromkeys((served.kind.group, served.kind.version) for served in self._catalogue)
            self._documents = {_path(group, version): self._write(group, version) for group, version in versions}
            self._revision = self._catalogue.revision
        return self._documents

    def _write(self, group: str, version: str) -> bytes:
        kinds = [served for served in self._catalogue if (served.kind.group, served.kind.version) == (group, version)]
        return orjson.dumps(document(kinds))


def document(kinds: list[Served]) -> dict[str, Any]:
    """The OpenAPI document of kinds that share a group and version."""
    schemas: dict[str, Any] = {}
    paths: dict[str, Any] = {}
    for served in kinds:
        schemas[_name(served.kind)] = _kind_schema(served, schemas)
        schemas[f"{_name(served.kind)}List"] = _list_schema(served)
        paths |= _paths(served)
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "v1.37.0"},
        "paths": paths,
        "components": {"schemas": schemas},
    }


def _path(group: str, version: str) -> str:
    return f"apis/{group}/{version}" if group else f"api/{version}"


def _hash(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest().upper()


def _name(kind: Kind) -> str:
    return ".".join([*reversed(kind.group.split(".")), kind.version, kind.name]).lstrip(".")


def _gvk(kind: Kind, suffix: str = "") -> dict[str, str]:
    return {"group": kind.group, "version": kind.version, "kind": kind.name + suffix}


def _kind_schema(served: Served, schemas: dict[str, Any]) -> dict[str, Any]:
    if served.custom:
        schema = dict(served.schema or {"type": "object", "x-kubernetes-preserve-unknown-fields": True})
        properties = {**schema.get("properties", {}), **_TYPE_META, "metadata": {**_METADATA, **_reference(builtin("ObjectMeta"), schemas)}}
    else:
        schema = _object(served.shape, schemas)
        properties = {**schema.get("properties", {}), **_TYPE_META}
    return {**schema, "properties": properties, "x-kubernetes-group-version-kind": [_gvk(served.kind)]}


def _list_schema(served: Served) -> dict[str, Any]:
    properties = {
        **_TYPE_META,
        "metadata": _LIST_META,
        "items": {"type": "array", "items": {"$ref": _REF + _name(served.kind)}},
    }
    description = f"{served.kind.name}List is a list of {served.kind.name}"
    gvk = {**_gvk(served.kind), "kind": served.list_name}
    return {
        "type": "object",
        "description": description,
        "required": ["items"],
        "properties": properties,
        "x-kubernetes-group-version-kind": [gvk],
    }


def _schema(shape: Shape, schemas: dict[str, Any]) -> dict[str, Any]:
    if shape.type == "object" and shape.name:
        return _reference(shape, schemas)
    if shape.type == "object":
        return _object(shape, schemas)
    if shape.type == "array":
        return {"type": "array", "items": _schema(shape.item, schemas), **_list_type(shape)}
    scalar = {"type": "integer", "format": shape.format} if shape.type == "integer" else dict(_SCALARS[shape.type])
    return scalar if shape.default is ABSENT else {**scalar, "default": shape.default}


def _reference(shape: Shape, schemas: dict[str, Any]) -> dict[str, Any]:
    """A reference to a named type, whose schema is added to `schemas` if it is not there."""
    name = f"io.k8s.{shape.name}"
    if name not in schemas:
        schemas[name] = {}  # types refer to themselves
        schemas[name] = _object(shape, schemas)
    return {"allOf": [{"$ref": _REF + name}]}


def _object(shape: Shape, schemas: dict[str, Any]) -> dict[str, Any]:
    if shape.values is not None:
        return {"type": "object", "additionalProperties": _schema(shape.values, schemas)}
    required = [name for name, member in shape.fields.items() if member.presence == "!" and member.type in ("string", "integer", "boolean")]
    return {
        "type": "object",
        **({"required": required} if required else {}),
        "properties": {name: _schema(member, schemas) for name, member in shape.fields.items()},
        **({"x-kubernetes-map-type": "atomic"} if shape.atomic else {}),
    }


def _list_type(shape: Shape) -> dict[str, Any]:
    if shape.keys:
        return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(shape.keys)}
    return {"x-kubernetes-list-type": "set" if shape.is_set else "atomic"}


def _paths(served: Served) -> dict[str, Any]:
    """Only what clients look for: the verbs, their kind, and that writes take `fieldValidation`."""
    kind = served.kind
    namespaced = "/namespaces/{namespace}" if kind.namespaced else ""
    collection = f"/{_path(kind.group, kind.version)}{namespaced}/{kind.plural}"
    item = f"{collection}/{{name}}"
    paths = {collection: _operations(kind, {"get": "list", "post": "post"}), item: _operations(kind, dict.fromkeys(_VERBS, ""))}
    for subresource in served.subresources:
        paths[f"{item}/{subresource}"] = _operations(kind, {"get": "get", "patch": "patch", "put": "put"})
    return paths


_VERBS = ("get", "put", "patch", "delete")


def _operations(kind: Kind, verbs: Mapping[str, str]) -> dict[str, Any]:
    return {
        verb: {
            "operationId": f"{action or verb}{kind.name}",
            "parameters": [] if verb == "get" else _PARAMETERS,
            "responses": {"200": {"description": "OK"}},
            "x-kubernetes-action": action or verb,
            "x-kubernetes-group-version-kind": _gvk(kind),
        }
        for verb, action in verbs.items()
    }
