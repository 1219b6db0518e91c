"""Subresources with POST: binding and eviction of pods, tokens of service accounts."""

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from grove_sandbox.api import deleting
from grove_sandbox.api.core import Core
from grove_sandbox.api.options import check_deletion
from grove_sandbox.api.request import Answer, Deletion, Request, answer
from grove_sandbox.apply import managers
from grove_sandbox.product import Body
from grove_sandbox.types import causes, fields, go_format, status

_SUCCESS = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
_EVICTED = {
    "type": "DisruptionTarget",
    "status": "True",
    "lastProbeTime": None,
    "reason": "EvictionByEvictionAPI",
    "message": "Eviction API: evicting",
}
_TOKEN_SECONDS, _LEAST_SECONDS, _MOST_SECONDS = 3600, 600, 2**32
_TOKEN_VERSION = "authentication.k8s.io/v1"


def post(core: Core, request: Request, body: Body) -> Answer:
    """POST to a subresource. Raises 404 if there is none."""
    handle = _HANDLERS.get((request.served.kind.plural, request.subresource))
    if handle is None or request.subresource not in request.served.subresources:
        raise status.no_such_resource()
    return handle(core, request, body)


def _bind(core: Core, request: Request, binding: Body) -> Answer:
    """Assign a pod to a node. Raises 409 if it has a node, has scheduling gates or is being deleted."""
    live = core.stored(request)
    pod, node = live.body, _part(binding, "target", "Binding.target", "v1.ObjectReference").get("name")
    if node is not None and not isinstance(node, str):
        raise _mistyped("Binding", go_format.unmarshal_fault(node, "ObjectReference.target.name", "string"))
    kind = request.served.kind
    why = ""
    if not node:
        raise status.bad_request("target.name: Required value")
    if "deletionTimestamp" in pod["metadata"]:
        why = f"pod {request.name} is being deleted, cannot be assigned to a host"
    elif bound := pod["spec"].get("nodeName"):
        why = f'pod {request.name} is already assigned to node "{bound}"'
    elif pod["spec"].get("schedulingGates"):
        why = f"pod {request.name} has non-empty .spec.schedulingGates"
    if why:
        raise status.conflict(replace(kind, plural="pods/binding"), request.name, why)
    conditions = [condition for condition in pod["status"].get("conditions") or () if condition["type"] != "PodScheduled"]
    scheduled = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": core.now()}
    changed = {
        **pod,
        "spec": {**pod["spec"], "nodeName": node},
        "status": {**pod["status"], "conditions": [*conditions, scheduled]},
    }
    if not request.dry_run:
        core.store.write(request.served.resource, "MODIFIED", changed)
    return answer(201, _SUCCESS)


def _evict(core: Core, request: Request, eviction: Body) -> Answer:
    """Delete a pod, with a condition in its status. Disruption budgets are ignored: no controller maintains their status."""
    pod = core.stored(request).body
    options = _part(eviction, "deleteOptions", "Eviction.deleteOptions", "v1.DeleteOptions")
    check_deletion(options, "deleteOptions.")
    conditions = [*(pod["status"].get("conditions") or ()), {**_EVICTED, "lastTransitionTime": core.now()}]
    if not request.dry_run:
        core.store.write(request.served.resource, "MODIFIED", {**pod, "status": {**pod["status"], "conditions": conditions}})
        deleting.delete(core, request, Deletion(grace=options.get("gracePeriodSeconds")))
    return answer(201, _SUCCESS)


def _token(core: Core, request: Request, body: Body) -> Answer:
    """A token of a service account: random text, which the sandbox does not accept as a login."""
    account = core.stored(request)
    defaults = {"audiences": ["https://kubernetes.default.svc"], "boundObjectRef": None}
    given = _part(body, "spec", "TokenRequest.spec", "v1.TokenRequestSpec")
    seconds = given.get("expirationSeconds", _TOKEN_SECONDS)
    if isinstance(seconds, bool) or not isinstance(seconds, int) or not _LEAST_SECONDS <= seconds <= _MOST_SECONDS:
        raise status.bad_request(f"spec.expirationSeconds: Invalid value: {causes.shown(seconds)}: between 10 minutes and 2^32 seconds")
    spec = {**defaults, **given, "expirationSeconds": seconds}
    manager = managers.Manager(request.manager or "unknown", "Update", _TOKEN_VERSION, "token")
    owned = {manager: fields.of_paths("spec.expirationSeconds")}
    review = {
        "kind": "TokenRequest",
        "apiVersion": _TOKEN_VERSION,
        "metadata": {
            "name": request.name,
            "namespace": request.namespace,
            "uid": account.metadata["uid"],
            "creationTimestamp": core.now(),
            "managedFields": managers.Managed(owned, {manager: core.now()}).entries(),
        },
        "spec": spec,
        "status": {"token": f"sandbox.{core.new_uid()}", "expirationTimestamp": core.now(after=float(spec["expirationSeconds"]))},
    }
    return answer(201, review)


def _part(body: Body, key: str, field: str, type_: str) -> Body:
    """The object below a key of the body, or an empty one. Raises 400 for another value."""
    part = body.get(key)
    if not isinstance(part, Mapping | None):
        kind = field.partition(".")[0]
        raise _mistyped(kind, go_format.unmarshal_fault(part, field, type_))
    return part or {}


def _mistyped(kind: str, why: str) -> status.StatusError:
    return status.bad_request(f'{kind} in version "v1" cannot be handled as a {kind}: {why}')


_HANDLERS: dict[tuple[str, str], Callable[[Core, Request, Body], Answer]] = {
    ("pods", "binding"): _bind,
    ("pods", "eviction"): _evict,
    ("serviceaccounts", "token"): _token,
}
