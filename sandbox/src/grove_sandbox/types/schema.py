"""Schema: validation of custom objects against their CRD's schema, with the messages of the server.

jsonschema-rs validates; the messages are made for invalid objects only. CEL rules (`x-kubernetes-validations`) are accepted in a CRD and
not evaluated, except those that forbid a change (`transitions.py`).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jsonschema_rs
import orjson

from grove_sandbox.types import causes, go_time
from grove_sandbox.types.shapes import ABSENT, Shape
from grove_sandbox.types.status import Cause
from grove_sandbox.types.typed import SchemaFault, item_step

Schema = Mapping[str, Any]
_KEPT = (
    "type", "enum", "required", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength", "pattern",
    "minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties", "multipleOf", "format",
)  # fmt: skip
_FORMATS = ("date-time", "date", "ipv4", "ipv6", "uuid", "uri", "email", "hostname", "byte")


class Validator:
    """The compiled schema of one version of a custom kind."""

    def __init__(self, schema: Schema, shape: Shape) -> None:
        self._schema = schema
        self._shape = shape
        self._restricts_name = bool(((schema.get("properties") or {}).get("metadata") or {}).get("properties"))
        self._counted = _counted(shape)
        self.has_rules = _has_rules(schema)
        """Whether there are CEL rules."""
        self._compiled = jsonschema_rs.Draft7Validator(_draft7(schema), validate_formats=True, formats=go_time.FORMATS)

    def faults(self, body: Mapping[str, Any], old: Mapping[str, Any] | None = None, *, status_alone: bool = False) -> list[Cause]:
        """The faults of the object, of whose metadata a schema may restrict the name, or of its status alone.

        Values that are unchanged from `old` are not validated again: the schema may have become stricter since.
        """
        bare = {key: value for key, value in body.items() if key != "metadata"}
        if self._restricts_name:
            bare["metadata"] = {key: value for key, value in body["metadata"].items() if key == "name"}
        result: list[Cause] = []
        if not self._compiled.is_valid(bare):
            errors = self._compiled.iter_errors(bare)
            relevant = (error for error in errors if not status_alone or error.instance_path[:1] == ["status"])
            changed = (error for error in relevant if old is None or not _is_unchanged(error.instance_path, bare, old, self._shape))
            result = [cause for error in changed for cause in _causes(error, self._schema, status_alone)]
        if old is None or not any(_duplicates(old, self._shape, "", self._counted)):
            result += _duplicates(bare, self._shape, "", self._counted)
        return result


_UNCHECKED = causes.invalid(
    "<nil>",
    None,
    "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation",
)
_BLOCKING = {"FieldValueNotSupported", "FieldValueRequired", "FieldValueTooLong", "FieldValueTooMany", "FieldValueTypeInvalid"}


def unchecked(result: Sequence[Cause]) -> list[Cause]:
    """The cause that reports that CEL rules were not evaluated, if one of the faults prevents that."""
    return [_UNCHECKED] if any(cause.reason in _BLOCKING for cause in result) else []


def _is_unchanged(path: Sequence[str | int], new: Any, old: Any, shape: Shape) -> bool:
    """Whether the value at the path, or a value that contains it, is unchanged. Items of a list are compared if they have keys."""
    for step in path:
        if _same(new, old):
            return True
        if isinstance(step, str) and isinstance(old, Mapping):
            new, old, shape = new[step], old.get(step), shape.child(step)
        elif isinstance(step, int) and isinstance(old, list) and shape.keys:
            new = new[step]
            # ABSENT: an item that is null has changed if there was none before.
            old = next((item for item in old if _keys(item, shape) == _keys(new, shape)), ABSENT)
            shape = shape.item
        else:
            return False
    return _same(new, old)


def _same(value: Any, other: Any) -> bool:
    """Equal as JSON, in which `true` is no number."""
    return other is not ABSENT and orjson.dumps(value, option=orjson.OPT_SORT_KEYS) == orjson.dumps(other, option=orjson.OPT_SORT_KEYS)


def _keys(item: Any, shape: Shape) -> Any:
    return [item.get(key) for key in shape.keys] if isinstance(item, Mapping) else item


def _has_rules(schema: Any) -> bool:
    """Whether there are CEL rules anywhere in the schema."""
    if isinstance(schema, Mapping):
        return "x-kubernetes-validations" in schema or any(_has_rules(sub) for sub in schema.values())
    return isinstance(schema, list) and any(_has_rules(sub) for sub in schema)


def _draft7(schema: Any) -> Any:
    """The schema as JSON Schema draft 7, translated from the extensions of OpenAPI and Kubernetes."""
    result = {key: schema[key] for key in _KEPT if key in schema}
    if schema.get("format") not in _FORMATS:
        result.pop("format", None)
    for bound, strict in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if result.pop(strict, False) and bound in result:
            result[strict] = result.pop(bound)
    if schema.get("x-kubernetes-int-or-string"):
        result["type"] = ["integer", "string"]
    if schema.get("nullable"):
        result = _nullable(result)
    if schema.get("properties"):
        result["properties"] = {key: _draft7(sub) for key, sub in schema["properties"].items()}
    if isinstance(schema.get("additionalProperties"), Mapping):
        result["additionalProperties"] = _draft7(schema["additionalProperties"])
    if isinstance(schema.get("items"), Mapping):
        result["items"] = _draft7(schema["items"])
    for word in ("allOf", "anyOf", "oneOf"):
        if schema.get(word):
            result[word] = [_draft7(sub) for sub in schema[word]]
    if schema.get("not"):
        result["not"] = _draft7(schema["not"])
    return result


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    if "type" in schema:
        kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        schema["type"] = [*kinds, "null"]
    if "enum" in schema:
        schema["enum"] = [*schema["enum"], None]
    return schema


def _field(path: Sequence[str | int]) -> str:
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else str(step)
    return text


def _causes(error: jsonschema_rs.ValidationError, schema: Schema, status_alone: bool) -> Iterator[Cause]:
    """The causes of one error of the compiled schema; for alternatives also those of the first one."""
    if error.kind.name not in _COMBINED:
        if _is_fraction(error):
            form = _schema_of(schema, error.schema_path).get("format")
            known = f"with format {form}" if form else "(default format)"
            yield causes.invalid("<nil>", "", f"Checked value must be of type integer {known} in {_spoken(error, status_alone)}")
        yield _worded(error, schema, status_alone)
        return
    alternatives: list[list[jsonschema_rs.ValidationError]] = getattr(error.kind, "context", None) or []
    valid = sum(not failures for failures in alternatives)
    detail = _COMBINED[error.kind.name].format(result=f"{valid} valid alternatives" if valid else "none valid")
    # The server reports it for no field, without a value, and with the path in quotes.
    yield causes.invalid("<nil>", "", f'"{_spoken(error, status_alone)}" {detail}')
    if alternatives and not valid:
        yield from (_worded(failure, schema, status_alone) for failure in alternatives[0])


_COMBINED = {
    "anyOf": "must validate at least one schema (anyOf)",
    "oneOf": "must validate one and only one schema (oneOf). Found {found}",
    "not": "must not validate the schema (not)",
}


def _spoken(error: jsonschema_rs.ValidationError, status_alone: bool) -> str:
    """The field in the server's message. Of a status that is written alone the server leaves `status` out."""
    field = _field(error.instance_path)
    return field.removeprefix("status.") if status_alone else field


