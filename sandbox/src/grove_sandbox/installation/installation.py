"""Installation: the objects that exist when the driver has been installed, before any domain is created."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from grove_sandbox.installation.definitions import definitions
from grove_sandbox.installation.kinds import ACCOUNT, CHART_LABELS, CONTROLLER, CONTROLLER_LABELS, DAEMON_CLASS
from grove_sandbox.product import CHANNEL_CLASS, CRD, DEVICE_CLASS, DRIVER, NAMESPACE, RESOURCE_SLICE, SERVICE_ACCOUNT, Kind

Body = Mapping[str, Any]

NAMESPACE_OF_DRIVER: Final = "dra-driver-nvidia-gpu"

_ATTRIBUTES: Final = f"device.attributes['{DRIVER}']"
_CHANNELS: Final = f"device.driver == '{DRIVER}' && {_ATTRIBUTES}.type == 'channel' && {_ATTRIBUTES}.id == 0"
_DAEMONS: Final = f"device.driver == '{DRIVER}' && {_ATTRIBUTES}.type == 'daemon'"


def installation(namespace: str = NAMESPACE_OF_DRIVER, nodes: Iterable[str] = ()) -> Iterable[tuple[Kind, Body]]:
    """All objects in the order in which they can be created; the ResourceSlices of these nodes last."""
    for definition in definitions():
        yield CRD, definition
    yield NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    yield SERVICE_ACCOUNT, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT, "namespace": namespace}}
    yield DEVICE_CLASS, _device_class(CHANNEL_CLASS, _CHANNELS)
    yield DEVICE_CLASS, _device_class(DAEMON_CLASS, _DAEMONS)
    for node in nodes:
        yield RESOURCE_SLICE, slice_of(node)


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
    return {"apiVersion": DEVICE_CLASS.api_version, "kind": DEVICE_CLASS.name, "metadata": {"name": name}, "spec": spec}


def slice_name(node: str) -> str:
    """The name of the ResourceSlice of a node."""
    return f"{node}-{DRIVER}"


def slice_of(node: str, uid: str = "") -> Body:
    """The ResourceSlice of a node: one channel and one daemon. It is owned by the node if the node's uid is given."""
    owner = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid, "controller": True}
    metadata = {"name": slice_name(node)} | ({"ownerReferences": [owner]} if uid else {})
    spec = {
        "driver": DRIVER,
        "nodeName": node,
        "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
        "devices": [_device("channel"), _device("daemon")],
    }
    return {"apiVersion": RESOURCE_SLICE.api_version, "kind": RESOURCE_SLICE.name, "metadata": metadata, "spec": spec}


def _device(type_: str) -> Body:
    return {"name": f"{type_}-0", "attributes": {"type": {"string": type_}, "id": {"int": 0}}}
