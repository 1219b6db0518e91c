"""Manifests: sets for tests, and ways to change them."""

import copy
from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from resources.schema.published import definitions


def clique(name: str = "a", **spec: Any) -> dict[str, Any]:
    """A clique template."""
    return {"name": name, "spec": {"roleName": name, "replicas": 1, "podSpec": {"containers": [{"name": "c"}]}, **spec}}


def pcs(*cliques: dict[str, Any], **template: Any) -> dict[str, Any]:
    """A set with these cliques, by default one."""
    return {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        "metadata": {"name": "d", "namespace": "ml"},
        "spec": {"replicas": 1, "template": {"cliques": list(cliques) or [clique()], **template}},
    }


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of all values in a body, its own included."""
    entries = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(inner for key, entry in entries for inner in paths(entry, (*path, key)))]


def put(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """The body with another value at this path."""
    if not path:
        return new
    changed = copy.copy(value)
    changed[path[0]] = put(value[path[0]], path[1:], new)
    return changed


WHOLE = pcs(
    {**clique("a", autoScalingConfig={"maxReplicas": 2}), "labels": {"x": "y"}},
    podCliqueScalingGroups=[{"name": "g", "cliqueNames": ["a"]}],
    terminationDelay="1h",
    topologyConstraint={"pack": {"required": "rack"}},
)

SCALARS: Mapping[tuple[str, str], Any] = {
    ("string", ""): "x",
    ("string", "date-time"): "2026-01-02T03:04:05Z",
    ("integer", "int32"): 1,
    ("integer", "int64"): 2,
    ("boolean", ""): True,
}


def whole_pod_spec(**novel: Any) -> dict[str, Any]:
    """A pod spec with every field that Kubernetes publishes; `novel` fields are added to every object."""
    spec: dict[str, Any] = _whole(definitions()["PodSpec"], novel)
    return spec


def _whole(schema: Mapping[str, Any], novel: Mapping[str, Any]) -> Any:
    if "$ref" in schema:
        return _whole(definitions()[schema["$ref"]], novel)
    if "oneOf" in schema:
        return "500m" if {"type": "number"} in schema["oneOf"] else "http"
    if "items" in schema:
        return [_whole(schema["items"], novel), _whole(schema["items"], novel)]
    if "additionalProperties" in schema:
        return {"a.b/c": _whole(schema["additionalProperties"], novel)}
    if schema["type"] == "object":
        return {name: _whole(field, novel) for name, field in schema.get("properties", {}).items()} | dict(novel)
    return schema["enum"][0] if "enum" in schema else SCALARS[schema["type"], schema.get("format", "")]