def _worded(error: jsonschema_rs.ValidationError, schema: Schema, status_alone: bool) -> Cause:
    """The cause of an error of one value."""
    field, word = _field(error.instance_path), error.kind.name
    value: Any = error.instance
    spoken = _spoken(error, status_alone)
    limit = getattr(error.kind, "value", None)
    if word == "required":
        return causes.required(_field([*error.instance_path, str(limit)]))
    if word == "type":
        expected = sorted(type_ for type_ in getattr(error.kind, "types", ()) if type_ != "null")
        return _wrong_type(field, spoken, value, expected, _format(schema, error.schema_path, value))
    if word == "enum":
        return causes.unsupported(field, value, [option for option in getattr(error.kind, "options", ()) if option is not None])
    if word == "maxLength":
        return causes.too_long(field, int(str(limit)))
    if word in ("maxItems", "maxProperties"):
        return causes.too_many(field, len(value), int(str(limit)))
    if word in ("minItems", "minProperties"):
        value = len(value)
    if word == "format":
        quoted = causes.shown(value)
        return Cause("FieldValueTypeInvalid", f"Invalid value: {quoted}: {spoken} in body must be of type {limit}: {quoted}", field)
    detail = _DETAILS.get(word, "is not valid").format(limit=_plain(limit))
    return causes.invalid(field, value, f"{spoken} in body {detail}")


