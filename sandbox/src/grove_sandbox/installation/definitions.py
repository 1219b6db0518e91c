"""Definitions: the driver's CustomResourceDefinitions, as it installs them."""

from collections.abc import Mapping
from typing import Any, Final

from grove_sandbox.installation.custom_kind import TEXT, Schema, definition, object_of
from grove_sandbox.product import COMPUTE_DOMAIN, COMPUTE_DOMAIN_CLIQUE

IMMUTABLE: Final = "A computeDomain.spec is immutable"

_READY: Final[Schema] = {"type": "string", "default": "NotReady", "enum": ["Ready", "NotReady"]}


def definitions() -> tuple[Mapping[str, Any], ...]:
    """The definitions of ComputeDomain and ComputeDomainClique, without short names, categories or columns."""
    domain = object_of({"spec": _SPEC, "status": _STATUS})
    clique = object_of({"daemons": _nodes("nodeName")})
    return definition(COMPUTE_DOMAIN, domain), definition(COMPUTE_DOMAIN_CLIQUE, clique)


def _nodes(key: str) -> Schema:
    """A list of daemons, one for each node; `key` is the field that holds the node's name."""
    fields = {key: TEXT, "ipAddress": TEXT, "cliqueID": TEXT, "index": {"type": "integer"}, "status": _READY}
    items = object_of(fields, ("cliqueID", "ipAddress", key))
    return {"type": "array", "items": items, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key]}


_CHANNEL: Final = object_of(
    {
        "allocationMode": {"type": "string", "default": "Single", "enum": ["All", "Single"]},
        "resourceClaimTemplate": object_of({"name": TEXT}, ("name",)),
    },
    ("resourceClaimTemplate",),
)
_SPEC: Final = object_of(
    {"numNodes": {"type": "integer", "default": 0, "minimum": 0}, "channel": _CHANNEL},
    ("channel",),
    **{"x-kubernetes-validations": [{"rule": "self == oldSelf", "message": IMMUTABLE}]},
)
_STATUS: Final = object_of({"status": _READY, "nodes": _nodes("name")}, ("status",))
