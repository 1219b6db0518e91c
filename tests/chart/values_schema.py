"""The schema of the values: the types of the defaults, what else is allowed, and the operator configuration as the engine reads it."""

from collections.abc import Mapping
from typing import Any, Final

from resources.install.modes import AdmissionMode, Mode
from resources.schema.formats import LABEL, LONGEST_LABEL
from resources.settings import GANG_VALUES, Settings
from tests.chart.foreign_values import allow_foreign_values

TEXTS: Final = {"type": "object", "additionalProperties": {"type": "string"}}
OBJECT: Final = {"type": "object"}
OBJECTS: Final = {"type": "array", "items": {"type": "object"}}
NAMED: Final = {"type": "array", "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}}
COUNT: Final = {"type": "integer", "minimum": 0}

CHOSEN: Final[Mapping[str, Any]] = {
    "mode": {"enum": [str(mode) for mode in Mode]},
    "admission": {"enum": ["", *(str(mode) for mode in AdmissionMode)]},
    "namespaces": {"type": "array", "items": {"type": "string", "pattern": f"^{LABEL}$", "maxLength": LONGEST_LABEL}},
    "replicaCount": COUNT,
    "scheduler.gangs": {"enum": GANG_VALUES},
    "shards": {"type": "integer", "minimum": 1, "maximum": 100},
    "image.repository": {"type": "string", "minLength": 1},
    "initImage.repository": {"type": "string", "minLength": 1},
    "cronJob.timeout": {"type": "string", "pattern": r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"},
    "image.pullPolicy": {"enum": ["Always", "IfNotPresent", "Never"]},
    "imagePullSecrets": NAMED,
    "deployment.env": NAMED,
    "service.type": {"enum": ["ClusterIP", "NodePort", "LoadBalancer"]},
    "podDisruptionBudget.maxUnavailable": {"anyOf": [COUNT, {"type": "string", "pattern": "^[0-9]+%$"}]},
}
"""Value -> its schema, where the default does not say it."""
OPEN: Final = frozenset({"resources", "podSecurityContext", "securityContext", "affinity"})
"""Values that are passed to Kubernetes as they are."""


def values_schema(values: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of `values.yaml`. Unknown values are refused everywhere except where Kubernetes judges them."""
    schema = _of_section({key: value for key, value in values.items() if key != "config"}, "")
    schema["properties"]["config"] = configuration_schema()
    # A value for charts that contain this one.
    schema["properties"]["global"] = OBJECT
    allow_foreign_values(schema)
    return {"$schema": "http://json-schema.org/draft-07/schema#", **schema}


def _of_section(section: Mapping[str, Any], path: str) -> dict[str, Any]:
    properties = {key: _of_value(value, f"{path}{key}") for key, value in section.items()}
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _of_value(value: Any, path: str) -> Any:
    if path in CHOSEN:
        return CHOSEN[path]
    if path in OPEN:
        return OBJECT
    if path.rpartition(".")[2] in ("labels", "annotations", "nodeSelector", "podAnnotations", "podLabels"):
        return TEXTS
    if isinstance(value, Mapping):
        return _of_section(value, f"{path}.")
    if isinstance(value, list):
        return OBJECTS
    return {"type": {bool: "boolean", int: "integer", str: "string"}[type(value)]}


def configuration_schema() -> dict[str, Any]:
    """The schema of `config`: the fields that the engine knows, and the one that only Grove's chart has."""
    schema = Settings.model_json_schema(by_alias=True)
    definitions = schema.pop("$defs")
    result: dict[str, Any] = _inlined(schema, definitions)
    for name in ("apiVersion", "kind"):
        del result["properties"][name]
    result["properties"]["server"]["properties"]["healthProbes"]["properties"]["enable"] = {"type": "boolean"}
    return result


def _inlined(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    """The schema without references, titles and defaults, which refuses unknown fields."""
    if reference := schema.get("$ref"):
        return _inlined(definitions[reference.rpartition("/")[2]], definitions)
    result: dict[str, Any] = {}
    for key, value in schema.items():
        if key in ("title", "default", "description"):
            continue
        if key == "properties":
            result[key] = {name: _inlined(field, definitions) for name, field in value.items()}
            result["additionalProperties"] = False
        elif key in ("anyOf", "allOf"):
            result[key] = [_inlined(each, definitions) for each in value]
        else:
            result[key] = _inlined(value, definitions) if isinstance(value, Mapping) else value
    return result
