"""Shape: the fields and defaults of a model as its CRD has them, from the model alone: the whole schema takes long to compute."""

from collections.abc import Iterable, Mapping
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import WithJsonSchema
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from resources.schema import published
from resources.schema.structural import EMPTY
from resources.schema.wire import PUBLISHED, Wire

Schema = Mapping[str, Any]


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
