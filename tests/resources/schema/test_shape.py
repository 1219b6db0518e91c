"""The shape of a model is that of its CRD."""

from typing import Any

import pytest

from resources.schema.crds import DEFINITIONS, Definition, schema
from resources.schema.structural import shape


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda definition: definition.kind.name)
def test_fields_and_defaults_are_those_of_the_crd(definition: Definition) -> None:
    assert reduced(shape(definition.model)) == reduced(schema(definition.model))


def reduced(schema: Any) -> Any:
    """Only what a shape promises."""
    kept = {key: schema[key] for key in ("default",) if key in schema}
    kept |= {key: reduced(schema[key]) for key in ("items", "additionalProperties") if key in schema}
    return kept | {"properties": {name: reduced(field) for name, field in schema["properties"].items()}} if "properties" in schema else kept
