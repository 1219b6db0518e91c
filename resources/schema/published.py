"""Published: the types of a pod spec as a Kubernetes API server publishes them, and their structural schemas.

They are in `pod_spec.json`, which `make pod-spec` generates from a real API server. It is read when a pod spec is first validated.
"""

from collections.abc import Mapping
from functools import cache
from pkgutil import get_data
from typing import Any, Final

import orjson

from resources.schema.wire import OPAQUE, QUANTITY

Schema = Mapping[str, Any]

INT_OR_STRING: Final[Schema] = {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}
AMOUNT: Final[Schema] = {
    "x-kubernetes-preserve-unknown-fields": True,
    "pattern": QUANTITY,
    # A pod may request `cpu: 0.5`, but no type of a CRD allows text and fractions: so all types are allowed, and the others excluded here.
    "not": {"enum": [False, True, [], {}]},
    "maxItems": 0,
    "maxProperties": 0,
}
UNIONS: Final[Mapping[frozenset[str], Schema]] = {
    frozenset({"integer", "string"}): INT_OR_STRING,
    frozenset({"number", "string"}): AMOUNT,
}
"""The structural schema of each union of types."""
EXTENDED: Final[Mapping[str, tuple[str, Schema]]] = {
    "MainContainer": ("Container", {}),
    "ExtraPodSpec": ("PodSpec", {"mainContainer": {"$ref": "MainContainer"}}),
}
"""Types of our own: the type of Kubernetes without its required fields, and further fields."""


@cache
def definitions() -> Mapping[str, Schema]:
    """Type name -> its schema, `EXTENDED` included. Types refer to one another by name; none contains itself."""
    types: Mapping[str, Schema] = orjson.loads(get_data(__package__, "pod_spec.json") or b"")["definitions"]
    return {**types, **{name: _extended(types[base], fields) for name, (base, fields) in EXTENDED.items()}}


def _extended(schema: Schema, fields: Schema) -> Schema:
    """The schema with more fields and without required ones."""
    return {**{key: value for key, value in schema.items() if key != "required"}, "properties": {**schema["properties"], **fields}}


def properties(schema: Schema) -> dict[str, Schema]:
    """The fields of an object. An optional enum also allows the empty string, which Kubernetes treats as absent."""
    required = schema.get("required", ())
    return {
        name: {**field, "enum": [*field["enum"], ""]} if "enum" in field and name not in required and "" not in field["enum"] else field
        for name, field in schema.get("properties", {}).items()
    }


def union(schema: Schema) -> frozenset[str]:
    """The JSON types that a value may have, if the schema is a union of types; else empty."""
    return frozenset(option["type"] for option in schema.get("oneOf", ()))


@cache
def structural(name: str) -> Schema:
    """The structural schema of a type with all references resolved. Every object keeps unknown fields, for newer versions of Kubernetes.

    It has no defaults and no list keys: see docs/decisions.md. Equal parts are shared objects, which must not be changed.
    """
    return _structural(definitions()[name])


def _structural(schema: Schema) -> Schema:
    if "$ref" in schema:
        return structural(schema["$ref"])
    if types := union(schema):
        return UNIONS[types]
    if "items" in schema:
        return {**schema, "items": _structural(schema["items"])}
    if "additionalProperties" in schema:
        return {**schema, "additionalProperties": _structural(schema["additionalProperties"])}
    if schema.get("type") != "object":
        return schema
    fields = {name: _structural(field) for name, field in properties(schema).items()}
    return {**schema, **OPAQUE, **({"properties": fields} if fields else {})}
