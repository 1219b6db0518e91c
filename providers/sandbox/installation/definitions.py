"""Definitions: the driver's CustomResourceDefinitions, as it installs them."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from engine.ids import Kind
from providers.sandbox.installation.kinds import CLIQUE, COMPUTE_DOMAIN

Schema = Mapping[str, Any]

IMMUTABLE: Final = "A computeDomain.spec is immutable"

_TEXT: Final[Schema] = {"type": "string"}
_READY: Final[Schema] = {"type": "string", "default": "NotReady", "enum": ["Ready", "NotReady"]}


def definitions() -> tuple[Mapping[str, Any], ...]:
    """The definitions of ComputeDomain and ComputeDomainClique, without short names, categories or columns."""
    domain = _object({"spec": _SPEC, "status": _STATUS}, ())
    clique = _object({"daemons": _nodes("nodeName")}, ())
    return _definition(COMPUTE_DOMAIN, domain), _definition(CLIQUE, clique)


def _definition(kind: Kind, schema: Schema) -> Mapping[str, Any]:
    complete = {**schema, "properties": {"apiVersion": _TEXT, "kind": _TEXT, "metadata": {"type": "object"}, **schema["properties"]}}
    version = {"name": kind.version, "served": True, "storage": True, "schema": {"openAPIV3Schema": complete}}
    names = {"kind": kind.name, "listKind": f"{kind.name}List", "plural": kind.plural, "singular": kind.name.lower()}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{kind.group}"},
        "spec": {
            "group": kind.group,
            "names": names,
            "scope": "Namespaced",
            "versions": [version | ({"subresources": {"status": {}}} if kind.status else {})],
        },
    }


def _object(properties: Mapping[str, Schema], required: Iterable[str], **more: Any) -> Schema:
    return {"type": "object", "properties": properties} | ({"required": [*required]} if required else {}) | more


def _nodes(key: str) -> Schema:
    """A list of daemons, one for each node; `key` is the field that holds the node's name."""
    fields = {key: _TEXT, "ipAddress": _TEXT, "cliqueID": _TEXT, "index": {"type": "integer"}, "status": _READY}
    items = _object(fields, ("cliqueID", "ipAddress", key))
    return {"type": "array", "items": items, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key]}


_CHANNEL: Final = _object(
    {
        "allocationMode": {"type": "string", "default": "Single", "enum": ["All", "Single"]},
        "resourceClaimTemplate": _object({"name": _TEXT}, ("name",)),
    },
    ("resourceClaimTemplate",),
)
_SPEC: Final = _object(
    {"numNodes": {"type": "integer", "default": 0, "minimum": 0}, "channel": _CHANNEL},
    ("channel",),
    **{"x-kubernetes-validations": [{"rule": "self == oldSelf", "message": IMMUTABLE}]},
)
_STATUS: Final = _object({"status": _READY, "nodes": _nodes("name")}, ("status",))
