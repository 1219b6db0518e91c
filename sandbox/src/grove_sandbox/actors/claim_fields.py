"""Claim fields: which claims a pod uses, what a claim requests, and what its status says of devices and pods."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from grove_sandbox.actors.body import Body, Key, status_of, uid_of


class Device(NamedTuple):
    """One device of a node."""

    driver: str
    pool: str
    name: str


def uses_claims(pod: Body) -> bool:
    """Whether the pod's spec lists any claim."""
    return bool(pod["spec"].get("resourceClaims"))


def claims_of(pod: Body | None) -> tuple[Key, ...]:
    """The claims that the pod uses, as far as they have been created."""
    return tuple(key for key in claims_by_name(pod).values() if key is not None)


def volume_claims_of(pod: Body) -> tuple[str, ...]:
    """The names of the PersistentVolumeClaims that the pod mounts."""
    volumes = pod["spec"].get("volumes") or ()
    return tuple(claim["claimName"] for volume in volumes if (claim := volume.get("persistentVolumeClaim")))


def claims_by_name(pod: Body | None) -> Mapping[str, Key | None]:
    """The claims of the pod by their names in its spec; None for a claim that is not created yet."""
    if pod is None or not uses_claims(pod):
        return {}
    namespace = pod["metadata"]["namespace"]
    created = {entry["name"]: entry.get("resourceClaimName") for entry in status_of(pod).get("resourceClaimStatuses") or ()}
    names = {entry["name"]: entry.get("resourceClaimName") or created.get(entry["name"]) for entry in pod["spec"]["resourceClaims"]}
    return {name: (namespace, claim) if claim else None for name, claim in names.items()}


def requests_of(claim: Body) -> Sequence[tuple[str, Body]]:
    """The device requests by name; of alternatives (`firstAvailable`), the first."""
    requests = []
    for request in (claim["spec"].get("devices") or {}).get("requests") or ():
        if alternatives := request.get("firstAvailable"):
            requests.append((f"{request['name']}/{alternatives[0]['name']}", alternatives[0]))
        else:
            requests.append((request["name"], request.get("exactly") or {}))
    return requests


def requested_classes(claim: Body) -> Mapping[str, int]:
    """How many devices of which class the claim requests."""
    counts: dict[str, int] = {}
    for _, request in requests_of(claim):
        device_class = request.get("deviceClassName", "")
        counts[device_class] = counts.get(device_class, 0) + (request.get("count") or 1)
    return counts


def is_allocated(claim: Body) -> bool:
    """Whether it has an allocation."""
    return bool(status_of(claim).get("allocation"))


def allocation_results(claim: Body) -> Sequence[Body]:
    """The allocated devices, one result each."""
    return ((status_of(claim).get("allocation") or {}).get("devices") or {}).get("results") or ()


def devices_of(claim: Body) -> list[Device]:
    """The allocated devices."""
    return [Device(result["driver"], result["pool"], result["device"]) for result in allocation_results(claim)]


def allocated_node(claim: Body) -> str:
    """The one node on which the allocated devices can be used; empty: any, or none are allocated."""
    selector = (status_of(claim).get("allocation") or {}).get("nodeSelector") or {}
    fields = [rule for term in selector.get("nodeSelectorTerms") or () for rule in term.get("matchFields") or ()]
    return next((rule["values"][0] for rule in fields if rule["key"] == "metadata.name" and rule.get("values")), "")


def reservations(claim: Body) -> Sequence[Body]:
    """The entries of `reservedFor`."""
    return status_of(claim).get("reservedFor") or ()


def reservation(pod: Body) -> dict[str, Any]:
    """The entry of `reservedFor` for a pod."""
    return {"resource": "pods", "name": pod["metadata"]["name"], "uid": uid_of(pod)}


def is_reserved_for(claim: Body, pod: Body) -> bool:
    """Whether the claim is reserved for the pod."""
    return any(entry["uid"] == uid_of(pod) for entry in reservations(claim))


def pods_of(claim: Body | None) -> tuple[Key, ...]:
    """The pods that the claim is reserved for."""
    if claim is None:
        return ()
    namespace = claim["metadata"]["namespace"]
    return tuple((namespace, entry["name"]) for entry in reservations(claim) if entry["resource"] == "pods")
