"""The recorded types of pod specs are types only, and equal those of the server."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane.cluster import ControlPlane, Missing, running
from tests.controlplane.fixtures import skip_unless_recorded
from tests.controlplane.pod_defaults import recorded
from tests.controlplane.pod_spec import DEFAULTS_FILE, FILE, ROOT, asked, written
from tests.controlplane.pod_trials import FLAGS

WORDS = {"type", "format", "enum", "required", "oneOf", "items", "additionalProperties", "properties", "$ref"}
RECORDED: dict[str, Any] = json.loads(FILE.read_text(encoding="ascii"))

SCHEMAS: dict[str, Any] = {
    ROOT: {
        "description": "PodSpec is a description of a pod.",
        "type": "object",
        "required": ["b", "a"],
        "properties": {
            "b": {"description": "Prose.", "default": {}, "allOf": [{"$ref": "#/components/schemas/io.k8s.B"}]},
            "a": {
                "type": "array",
                "items": {"default": "", "type": "string"},
                "x-kubernetes-list-type": "map",
                "x-kubernetes-patch-merge-key": "name",
            },
            "description": {"type": "string", "description": "A field of that name is no prose."},
        },
    },
    "io.k8s.B": {"oneOf": [{"type": "string"}, {"type": "number"}]},
    "io.k8s.Unasked": {"type": "string"},
}


def schemas(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """All schemas within a schema."""
    yield schema
    for inner in (*schema.get("properties", {}).values(), *(schema[key] for key in ("items", "additionalProperties") if key in schema)):
        yield from schemas(inner)


def test_types_are_written_down_without_a_word_about_them() -> None:
    text = written(SCHEMAS, "v1.0.0")

    assert json.loads(text) == {
        "release": "v1.0.0",
        "definitions": {
            "PodSpec": {
                "type": "object",
                "required": ["a", "b"],
                "properties": {
                    "a": {"type": "array", "items": {"type": "string"}},
                    "b": {"$ref": "B"},
                    "description": {"type": "string"},
                },
            },
            "B": {"oneOf": [{"type": "string"}, {"type": "number"}]},
        },
    }
    assert len(text.splitlines()) == 4


def test_two_types_of_one_name_are_not_taken_for_one() -> None:
    twin = {**SCHEMAS, "io.k8s.B": {"type": "object", "properties": {"x": {"$ref": "#/components/schemas/com.example.PodSpec"}}}}

    with pytest.raises(ValueError, match="the same last word"):
        written({**twin, "com.example.PodSpec": {"type": "object"}}, "")


def test_the_record_holds_types_alone_and_every_one_that_it_speaks_of() -> None:
    definitions = RECORDED["definitions"]
    everything = [schema for definition in definitions.values() for schema in schemas(definition)]

    assert {word for schema in everything for word in schema} == WORDS
    assert {schema["$ref"] for schema in everything if "$ref" in schema} == definitions.keys() - {"PodSpec"}


@pytest.mark.e2e
def test_the_record_is_what_the_server_publishes(api_server: ControlPlane) -> None:
    skip_unless_recorded(api_server)
    schemas = asked(api_server, "/openapi/v3/api/v1")["components"]["schemas"]

    assert written(schemas, RECORDED["release"]) == FILE.read_text(encoding="ascii")


@pytest.mark.e2e
def test_recorded_defaults_are_those_of_a_server(tmp_path: Path) -> None:
    try:
        with running(tmp_path, flags=FLAGS) as plane:
            skip_unless_recorded(plane)

            assert recorded(plane, RECORDED["release"]) == DEFAULTS_FILE.read_text(encoding="ascii")
    except Missing as missing:
        pytest.skip(str(missing))
