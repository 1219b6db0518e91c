"""Wire: the base class of models of JSON objects, and the scalar types of Kubernetes.

A default with a value (`replicas: 0`, the first word of an enum) is also the default in the CRD; an empty default (None, `()`, "") means
absence and is not. `required` and `silent` are the two exceptions of the API.
"""

import ast
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Annotated, Any, Final, TypeVar

from msgspec import Struct
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, GetJsonSchemaHandler, PlainValidator, WithJsonSchema, model_validator
from pydantic.alias_generators import to_camel
from pydantic.config import JsonDict
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError

from engine import duration

QUANTITY: Final = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
REQUIRED: Final = "x-required"
"""Marks a field that the CRD requires although the model has a default; it is not written to the CRD."""
PUBLISHED: Final = "x-published"
"""Names a Kubernetes type whose published schema is put here in the CRD; it is not written to the CRD."""
RULES: Final = "x-kubernetes-validations"
LIST_TYPE: Final = "x-kubernetes-list-type"
LIST_KEYS: Final = "x-kubernetes-list-map-keys"
OPAQUE: Final[JsonDict] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
"""The schema of an object with arbitrary fields, which is passed through unchanged."""
ATOMIC: Final[JsonDict] = {LIST_TYPE: "atomic"}
BY_NAME: Final[JsonDict] = {LIST_TYPE: "map", LIST_KEYS: ["name"]}


def descriptions(models: Iterable[type]) -> dict[str, str]:
    """Name of a field -> the docstring below it. A later model, derived from an earlier one, declares its fields anew."""
    described: dict[str, str] = {}
    for model in models:
        own = _of_module(model.__module__).get(model.__name__, {})
        described = {name: text for name, text in described.items() if name not in vars(model).get("__annotations__", ())} | own
    return described


@cache
def _of_module(name: str) -> Mapping[str, dict[str, str]]:
    """The docstrings of the fields of each class of a module, by the name of the class."""
    tree = ast.parse(inspect.getsource(sys.modules[name]))
    return {node.name: dict(_documented(node.body)) for node in tree.body if isinstance(node, ast.ClassDef)}


def _documented(body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    """Each annotated name that a docstring follows, with the docstring."""
    for field, below in zip(body, body[1:], strict=False):
        match field, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                yield name, inspect.cleandoc(text)


T = TypeVar("T")


class Wire(BaseModel):
    """A frozen model of a JSON object: camelCase keys, exact types, no unknown keys."""

    # Most commands need few of the models: each one is built when it is used for the first time.
    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True, strict=True, defer_build=True)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """The JSON schema, with the docstrings of fields as their descriptions."""
        published = handler(schema)
        properties = handler.resolve_ref_schema(published).get("properties", {})
        models = [base for base in reversed(cls.__mro__) if issubclass(base, Wire)]
        for name, text in descriptions(models).items():
            properties[cls.model_fields[name].alias or name].setdefault("description", text)
        return published

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, value: Any) -> Any:
        """A null counts as absent, as it does to an API server; manifests have nulls as well (`env:` without a value)."""
        return {key: entry for key, entry in value.items() if entry is not None} if isinstance(value, Mapping) else value

    def body(self) -> dict[str, Any]:
        """The JSON that it was read from, without defaults."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True)


class Rule(Struct, frozen=True):
    """A rule across the fields of one object. The API server evaluates `cel` and the model `holds`; both report `message` at `field`."""

    cel: str
    message: str
    reason: str
    field: str
    holds: Callable[[Any], bool]
    on_create_only: bool = False

    def schema(self) -> dict[str, Any]:
        """The rule as an entry of `x-kubernetes-validations`."""
        entry: dict[str, Any] = {"rule": self.cel, "message": self.message, "reason": self.reason, "fieldPath": self.field}
        return entry | {"optionalOldSelf": True} if self.on_create_only else entry


def check_rules(model: Wire, rules: tuple[Rule, ...]) -> None:
    """Raise the error of the first rule that the model violates. Rules on creation are left to admission, which knows the stored object."""
    for rule in rules:
        if not rule.on_create_only and not rule.holds(model):
            raise broken(rule.message, rule.reason, tuple(part for part in rule.field.split(".") if part))


def broken(message: str, reason: str, field: tuple[str | int, ...] = (), **value: Any) -> PydanticCustomError:
    """The error for a violated rule.

    `field` is the path below the object, `reason` a cause of Kubernetes such as `FieldValueInvalid`; `value`, if given, is shown.
    """
    return PydanticCustomError("rule", "{message}", {"message": message, "reason": reason, "field": field, **value})


def rules(*entries: Rule) -> dict[str, Any]:
    """The rules as the schema key `x-kubernetes-validations`."""
    return {RULES: [entry.schema() for entry in entries]}


def required(default: Any) -> Any:
    """A field that the CRD both requires and defaults, so that it is always present."""
    return Field(default=default, json_schema_extra={REQUIRED: True})


def silent(default: Any, *, required: bool = False) -> Any:
    """A field whose default is only in the model: the API server does not add it."""
    return Field(default=default, json_schema_extra={"default": None, REQUIRED: required})


def _fits(bits: int) -> Callable[[int], int]:
    def check(value: int) -> int:
        if not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
            raise PydanticCustomError("number", "must fit {bits} bits", {"bits": bits})
        return value

    return check


def _duration(text: str) -> str:
    try:
        duration.nanoseconds(text)
    except ValueError as error:
        raise PydanticCustomError("duration", "must be a duration such as 30s, 4h or 1h30m") from error
    return text


def _opaque(value: Any) -> Any:
    if not isinstance(value, Mapping):
        raise PydanticCustomError("dict_type", "must be an object")
    return value


def _quantity(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | str) or not re.fullmatch(QUANTITY, str(value)):
        raise PydanticCustomError("quantity", "must be a quantity such as 2, 500m or 4Gi")
    return value


Int32 = Annotated[int, AfterValidator(_fits(32)), WithJsonSchema({"type": "integer", "format": "int32"})]
Int64 = Annotated[int, AfterValidator(_fits(64)), WithJsonSchema({"type": "integer", "format": "int64"})]
Timestamp = Annotated[str, WithJsonSchema({"type": "string", "format": "date-time"})]
"""A time in RFC 3339."""
Duration = Annotated[str, AfterValidator(_duration)]
"""A duration in Go's notation, e.g. `1h30m`; `engine.duration` parses it."""
Opaque = Annotated[Mapping[str, Any], PlainValidator(_opaque), WithJsonSchema(OPAQUE)]
"""An object that is passed through: the value itself, not a copy."""
LabelSelector = Annotated[Mapping[str, Any], PlainValidator(_opaque), WithJsonSchema({PUBLISHED: "LabelSelector"})]
ClaimSpec = Annotated[Mapping[str, Any], PlainValidator(_opaque), WithJsonSchema({PUBLISHED: "ResourceClaimSpec"})]
ClaimMetadata = Annotated[Mapping[str, Any], PlainValidator(_opaque), WithJsonSchema({PUBLISHED: "ClaimMetadata"})]
"""Objects of types that Kubernetes publishes, passed through: `resources.schema.pod_spec_rules` validates all of them in manifests."""
Quantity = Annotated[
    int | str,
    PlainValidator(_quantity),
    WithJsonSchema({"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}], "pattern": QUANTITY}),
]
"""A quantity such as 2, 500m or 4Gi."""
Seq = Annotated[tuple[T, ...], Field(strict=False)]
"""A JSON array, given as list or tuple; its entries are validated strictly."""
