"""Subresources that are posted to: a pod is bound to a node or evicted from it, an account is given a token."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from providers.sandbox.api import deleting
from providers.sandbox.api.core import Core
from providers.sandbox.api.options import check_deletion
from providers.sandbox.api.request import Answer, Deletion, Request, answer
from providers.sandbox.apply import managers
from providers.sandbox.types import causes, fields, gotext, status

Body = Mapping[str, Any]
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
    """POST to a subresource. Raises 404 where there is none."""
    handle = _HANDLERS.get((request.served.kind.plural, request.subresource))
    if handle is None or request.subresource not in request.served.subresources:
        raise status.no_such_resource()
    return handle(core, request, body)


def _bind(core: Core, request: Request, binding: Body) -> Answer:
    """Put a pod on a node; only once, and not while it is gated."""
    live = core.stored(request)
    pod, node = live.body, _part(binding, "target", "Binding.target", "v1.ObjectReference").get("name")
    if node is not None and not isinstance(node, str):
        raise _mistyped(
            "Binding", f"json: cannot unmarshal {gotext.word(node)} into Go struct field ObjectReference.target.name of type string"
        )
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
    conditions = [one for one in pod["status"].get("conditions") or () if one["type"] != "PodScheduled"]
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
    """Delete a pod, and say in its status why. Disruption budgets have no say: nobody here keeps count for them."""
    pod = core.stored(request).body
    options = _part(eviction, "deleteOptions", "Eviction.deleteOptions", "v1.DeleteOptions")
    check_deletion(options, "deleteOptions.")
    conditions = [*(pod["status"].get("conditions") or ()), {**_EVICTED, "lastTransitionTime": core.now()}]
    if not request.dry_run:
        core.store.write(request.served.resource, "MODIFIED", {**pod, "status": {**pod["status"], "conditions": conditions}})
        deleting.delete(core, request, Deletion(grace=options.get("gracePeriodSeconds")))
    return answer(201, _SUCCESS)


def _token(core: Core, request: Request, body: Body) -> Answer:
    """A token for a service account: opaque here, because nothing in the sandbox reads it."""
    account = core.stored(request)
    asked = {"audiences": ["https://kubernetes.default.svc"], "expirationSeconds": _TOKEN_SECONDS, "boundObjectRef": None}
    wanted = _part(body, "spec", "TokenRequest.spec", "v1.TokenRequestSpec")
    seconds = wanted.get("expirationSeconds", _TOKEN_SECONDS)
    if isinstance(seconds, bool) or not isinstance(seconds, int) or not _LEAST_SECONDS <= seconds <= _MOST_SECONDS:
        raise status.bad_request(f"spec.expirationSeconds: Invalid value: {causes.shown(seconds)}: between 10 minutes and 2^32 seconds")
    spec = {**asked, **wanted, "expirationSeconds": seconds}
    manager = managers.Manager(request.manager or "unknown", "Update", _TOKEN_VERSION, "token")
    owned = {manager: fields.of_paths("spec.expirationSeconds")}
    made = {
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
    return answer(201, made)


def _part(body: Body, key: str, field: str, wanted: str) -> Body:
    """An object within what was posted; empty where it is not there. Raises 400."""
    part = body.get(key)
    if not isinstance(part, Mapping | None):
        kind = field.partition(".")[0]
        raise _mistyped(kind, f"json: cannot unmarshal {gotext.word(part)} into Go struct field {field} of type {wanted}")
    return part or {}


def _mistyped(kind: str, why: str) -> status.StatusError:
    return status.bad_request(f'{kind} in version "v1" cannot be handled as a {kind}: {why}')


_HANDLERS: dict[tuple[str, str], Callable[[Core, Request, Body], Answer]] = {
    ("pods", "binding"): _bind,
    ("pods", "eviction"): _evict,
    ("serviceaccounts", "token"): _token,
}
