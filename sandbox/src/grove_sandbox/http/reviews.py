"""Access reviews: the question whether a user may do something. It is answered and never stored."""

from collections.abc import Mapping
from typing import Any

from grove_sandbox.http.access import Access, Action, Identity
from grove_sandbox.product import Kind

ACCESS_REVIEW = Kind("authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", namespaced=False)

_ATTRIBUTES = ("verb", "group", "resource", "subresource", "namespace", "name")


def reviewed(body: Mapping[str, Any], identity: Identity, access: Access) -> dict[str, Any]:
    """The SelfSubjectAccessReview with its verdict on what `spec` describes."""
    spec = body.get("spec") or {}
    head = {key: body[key] for key in ("kind", "apiVersion") if key in body}
    verdict = {"allowed": True} if access.allows(identity.name, _action(spec)) else {"allowed": False, "reason": "denied by the sandbox"}
    return {**head, "metadata": {}, "spec": spec, "status": verdict}


def _action(spec: Mapping[str, Any]) -> Action:
    attributes, path = spec.get("resourceAttributes") or {}, spec.get("nonResourceAttributes") or {}
    if path:
        return Action(verb=path.get("verb", ""), path=path.get("path", "/"))
    return Action(**{name: str(attributes.get(name, "")) for name in _ATTRIBUTES})
