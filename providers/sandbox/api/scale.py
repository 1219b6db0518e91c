"""Scale: the subresource that shows, and changes, nothing of an object but how many."""

from collections.abc import Mapping
from typing import Any

from engine.ids import Kind
from providers.sandbox.api import faces
from providers.sandbox.api.core import Core
from providers.sandbox.api.request import Request
from providers.sandbox.api.store import Stored
from providers.sandbox.kinds.served import ScalePaths, Served
from providers.sandbox.types import causes, gotext, status
from providers.sandbox.types.status import Cause

Body = Mapping[str, Any]
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
        "spec": {"replicas": replicas} if (replicas := _at(body, paths.replicas)) else {},
        "status": {"replicas": _at(body, paths.observed) or 0, **({"selector": selector} if selector else {})},
    }


def changed(core: Core, request: Request, scale: Any) -> Body:
    """The object with the replicas that a Scale asks for. Raises 400, 409, 422."""
    live: Stored = core.stored(request)
    served, body = request.served, faces.shown(request.served, live)[0]
    if not isinstance(scale, Mapping) or scale.get("kind") != "Scale":
        raise status.bad_request("the object provided is unrecognized (must be of type Scale)")
    for key, wanted_type in (("spec", "v1.ScaleSpec"), ("metadata", "v1.ObjectMeta")):
        if not isinstance(scale.get(key), Mapping | None):
            raise _mistyped(scale[key], f"Scale.{key}", wanted_type)
    wanted = (scale.get("spec") or {}).get("replicas") or 0
    if isinstance(wanted, bool) or not isinstance(wanted, int) or abs(wanted) >= 2**31:
        raise _mistyped(wanted, "ScaleSpec.spec.replicas", "int32")
    if wanted < 0 and not served.custom:
        found = [causes.invalid("spec.replicas", wanted, "must be greater than or equal to 0")]
        raise status.invalid(_SCALE, request.name, found)
    given = (scale.get("metadata") or {}).get("resourceVersion")
    if not isinstance(given, str | None):
        raise _mistyped(given, "ObjectMeta.metadata.resourceVersion", "string")
    made = {**body, "metadata": {**body["metadata"], **({"resourceVersion": given} if given else {})}}
    return _set(made, _paths(served).replicas.strip(".").split("."), wanted)


def _mistyped(value: Any, field: str, wanted: str) -> status.StatusError:
    why = f"json: cannot unmarshal {gotext.word(value)} into Go struct field {field} of type {wanted}"
    return status.bad_request(f'Scale in version "v1" cannot be handled as a Scale: {why}')


_GO_TYPES: tuple[tuple[Any, str], ...] = (
    (bool, "bool"),
    (str, "string"),
    (int, "int64"),
    (float, "float64"),
    (Mapping, "map[string]interface {}"),
    (list, "[]interface {}"),
)


def faults(served: Served, body: Body) -> list[Cause]:
    """What keeps a custom object from being scaled: a count that is none, or less than nothing."""
    if served.scale is None:
        return []
    found = []
    for path in (served.scale.replicas, served.scale.observed):
        wrong = _count_fault(body, path)
        if wrong is not None:
            found.append(causes.invalid(path, *wrong))
    return found


def _count_fault(body: Any, path: str) -> tuple[int, str] | None:
    for key in path.strip(".").split("."):
        if not isinstance(body, Mapping):
            return 0, f"{path} accessor error: {body} is of the type {_go_type(body)}, expected map[string]interface{{}}"
        if key not in body:
            return None
        body = body[key]
    if isinstance(body, bool) or not isinstance(body, int):
        return 0, f"{path} accessor error: {body} is of the type {_go_type(body)}, expected int64"
    return (body, "should be a non-negative integer") if body < 0 else None


def _go_type(value: Any) -> str:
    return next((name for type_, name in _GO_TYPES if isinstance(value, type_)), "<nil>")


def _paths(served: Served) -> ScalePaths:
    if served.scale is None:
        raise status.no_such_resource()
    return served.scale


def _selector(served: Served, body: Body, paths: ScalePaths) -> str:
    if served.custom:
        return str(_at(body, paths.selector) or "") if paths.selector else ""
    labels = ((body["spec"].get("selector") or {}).get("matchLabels")) or {}
    return ",".join(f"{key}={labels[key]}" for key in sorted(labels))


def _at(body: Any, path: str) -> Any:
    for key in path.strip(".").split("."):
        body = body.get(key) if isinstance(body, Mapping) else None
    return body


def _set(body: Body, path: list[str], value: int) -> dict[str, Any]:
    rest = path[1:]
    return {**body, path[0]: _set(body.get(path[0]) or {}, rest, value) if rest else value}
