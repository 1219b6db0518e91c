"""Structural schemas generated from models."""

from typing import Any, Literal

import pytest
from pydantic import Field

from resources.schema.structural import structural
from resources.schema.wire import BY_NAME, Int32, Opaque, Quantity, Seq, Wire, required, silent


def of(model: type[Wire]) -> dict[str, Any]:
    """The structural schema of a model."""
    raw = model.model_json_schema()
    return structural(raw, raw.get("$defs", {}))


class Inner(Wire):
    """The inner one."""

    name: str


class Outer(Wire):
    inner: Inner | None = None
    inners: Seq[Inner] = Field(default=(), json_schema_extra=BY_NAME)
    counted: Int32 = required(0)
    unspoken: Int32 = silent(1, required=True)
    chosen: Literal["a"] = "a"
    labels: dict[str, str] = {}
    amount: Quantity | None = None
    whole: Opaque


class Circle(Wire):
    again: Seq["Circle"] = ()


class Torn(Wire):
    either: int | str


class Nameless(Wire):
    name: str = ""


class Keyed(Wire):
    entries: Seq[Nameless] = Field(default=(), json_schema_extra=BY_NAME)


def test_references_are_resolved_and_null_types_removed() -> None:
    inner = {"type": "object", "description": "The inner one.", "properties": {"name": {"type": "string"}}, "required": ["name"]}

    assert of(Outer)["properties"]["inner"] == inner
    assert of(Outer)["properties"]["inners"] == {"type": "array", "items": inner, **BY_NAME}


def test_a_default_can_be_required_or_left_out_of_the_crd() -> None:
    schema = of(Outer)

    assert schema["properties"]["counted"] == {"type": "integer", "format": "int32", "default": 0}
    assert schema["properties"]["unspoken"] == {"type": "integer", "format": "int32"}
    assert schema["required"] == ["counted", "unspoken", "whole"]


def test_a_literal_is_an_enum() -> None:
    assert of(Outer)["properties"]["chosen"] == {"type": "string", "enum": ["a"], "default": "a"}


def test_maps_quantities_and_opaque_objects_keep_their_schema() -> None:
    properties = of(Outer)["properties"]

    assert properties["labels"] == {"type": "object", "additionalProperties": {"type": "string"}}
    assert properties["amount"]["x-kubernetes-int-or-string"] is True
    assert properties["amount"]["anyOf"] == [{"type": "integer"}, {"type": "string"}]
    assert properties["whole"] == {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


@pytest.mark.parametrize(
    ("model", "message"), [(Circle, "contains itself"), (Torn, "a union of 2 types"), (Keyed, "list-map key name may be missing")]
)
def test_a_model_that_a_crd_cannot_express_is_rejected(model: type[Wire], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        of(model)
