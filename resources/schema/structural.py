"""Structural schemas: converts a model's JSON schema to the form that CRDs require."""

from collections.abc import Mapping
from typing import Any, Final

from resources.schema import published
from resources.schema.wire import LIST_KEYS, PUBLISHED, REQUIRED

Schema = Mapping[str, Any]

REWRITTEN: Final = frozenset("properties items additionalProperties anyOf const default".split())
"""Keys that `_structural` converts instead of copying them."""
DROPPED: Final = frozenset({"title", "$ref", "$defs", REQUIRED, PUBLISHED})
"""Keys that CRDs do not have."""
EMPTY: Final[tuple[Any, ...]] = (None, "", [], {})
"""Defaults that mean that the field is absent; they are not written to the CRD."""


def structural(schema: Schema, definitions: Mapping[str, Schema]) -> dict[str, Any]:
    """The schema with all references resolved, without null types, and with only the keys that a CRD may have.

    Raises `ValueError` for what a CRD cannot express: a recursive model, a union, a list-map key that is optional.
    """
    return _structural(schema, definitions, ())


def _structural(schema: Schema, definitions: Mapping[str, Schema], ancestors: tuple[str, ...]) -> dict[str, Any]:
    schema, ancestors = _resolved(schema, definitions, ancestors)
    plain = {key: value for key, value in schema.items() if key not in REWRITTEN | DROPPED}
    if "anyOf" in schema:
        plain["anyOf"] = schema["anyOf"]  # an int-or-string: the one union that a CRD knows
    if schema.get("default") not in EMPTY:
        plain["default"] = schema["default"]
    if "const" in schema:
        plain["enum"] = [schema["const"]]
    if "items" in schema:
        plain["items"] = _structural(schema["items"], definitions, ancestors)
        _check_list_keys(plain)
    if isinstance(schema.get("additionalProperties"), Mapping):
        plain["additionalProperties"] = _structural(schema["additionalProperties"], definitions, ancestors)
    if "properties" in schema:
        plain |= _properties(schema, definitions, ancestors)
    if PUBLISHED in schema:
        plain |= published.structural(schema[PUBLISHED])
    return plain


def _resolved(schema: Schema, definitions: Mapping[str, Schema], ancestors: tuple[str, ...]) -> tuple[Schema, tuple[str, ...]]:
    """The schema with its reference or its only non-null alternative inlined, and the names of the types that contain it.

    Keys next to a reference take precedence over those of the type that it refers to.
    """
    while "$ref" in schema or _alternatives(schema):
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            if name in ancestors:
                raise ValueError(f"{name} contains itself, which a CRD cannot express")
            inner, ancestors = definitions[name], (*ancestors, name)
        else:
            inner = _only(_alternatives(schema))
        other_keys = {key: value for key, value in schema.items() if key not in ("$ref", "anyOf")}
        schema = {**inner, **other_keys}
    return schema, ancestors


def _alternatives(schema: Schema) -> list[Schema]:
    """The non-null types of a union; empty if the schema is no union, or the union int-or-string, which a CRD can express."""
    return [] if "x-kubernetes-int-or-string" in schema else [option for option in schema.get("anyOf", ()) if option.get("type") != "null"]


def _only(alternatives: list[Schema]) -> Schema:
    if len(alternatives) != 1:
        raise ValueError(f"a union of {len(alternatives)} types, which a CRD cannot express")
    return alternatives[0]


def _properties(schema: Schema, definitions: Mapping[str, Schema], ancestors: tuple[str, ...]) -> dict[str, Any]:
    """The keys `properties` and `required`: fields without a default and fields marked with `REQUIRED` are required."""
    fields: Mapping[str, Schema] = schema["properties"]
    required = [name for name, field in fields.items() if name in schema.get("required", ()) or field.get(REQUIRED)]
    properties = {"properties": {name: _structural(field, definitions, ancestors) for name, field in fields.items()}}
    return properties | ({"required": required} if required else {})


def _check_list_keys(array: Mapping[str, Any]) -> None:
    """Raise `ValueError` if an entry of a list of type map may lack one of the list's keys."""
    item = array["items"]
    for key in array.get(LIST_KEYS, ()):
        if key not in item.get("required", ()) and "default" not in item["properties"][key]:
            raise ValueError(f"the list-map key {key} may be missing")