_DETAILS = {
    "minimum": "should be greater than or equal to {limit}",
    "maximum": "should be less than or equal to {limit}",
    "exclusiveMinimum": "should be greater than {limit}",
    "exclusiveMaximum": "should be less than {limit}",
    "multipleOf": "should be a multiple of {limit}",
    "pattern": "should match '{limit}'",
    "minLength": "should be at least {limit} chars long",
    "minItems": "should have at least {limit} items",
    "minProperties": "should have at least {limit} properties",
    "uniqueItems": "shouldn't contain duplicates",
}
_WORDS: tuple[tuple[Any, str], ...] = (
    (bool, "boolean"), (str, "string"), (Mapping, "object"), (list, "array"), (int, "integer"), (float, "number"),
)  # fmt: skip


_INTEGERS = ("int32", "int64")
_FORM_OF = {"integer": "int64", "number": "float64"}


def _is_fraction(error: jsonschema_rs.ValidationError) -> bool:
    """Whether the value is a number with a fraction in place of an integer."""
    return error.kind.name == "type" and isinstance(error.instance, float) and "integer" in getattr(error.kind, "types", ())


def _schema_of(schema: Any, path: Sequence[str | int]) -> Schema:
    """The schema of the place whose type is wrong; the path ends with the word `type`."""
    for step in path[:-1]:
        if isinstance(schema, Mapping):
            schema = schema.get(str(step))
        elif isinstance(schema, list) and isinstance(step, int):
            schema = schema[step]
    return schema if isinstance(schema, Mapping) else {}


def _format(schema: Any, path: Sequence[str | int], value: Any) -> str:
    """The format of the place whose type is wrong, if it is known for such a value."""
    form = _schema_of(schema, path).get("format") or ""
    return form if form in (*_FORMATS, *(_INTEGERS if isinstance(value, float) else ())) else ""


def _wrong_type(field: str, spoken: str, value: Any, expected: Sequence[str], form: str) -> Cause:
    word = next((word for type_, word in _WORDS if isinstance(value, type_)), "null")
    if form and value is not None and not isinstance(value, str | list):
        # If there is a format, the server reports that instead of the type.
        word, expected = _FORM_OF.get(word, ""), (form,)
    return Cause(
        "FieldValueTypeInvalid", f'Invalid value: "{word}": {spoken} in body must be of type {",".join(expected)}: "{word}"', field
    )


def _plain(limit: Any) -> str:
    return str(int(limit)) if isinstance(limit, float) and limit.is_integer() else str(limit)


def _counted(shape: Shape) -> frozenset[Shape]:
    """The shapes in which there can be duplicates: sets, lists by keys, and shapes that contain one."""
    below = [inner for inner in (*shape.fields.values(), shape.values, shape.items) if inner is not None]
    result = frozenset().union(*(_counted(inner) for inner in below if not inner.name))
    return result | {shape} if result or shape.is_set or shape.keys else result


def _duplicates(value: Any, shape: Shape, path: str, counted: frozenset[Shape]) -> Iterator[Cause]:
    """The items that are in a set or a list by keys twice."""
    if shape not in counted:
        return
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _duplicates(item, shape.child(key), f"{path}.{key}" if path else key, counted)
    elif isinstance(value, list):
        seen: set[str] = set()
        for at, item in enumerate(value):
            where = f"{path}[{at}]"
            if shape.keys and item is not None and not isinstance(item, Mapping):
                yield causes.invalid(where, item, "must be an object for an array of list-type map")
            elif shape.is_set or shape.keys:
                try:
                    step = item_step(item, shape)
                except SchemaFault:
                    step = f"{at}"
                if step in seen:
                    yield causes.duplicate(where, {key: item.get(key) for key in shape.keys} if shape.keys else item)
                seen.add(step)
            yield from _duplicates(item, shape.item, where, counted)
