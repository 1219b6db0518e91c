"""Claim users: the pods that use ResourceClaims and PersistentVolumeClaims, which Kubernetes keeps until they are gone."""

from collections.abc import Iterator
from typing import Any, Final

from engine.ids import ResourceId
from engine.observed import Live
from engine.resource import Body
from resources.base import kinds
from resources.base.fields import mapping, mappings

CLAIM_PROTECTION: Final = "resource.kubernetes.io/delete-protection"
VOLUME_PROTECTION: Final = "kubernetes.io/pvc-protection"
PROTECTIONS: Final = frozenset({CLAIM_PROTECTION, VOLUME_PROTECTION})
"""The finalizers that Kubernetes removes as soon as no pod uses the claim."""


def reserved_for(claim: Live) -> dict[str, str]:
    """Uid of each pod that a ResourceClaim is reserved for -> its name."""
    entries = mappings(mapping(claim.body.get("status")).get("reservedFor"))
    return {
        entry["uid"]: entry["name"]
        for entry in entries
        if entry.get("resource") == "pods" and isinstance(entry.get("uid"), str) and isinstance(entry.get("name"), str)
    }


def claims_of(namespace: str, pod_spec: Any) -> Iterator[ResourceId]:
    """The claims that a pod spec names, of either kind. It is not validated."""
    spec = mapping(pod_spec)
    for entry in mappings(spec.get("resourceClaims")):
        if isinstance(name := entry.get("resourceClaimName"), str):
            yield kinds.RESOURCE_CLAIM.id(namespace, name)
    for volume in mappings(spec.get("volumes")):
        if isinstance(name := mapping(volume.get("persistentVolumeClaim")).get("claimName"), str):
            yield kinds.PVC.id(namespace, name)


def pod_spec_of(body: Body) -> Body:
    """The pod spec of a pod, or that of the template of an object whose controller makes pods; empty if it has none."""
    spec = mapping(body.get("spec"))
    template = spec.get("template") or mapping(spec.get("leaderWorkerTemplate")).get("workerTemplate")
    return mapping(mapping(template).get("spec")) if template else spec
