"""Scale: the subresource with the number of replicas of an object."""

from collections.abc import Mapping
from typing import Any

from grove_sandbox.api import conversion
from grove_sandbox.api.core import Core
from grove_sandbox.api.request import Request
from grove_sandbox.api.store import Stored
from grove_sandbox.kinds.served import ScalePaths, Served
from grove_sandbox.product import Body, Kind, get, overlay
from grove_sandbox.types import causes, go_format, status
from grove_sandbox.types.status import Cause

_SCALE = Kind("autoscaling", "v1", "Scale", "scales")
_METADATA = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def shown(served: Served, body: Body) -> dict[str, Any]:
    """The Scale of an object."""
    paths = _paths(served)
    selector = _selector(served, body, paths)
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: body["metadata"][key] for key in _METADATA if key in body["metadata"]},
        "spec": {"replicas": replicas} if (replicas := get(body, _path(paths.replicas))) else {},
        "status": {"replicas": get(body, _path(paths.observed)) or 0, **({"selector": selector} if selector else {})},
    }


def changed(core: Core, request: Request, scale: Any) -> Body:
    """The object with the replicas that a Scale asks for. Raises 400, 409, 422."""
    live: Stored = core.stored(request)
    served, body = request.served, conversion.converted(request.served, live)[0]
    if not isinstance(scale, Mapping) or scale.get("kind") != "Scale":
        raise status.bad_request("the object provided is unrecognized (must be of type Scale)")
    for key, type_ in (("spec", "v1.ScaleSpec"), ("metadata", "v1.ObjectMeta")):
        if not isinstance(scale.get(key), Mapping | None):
            raise _mistyped(scale[key], f"Scale.{key}", type_)
    replicas = (scale.get("spec") or {}).get("replicas") or 0
    if isinstance(replicas, bool) or not isinstance(replicas, int) or abs(replicas) >= 2**31:
        raise _mistyped(replicas, "ScaleSpec.spec.replicas", "int32")
    if replicas < 0 and not served.custom:
        fault = causes.invalid("spec.replicas", replicas, "must be greater than or equal to 0")
        raise status.invalid(_SCALE, request.name, [fault])
    revision = (scale.get("metadata") or {}).get("resourceVersion")
    if not isinstance(revision, str | None):
        raise _mistyped(revision, "ObjectMeta.metadata.resourceVersion", "string")
    scaled: Body = {}
    for key in reversed(_path(_paths(served).replicas)):
        scaled = {key: scaled or replicas}
    return overlay(body, {**scaled, **({"metadata": {"resourceVersion": revision}} if revision else {})})


def _mistyped(value: Any, field: str, type_: str) -> status.StatusError:
    why = go_format.unmarshal_fault(value, field, type_)
    return status.bad_request(f'Scale in version "v1" cannot be handled as a Scale: {why}')


def faults(served: Served, body: Body) -> list[Cause]:
    """The faults of the replica counts of a custom object: no integer, or negative."""
    if served.scale is None:
        return []
    result = []
    for path in (served.scale.replicas, served.scale.observed):
        if (fault := _count_fault(body, path)) is not None:
            result.append(causes.invalid(path, *fault))
    return result


def _count_fault(body: Any, path: str) -> tuple[int, str] | None:
    for key in _path(path):
        if not isinstance(body, Mapping):
            return 0, f"{path} accessor error: {body} is of the type {_go_type(body)}, expected map[string]interface{{}}"
        if key not in body:
            return None
        body = body[key]
    if isinstance(body, bool) or not isinstance(body, int):
        return 0, f"{path} accessor error: {body} is of the type {_go_type(body)}, expected int64"
    return (body, "should be a non-negative integer") if body < 0 else None


def _go_type(value: Any) -> str:
    return "<nil>" if value is None else go_format.go_type(value)


def _paths(served: Served) -> ScalePaths:
    if served.scale is None:
        raise status.no_such_resource()
    return served.scale


def _selector(served: Served, body: Body, paths: ScalePaths) -> str:
    if served.custom:
        return str(get(body, _path(paths.selector)) or "") if paths.selector else ""
    labels = ((body["spec"].get("selector") or {}).get("matchLabels")) or {}
    return ",".join(f"{key}={labels[key]}" for key in sorted(labels))


def _path(text: str) -> tuple[str, ...]:
    return tuple(text.strip(".").split("."))
