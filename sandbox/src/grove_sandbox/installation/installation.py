"""Installation: the objects that exist when the driver has been installed, before any domain is created."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from grove_sandbox.installation.custom_kind import TEXT, Schema, definition, object_of
from grove_sandbox.installation.kinds import ACCOUNT, CHART_LABELS, CONTROLLER, CONTROLLER_LABELS, DAEMON_CLASS
from grove_sandbox.product import Kind, kinds, nvidia

Body = Mapping[str, Any]

NAMESPACE_OF_DRIVER: Final = "dra-driver-nvidia-gpu"

_ATTRIBUTES: Final = f"device.attributes['{nvidia.DRIVER}']"
_CHANNELS: Final = f"device.driver == '{nvidia.DRIVER}' && {_ATTRIBUTES}.type == 'channel' && {_ATTRIBUTES}.id == 0"
_DAEMONS: Final = f"device.driver == '{nvidia.DRIVER}' && {_ATTRIBUTES}.type == 'daemon'"


def installation(namespace: str = NAMESPACE_OF_DRIVER, nodes: Iterable[str] = ()) -> Iterable[tuple[Kind, Body]]:
    """All objects in the order in which they can be created; the ResourceSlices of these nodes last."""
    for each in definitions():
        yield kinds.CRD, each
    yield kinds.NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    yield kinds.SERVICE_ACCOUNT, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT, "namespace": namespace}}
    yield kinds.DEVICE_CLASS, _device_class(nvidia.CHANNEL_CLASS, _CHANNELS)
    yield kinds.DEVICE_CLASS, _device_class(DAEMON_CLASS, _DAEMONS)
    for node in nodes:
        yield kinds.RESOURCE_SLICE, slice_of(node)


def simulated_classes() -> Iterable[tuple[Kind, Body]]:
    """DeviceClasses of GPUs that no driver publishes: a sandbox has as many of them as pods ask for."""
    for name in ("gpu.example.com", "gpu.nvidia.com"):
        yield kinds.DEVICE_CLASS, _device_class(name, f"device.driver == '{name}'")


def controller(namespace: str = NAMESPACE_OF_DRIVER) -> Body:
    """The Deployment of the driver's controller, for clusters in which no Deployment controller would create pods for it."""
    template = {"metadata": {"labels": CONTROLLER_LABELS}, "spec": {"containers": [{"name": CONTROLLER, "image": f"sandbox/{CONTROLLER}"}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": CONTROLLER, "namespace": namespace, "labels": CHART_LABELS},
        "spec": {"replicas": 1, "selector": {"matchLabels": CONTROLLER_LABELS}, "template": template},
    }


def _device_class(name: str, expression: str) -> Body:
    spec = {"selectors": [{"cel": {"expression": expression}}]}
    return {"apiVersion": kinds.DEVICE_CLASS.api_version, "kind": kinds.DEVICE_CLASS.name, "metadata": {"name": name}, "spec": spec}


def slice_name(node: str) -> str:
    """The name of the ResourceSlice of a node."""
    return f"{node}-{nvidia.DRIVER}"


def slice_of(node: str, uid: str = "") -> Body:
    """The ResourceSlice of a node: one channel and one daemon. It is owned by the node if the node's uid is given."""
    owner = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid, "controller": True}
    metadata = {"name": slice_name(node)} | ({"ownerReferences": [owner]} if uid else {})
    spec = {
        "driver": nvidia.DRIVER,
        "nodeName": node,
        "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
        "devices": [_device("channel"), _device("daemon")],
    }
    return {"apiVersion": kinds.RESOURCE_SLICE.api_version, "kind": kinds.RESOURCE_SLICE.name, "metadata": metadata, "spec": spec}


def _device(type_: str) -> Body:
    return {"name": f"{type_}-0", "attributes": {"type": {"string": type_}, "id": {"int": 0}}}


IMMUTABLE: Final = "A computeDomain.spec is immutable"

_READY: Final[Schema] = {"type": "string", "default": "NotReady", "enum": ["Ready", "NotReady"]}


def definitions() -> tuple[Mapping[str, Any], ...]:
    """The definitions of ComputeDomain and ComputeDomainClique, without short names, categories or columns."""
    domain = object_of({"spec": _SPEC, "status": _STATUS})
    clique = object_of({"daemons": _nodes("nodeName")})
    return definition(nvidia.COMPUTE_DOMAIN, domain), definition(nvidia.COMPUTE_DOMAIN_CLIQUE, clique)


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
