"""Structural schemas: what a model's JSON schema becomes so that an API server takes it in a CRD."""

from collections.abc import Mapping
from typing import Any, Final

from resources.schema import published
from resources.schema.wire import LIST_KEYS, PUBLISHED, REQUIRED

Schema = Mapping[str, Any]

REBUILT: Final = frozenset("properties items additionalProperties anyOf const default".split())
"""Keys that are written anew below."""
DROPPED: Final = frozenset({"title", "$ref", "$defs", REQUIRED, PUBLISHED})
"""Keys that say nothing to a server."""
EMPTY: Final[tuple[Any, ...]] = (None, "", [], {})
"""Defaults that stand for absence."""


def structural(schema: Schema, definitions: Mapping[str, Schema]) -> dict[str, Any]:
    """The schema with references written out, null told by absence, and only keys that a CRD may hold.

    Raises `ValueError` for what a CRD cannot say: a recursive model, a union, a list-map key that may be missing.
    """
    return _structural(schema, definitions, ())


def _structural(schema: Schema, definitions: Mapping[str, Schema], within: tuple[str, ...]) -> dict[str, Any]:
    schema, within = _resolved(schema, definitions, within)
    plain = {key: value for key, value in schema.items() if key not in REBUILT | DROPPED}
    if "anyOf" in schema:
        plain["anyOf"] = schema["anyOf"]  # an int-or-string: the one union that a CRD knows
    if schema.get("default") not in EMPTY:
        plain["default"] = schema["default"]
    if "const" in schema:
        plain["enum"] = [schema["const"]]
    if "items" in schema:
        plain["items"] = _structural(schema["items"], definitions, within)
        _keyed(plain)
    if isinstance(schema.get("additionalProperties"), Mapping):
        plain["additionalProperties"] = _structural(schema["additionalProperties"], definitions, within)
    if "properties" in schema:
        plain |= _properties(schema, definitions, within)
    if PUBLISHED in schema:
        plain |= published.structural(schema[PUBLISHED])
    return plain


def _resolved(schema: Schema, definitions: Mapping[str, Schema], within: tuple[str, ...]) -> tuple[Schema, tuple[str, ...]]:
    """The schema with its reference or its only non-null alternative put in its place; what stands beside them wins."""
    while "$ref" in schema or _alternatives(schema):
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            if name in within:
                raise ValueError(f"{name} contains itself, which a CRD cannot say")
            inner, within = definitions[name], (*within, name)
        else:
            inner = _only(_alternatives(schema))
        beside = {key: value for key, value in schema.items() if key not in ("$ref", "anyOf")}
        schema = {**inner, **beside}
    return schema, within


def _alternatives(schema: Schema) -> list[Schema]:
    return [] if "x-kubernetes-int-or-string" in schema else [one for one in schema.get("anyOf", ()) if one.get("type") != "null"]


def _only(alternatives: list[Schema]) -> Schema:
    if len(alternatives) != 1:
        raise ValueError(f"a union of {len(alternatives)} types, which a CRD cannot say")
    return alternatives[0]


def _properties(schema: Schema, definitions: Mapping[str, Schema], within: tuple[str, ...]) -> dict[str, Any]:
    """The properties, and which of them must be there: those without a default, and those that are marked."""
    fields: Mapping[str, Schema] = schema["properties"]
    needed = [name for name, field in fields.items() if name in schema.get("required", ()) or field.get(REQUIRED)]
    properties = {"properties": {name: _structural(field, definitions, within) for name, field in fields.items()}}
    return properties | ({"required": needed} if needed else {})


def _keyed(array: Mapping[str, Any]) -> None:
    """The keys of a list that is merged as a map are always there."""
    item = array["items"]
    for key in array.get(LIST_KEYS, ()):
        if key not in item.get("required", ()) and "default" not in item["properties"][key]:
            raise ValueError(f"the list-map key {key} may be missing")
