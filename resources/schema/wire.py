"""Wire: what every model of travelling JSON has in common, and the scalar types of Kubernetes.

A default that says something (`replicas: 0`, an enum's first word) is also the default in the CRD; an empty one (None, `()`, "") stands
for absence and is not. `required` and `silent` are the two exceptions that the API makes.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PlainValidator, WithJsonSchema, model_validator
from pydantic.alias_generators import to_camel
from pydantic.config import JsonDict
from pydantic_core import PydanticCustomError

from engine import duration

T = TypeVar("T")

QUANTITY: Final = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"

REQUIRED: Final = "x-required"
"""Marks a field that the CRD requires although the model has a default for it; it goes no further than `crds`."""
PUBLISHED: Final = "x-published"
"""Names a type of Kubernetes' own whose schema stands here in the CRD; it goes no further than `crds`."""
RULES: Final = "x-kubernetes-validations"
LIST_TYPE: Final = "x-kubernetes-list-type"
LIST_KEYS: Final = "x-kubernetes-list-map-keys"
OPAQUE: Final[JsonDict] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
"""The schema of an object whose inside belongs to somebody else: it passes through whole, whatever is added to it."""

ATOMIC: Final[JsonDict] = {LIST_TYPE: "atomic"}
BY_NAME: Final[JsonDict] = {LIST_TYPE: "map", LIST_KEYS: ["name"]}


class Wire(BaseModel):
    """A model of travelling JSON: exact keys, exact types, nothing unknown, never changed."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True)

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, value: Any) -> Any:
        """A null is as good as nothing: so the server takes it, and so do manifests (`env:` with nothing behind it)."""
        return {key: part for key, part in value.items() if part is not None} if isinstance(value, Mapping) else value

    def body(self) -> dict[str, Any]:
        """The JSON it was read from: only what was said, no default added."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True)


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule across the fields of one object: the server checks `cel`, we check `holds`, and both say `message` about `field`."""

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


def checked(model: Wire, rules: tuple[Rule, ...]) -> None:
    """Raise for the first rule that the model breaks; rules about creation alone are left to admission, which knows what was before."""
    for rule in rules:
        if not rule.on_create_only and not rule.holds(model):
            raise broken(rule.message, rule.reason, tuple(part for part in rule.field.split(".") if part))


def broken(message: str, reason: str, field: tuple[str | int, ...] = (), **value: Any) -> PydanticCustomError:
    """The error of a broken rule: about which field below the object, why in a word of Kubernetes, and with which `value` if that helps."""
    return PydanticCustomError("rule", "{message}", {"message": message, "reason": reason, "field": field, **value})


def rules(*entries: Rule) -> dict[str, Any]:
    """The rules as vendor keys of a schema."""
    return {RULES: [entry.schema() for entry in entries]}


def required(default: Any) -> Any:
    """A field that the CRD both requires and defaults, so that it is always there to be read."""
    return Field(default=default, json_schema_extra={REQUIRED: True})


def silent(default: Any, *, required: bool = False) -> Any:
    """A field for which we have a default, but the CRD has none: the server adds nothing."""
    return Field(default=default, json_schema_extra={"default": None, REQUIRED: required})


def _whole_number(bits: int) -> Callable[[int], int]:
    def within(value: int) -> int:
        if not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
            raise PydanticCustomError("number", "must fit {bits} bits", {"bits": bits})
        return value

    return within


def _span(text: str) -> str:
    try:
        duration.nanoseconds(text)
    except ValueError as error:
        raise PydanticCustomError("duration", "must be a duration such as 30s, 4h or 1h30m") from error
    return text


def _untouched(value: Any) -> Any:
    if not isinstance(value, Mapping):
        raise PydanticCustomError("dict_type", "must be an object")
    return value


def _quantity(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | str) or not re.fullmatch(QUANTITY, str(value)):
        raise PydanticCustomError("quantity", "must be a quantity such as 2, 500m or 4Gi")
    return value


Int32 = Annotated[int, AfterValidator(_whole_number(32)), WithJsonSchema({"type": "integer", "format": "int32"})]
Int64 = Annotated[int, AfterValidator(_whole_number(64)), WithJsonSchema({"type": "integer", "format": "int64"})]
Timestamp = Annotated[str, WithJsonSchema({"type": "string", "format": "date-time"})]
"""A moment, in RFC 3339."""
Duration = Annotated[str, AfterValidator(_span)]
"""A span of time in Go's spelling; `engine.duration` reads it."""
Opaque = Annotated[Mapping[str, Any], PlainValidator(_untouched), WithJsonSchema(OPAQUE)]
"""An object handed through as it is: the very one that was given."""
Quantity = Annotated[
    int | str,
    PlainValidator(_quantity),
    WithJsonSchema({"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}], "pattern": QUANTITY}),
]
"""An amount such as 2, 500m or 4Gi."""
Seq = Annotated[tuple[T, ...], Field(strict=False)]
"""A JSON array. Lax only about being a list or a tuple; what is in it is as strict as anything."""
