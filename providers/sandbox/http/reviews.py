"""Reviews: questions about oneself and what one may do, answered and never stored."""

from collections.abc import Callable, Mapping
from typing import Any

from providers.sandbox.http.access import ANY, Access, Act, Identity
from providers.sandbox.http.discovery import REVIEWS
from providers.sandbox.http.routes import Route

Review = Callable[[Mapping[str, Any], Identity, Access], dict[str, Any]]


def review_of(route: Route) -> Review | None:
    """How the question at that address is answered; None where there is no such question."""
    return _REVIEWS.get((route.group, route.version, route.plural))


def _who_am_i(body: Mapping[str, Any], identity: Identity, access: Access) -> dict[str, Any]:
    return {"status": {"userInfo": {"username": identity.name, "uid": identity.name, "groups": list(identity.groups)}}}


def _may_i(body: Mapping[str, Any], identity: Identity, access: Access) -> dict[str, Any]:
    return {"spec": body.get("spec", {}), "status": _verdict(access, identity.name, _asked(body.get("spec") or {}))}


def _may_they(body: Mapping[str, Any], identity: Identity, access: Access) -> dict[str, Any]:
    spec = body.get("spec") or {}
    return {"spec": spec, "status": _verdict(access, str(spec.get("user", "")), _asked(spec))}


def _what_may_i(body: Mapping[str, Any], identity: Identity, access: Access) -> dict[str, Any]:
    """Everything: single denials cannot be told in rules that only grant, so a list with denials calls itself incomplete."""
    denied = any(denial.user in (ANY, identity.name) for denial in access.denials)
    everything = {
        "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
        "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
        "incomplete": denied,
    }
    return {"spec": body.get("spec", {}), "status": everything}


def _asked(spec: Mapping[str, Any]) -> Act:
    resource, path = spec.get("resourceAttributes") or {}, spec.get("nonResourceAttributes") or {}
    if path:
        return Act(verb=path.get("verb", ""), path=path.get("path", "/"))
    names = ("verb", "group", "resource", "subresource", "namespace", "name")
    return Act(**{name: str(resource.get(name, "")) for name in names})


def _verdict(access: Access, user: str, act: Act) -> dict[str, Any]:
    return {"allowed": True} if access.allows(user, act) else {"allowed": False, "reason": "denied by the sandbox's configuration"}


_BY_KIND: Mapping[str, Review] = {
    "SelfSubjectReview": _who_am_i,
    "SelfSubjectAccessReview": _may_i,
    "SelfSubjectRulesReview": _what_may_i,
    "SubjectAccessReview": _may_they,
}
_REVIEWS = {(kind.group, kind.version, kind.plural): _BY_KIND[kind.name] for kind in REVIEWS}
