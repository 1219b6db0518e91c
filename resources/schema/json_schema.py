"""JSON Schemas of our kinds, for editors and kubeconform: those of the definitions, in the words of JSON Schema."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from resources.schema.crds import DEFINITIONS, NEWER, Definition, schema

DIALECT: Final = "http://json-schema.org/draft-07/schema#"
"""What kubeconform and the editors' language servers read."""
INT_OR_STRING: Final = "x-kubernetes-int-or-string"


def names() -> tuple[str, ...]:
    """The names of the kinds, in lower case as kubeconform writes them."""
    return tuple(definition.kind.name.lower() for definition in DEFINITIONS)


def definitions_of(name: str) -> tuple[Definition, ...]:
    """The definitions of a kind by its name, the oldest version first; none if there is no such kind."""
    definitions = [definition for definition in DEFINITIONS if definition.kind.name.lower() == name]
    return tuple(each for definition in definitions for each in (definition, NEWER.get(definition.kind)) if each is not None)


def json_schema(definition: Definition, *, strict: bool = False) -> dict[str, Any]:
    """The schema of a kind in one version, without references to other files. `strict`: fields that it does not name are
    refused, in pod specs too, of which an API server keeps any.
    """
    kind, raw = definition.kind, schema(definition.model)
    whole: dict[str, Any] = _translated(raw, strict)
    whole["properties"] |= {"apiVersion": {"const": kind.api_version}, "kind": {"const": kind.name}}
    whole["required"] = ["apiVersion", "kind", "metadata", *whole.get("required", ())]
    return {"$schema": DIALECT, "title": f"{kind.name} of {kind.api_version}", **whole}


def _translated(value: Mapping[str, Any], strict: bool) -> dict[str, Any]:
    """A structural schema in JSON Schema: what Kubernetes says in extensions of its own is said in keywords, or left out."""
    plain = {key: each for key, each in value.items() if not key.startswith("x-kubernetes-") and key != "nullable"}
    result = {key: _each(key, each, strict) for key, each in plain.items()}
    if value.get(INT_OR_STRING):
        result = {"anyOf": [{"type": "integer"}, {"type": "string"}], **{key: each for key, each in result.items() if key != "type"}}
    if value.get("nullable") and "type" in result:
        result["type"] = [result["type"], "null"]
    if strict and "properties" in result and "additionalProperties" not in result:
        result["additionalProperties"] = False
    return result


def _each(key: str, value: Any, strict: bool) -> Any:
    """The value of a keyword: the schemas in it translated."""
    if key == "properties":
        return {name: _translated(each, strict) for name, each in value.items()}
    if key in ("items", "additionalProperties", "not") and isinstance(value, Mapping):
        return _translated(value, strict)
    if key in ("allOf", "anyOf", "oneOf") and isinstance(value, Sequence):
        return [_translated(each, strict=False) for each in value]
    return value
