"""Claimed: which ResourceClaims a pod uses, and who may use a claim."""

from collections.abc import Mapping
from typing import Any

from providers.sandbox.actors.body import Body, Key, status_of, uid_of


def asks_for_claims(pod: Body) -> bool:
    """Whether the pod needs any claim."""
    return bool(pod["spec"].get("resourceClaims"))


def claims_of(pod: Body | None) -> tuple[Key, ...]:
    """The claims that the pod uses, as far as their names are known."""
    return tuple(key for key in claims_by_name(pod).values() if key is not None)


def claims_by_name(pod: Body | None) -> Mapping[str, Key | None]:
    """The claims that the pod uses by the names that its spec has for them; None for one that is yet to be made for it."""
    if pod is None or not asks_for_claims(pod):
        return {}
    namespace = pod["metadata"]["namespace"]
    made = {one["name"]: one.get("resourceClaimName") for one in status_of(pod).get("resourceClaimStatuses") or ()}
    found = {one["name"]: one.get("resourceClaimName") or made.get(one["name"]) for one in pod["spec"]["resourceClaims"]}
    return {name: (namespace, claim) if claim else None for name, claim in found.items()}


def is_allocated(claim: Body) -> bool:
    """Whether devices have been found for it."""
    return bool(status_of(claim).get("allocation"))


def is_reserved_for(claim: Body, pod: Body) -> bool:
    """Whether the pod is among those that use it."""
    return any(one["uid"] == uid_of(pod) for one in status_of(claim).get("reservedFor") or ())


def reservation(pod: Body) -> dict[str, Any]:
    """The entry in `reservedFor` that names the pod."""
    return {"resource": "pods", "name": pod["metadata"]["name"], "uid": uid_of(pod)}


def users_of(claim: Body | None) -> tuple[Key, ...]:
    """The pods that the claim is reserved for."""
    if claim is None:
        return ()
    namespace = claim["metadata"]["namespace"]
    return tuple((namespace, one["name"]) for one in status_of(claim).get("reservedFor") or () if one["resource"] == "pods")
