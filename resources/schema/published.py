"""Published: the types of a pod spec as a Kubernetes API server publishes them, and what a CRD makes of them.

The file beside this one holds them; `make pod-spec` writes it anew from a real server. It is read when a pod spec is first judged.
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
    # A pod may ask for `cpu: 0.5`, and no type of a CRD holds text and fractions: so anything is taken, and what is neither is refused.
    "not": {"enum": [False, True, [], {}]},
    "maxItems": 0,
    "maxProperties": 0,
}
UNIONS: Final[Mapping[frozenset[str], Schema]] = {
    frozenset({"integer", "string"}): INT_OR_STRING,
    frozenset({"number", "string"}): AMOUNT,
}
"""What a CRD says for the unions that Kubernetes has."""


@cache
def definitions() -> Mapping[str, Schema]:
    """Every type by its name. They refer to one another by name, and nothing contains itself."""
    found: Mapping[str, Schema] = orjson.loads(get_data(__package__, "pod_spec.json") or b"")["definitions"]
    return found


def properties(schema: Schema) -> dict[str, Schema]:
    """The fields of an object. Where a field may be absent, an empty word is as good as none: to Kubernetes they are the same."""
    needed = schema.get("required", ())
    return {
        name: {**field, "enum": [*field["enum"], ""]} if "enum" in field and name not in needed and "" not in field["enum"] else field
        for name, field in schema.get("properties", {}).items()
    }


def union(schema: Schema) -> frozenset[str]:
    """The types between which a value may choose; none for what is of one type."""
    return frozenset(one["type"] for one in schema.get("oneOf", ()))


@cache
def structural(name: str) -> Schema:
    """The structural schema of a type, with everything written out: open at every level, so that what a newer Kubernetes adds is kept.

    No defaults and no keys of lists: see docs/decisions.md. Parts that are alike are shared, and not to be changed.
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
