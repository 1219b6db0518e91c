"""Pods: how a forecast expects a pod to go on: whether it becomes ready, and the claims that it gets."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from engine.conditions import find
from engine.forecast.store import SYNTHETIC, ForecastStore
from engine.ids import ResourceId
from engine.observed import Live
from resources.base import kinds
from resources.base.fields import mapping, mappings
from resources.model.pod_facts import PodFacts
from resources.ports.fabric import Fabric, NodeExclusiveFabric

NODE: Final = "a-node"
"""The node of pods that a forecast schedules. It is never shown."""
CLAIM_NAME: Final = "resource.kubernetes.io/pod-claim-name"
"""Kubernetes' annotation of a claim made from a template: the name of the claim in the pod."""
CONDITIONS: Final = ("PodScheduled", "Initialized", "ContainersReady", "Ready")
UNSCHEDULABLE: Final = "Unschedulable"


def is_synthetic(live: Live) -> bool:
    """Whether the object was created in the forecast."""
    return live.uid.startswith(SYNTHETIC)


def stays_as_it_is(facts: PodFacts) -> bool:
    """Whether a pod that is not ready stays so: it existed before the forecast and something is wrong with it."""
    return not is_synthetic(facts.live) and (facts.failing or facts.unready or is_refused(facts))


def is_refused(facts: PodFacts) -> bool:
    """Whether the scheduler says that it cannot place a pod."""
    scheduled = find(mappings(mapping(facts.live.body.get("status")).get("conditions")), "PodScheduled") or {}
    return not facts.node and scheduled.get("status") == "False" and scheduled.get("reason") == UNSCHEDULABLE


def started(node: str, moment: str) -> dict[str, Any]:
    """The patch of a pod that is scheduled and becomes ready."""
    conditions = [{"type": type, "status": "True", "lastTransitionTime": moment} for type in CONDITIONS]
    return {"spec": {"nodeName": node or NODE}, "status": {"phase": "Running", "conditions": conditions, "startTime": moment}}


def claim_id(pod: ResourceId, name: str) -> ResourceId:
    """The id of the claim that a pod gets for an entry with a template. A real one ends in random characters; nothing depends on them."""
    return kinds.RESOURCE_CLAIM.id(pod.namespace, f"{pod.name}-{name}")


def is_claim_for(claim: Live, name: str) -> bool:
    """Whether a claim, which a pod owns, is the one for that entry of the pod; a claim that does not say it may be."""
    annotations = mapping(claim.body["metadata"].get("annotations"))
    return claim.id.kind == kinds.RESOURCE_CLAIM.name and annotations.get(CLAIM_NAME, name) == name


def claims_from_templates(pod: Live) -> dict[str, str]:
    """Name of each claim of a pod that is made from a template -> the name of the template."""
    entries = mappings(mapping(pod.body.get("spec")).get("resourceClaims"))
    return {
        entry["name"]: entry["resourceClaimTemplateName"]
        for entry in entries
        if isinstance(entry.get("name"), str) and isinstance(entry.get("resourceClaimTemplateName"), str)
    }


def claim_of(pod: Live, name: str, template: Mapping[str, Any]) -> dict[str, Any]:
    """The claim that the pod gets for the entry `name`, from the body of its template."""
    id, spec = claim_id(pod.id, name), mapping(template.get("spec"))
    inherited = mapping(spec.get("metadata"))
    owner = {"apiVersion": "v1", "kind": pod.id.kind, "name": pod.id.name, "uid": pod.uid, "controller": True, "blockOwnerDeletion": True}
    annotations = {**mapping(inherited.get("annotations")), CLAIM_NAME: name}
    return {
        "apiVersion": kinds.RESOURCE_CLAIM.api_version,
        "kind": id.kind,
        "metadata": {**inherited, "name": id.name, "namespace": id.namespace, "annotations": annotations, "ownerReferences": [owner]},
        "spec": mapping(spec.get("spec")),
    }


class PodSlots:
    """Counts the places that the templates of a pod's claims ask for."""

    def __init__(self, fabrics: Iterable[Fabric], known: Collection[str]) -> None:
        """`known`: the kinds of domains of which it is known which nodes have a place."""
        self._fabrics = [(fabric.kind.name, fabric) for fabric in fabrics if isinstance(fabric, NodeExclusiveFabric)]
        self._fabrics = [(kind, fabric) for kind, fabric in self._fabrics if kind in known]

    def of(self, store: ForecastStore, pod: Live) -> Mapping[str, int]:
        """Kind of domains -> the places that a pod takes; kinds of which it takes none are absent."""
        if not self._fabrics:
            return {}
        templates = [store.find(kinds.RESOURCE_CLAIM_TEMPLATE.id(pod.id.namespace, name)) for name in claims_from_templates(pod).values()]
        specs = [mapping(mapping(template.body.get("spec")).get("spec")) for template in templates if template is not None]
        counts = {kind: sum(fabric.slots_of(spec) for spec in specs) for kind, fabric in self._fabrics}
        return {kind: count for kind, count in counts.items() if count}


CONTROLLED: Final = frozenset({kinds.DEPLOYMENT.key, kinds.LEADER_WORKER_SET.key})
"""The kinds whose controllers create pods of their own and report how many are ready."""
FAILED: Final[Mapping[str, str]] = {"Progressing": "False", "ReplicaFailure": "True"}
"""Condition of a Deployment -> the status with which its controller reports that it does not go on."""


def is_component(live: Live) -> bool:
    """Whether a controller of the cluster creates the pods of this object."""
    return not CONTROLLED.isdisjoint(live.id.keys())


def has_failed(live: Live) -> bool:
    """Whether its controller has reported, of this generation, that it does not go on."""
    status = mapping(live.body.get("status"))
    conditions = list(mappings(status.get("conditions")))
    is_observed = status.get("observedGeneration", live.generation) == live.generation
    return is_observed and any((find(conditions, type) or {}).get("status") == value for type, value in FAILED.items())


def rolled_out(live: Live, moment: str) -> dict[str, Any] | None:
    """The patch of an object whose pods are all updated and ready; None if it says so already, or if it is paused."""
    spec, old = mapping(live.body.get("spec")), mapping(live.body.get("status"))
    replicas = spec.get("replicas", 1)
    if not isinstance(replicas, int) or spec.get("paused") is True:
        return None
    names = ("replicas", "updatedReplicas", "readyReplicas")
    counts = dict.fromkeys((*names, "availableReplicas") if live.id.kind == kinds.DEPLOYMENT.name else names, replicas)
    available = find(list(mappings(old.get("conditions"))), "Available") or {}
    is_reported = all((old.get(name) or 0) == count for name, count in counts.items())
    if is_reported and available.get("status") == "True" and old.get("observedGeneration") == live.generation:
        return None
    condition = {"type": "Available", "status": "True", "lastTransitionTime": moment}
    return {"status": {**counts, "observedGeneration": live.generation, "conditions": [condition]}}
