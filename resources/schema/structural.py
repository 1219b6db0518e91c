"""Structural schemas: converts a model's JSON schema to the form that CRDs require."""

from collections.abc import Iterable, Mapping
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin

from pydantic import WithJsonSchema
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from resources.schema import published
from resources.schema.wire import LIST_KEYS, PUBLISHED, REQUIRED, Wire

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


def shape(model: type[Wire]) -> Schema:
    """The structural schema of a model, reduced to `properties`, `items`, `additionalProperties` and `default`.

    What Kubernetes publishes is there with all its keys.
    """
    return {"properties": {field.alias or name: _of_field(field) for name, field in model.model_fields.items()}}


def _of_field(field: FieldInfo) -> Schema:
    schema = _of_type(field.annotation, field.metadata)
    extra = field.json_schema_extra
    default = extra["default"] if isinstance(extra, dict) and "default" in extra else field.default
    return schema if default is PydanticUndefined or default in (*EMPTY, ()) else {**schema, "default": default}


def _of_type(annotation: Any, metadata: Iterable[Any] = ()) -> Schema:
    stated = next((entry.json_schema for entry in metadata if isinstance(entry, WithJsonSchema)), None)
    if stated is not None:
        return published.structural(stated[PUBLISHED]) if PUBLISHED in stated else {}
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _of_type(arguments[0], arguments[1:])
    if origin in (Union, UnionType):
        return next(_of_type(option) for option in arguments if option is not NoneType)
    if origin is tuple:
        return {"items": _of_type(arguments[0])}
    if origin is dict:
        return {"additionalProperties": _of_type(arguments[1])}
    return shape(annotation) if isinstance(annotation, type) and issubclass(annotation, Wire) else {}
