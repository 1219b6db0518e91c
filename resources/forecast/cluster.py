"""Cluster: the model of a cluster without surprises: room for every pod, controllers that do their work, nobody who interferes."""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any, Final

from engine.forecast.cluster_model import Assumption
from engine.forecast.store import ForecastStore
from engine.ids import ResourceId
from engine.observed import Live, timestamp
from resources.base import kinds, labels
from resources.model.pod_facts import PodFacts, facts_of
from resources.ports.answering_fabric import AnsweringFabric
from resources.ports.fabric import Fabric

NODE: Final = "a-node"
"""The node of pods that were not bound before. It is never shown."""
OVERDUE: Final = timedelta(minutes=2)
"""How long a deletion may be overdue; an object that is still there then has a reason that time does not remove."""
TOKEN_TYPE: Final = "kubernetes.io/service-account-token"
ENDED: Final = ("Succeeded", "Failed")
OUR_FINALIZERS: Final = frozenset({labels.SET_FINALIZER, labels.CLIQUE_FINALIZER, labels.GROUP_FINALIZER, labels.GRAPH_FINALIZER})


class ModelledCluster:
    """The answers of a cluster to one forecast."""

    def __init__(self, fabrics: Iterable[Fabric]) -> None:
        fabrics = tuple(fabrics)
        self._drivers = tuple(fabric.modelled_driver() for fabric in fabrics if isinstance(fabric, AnsweringFabric))
        self._ours = OUR_FINALIZERS.union(fabric.finalizer for fabric in fabrics)
        """The finalizers that the engine itself removes."""
        self._is_first = True
        self._terminating: dict[ResourceId, None] = {}
        """Objects that are being deleted and that somebody else than the engine keeps."""
        self._orphaned: dict[ResourceId, None] = {}
        """Objects of which an owner has gone."""
        self._unclaimed: dict[ResourceId, None] = {}
        """Pods that wait for the template of a claim."""

    def answer(self, store: ForecastStore) -> frozenset[Assumption]:
        """Let every agent of the cluster take one step."""
        changed, gone = store.take_changes()
        if self._is_first:
            changed, self._is_first = tuple(store.lives), False
        used: set[Assumption] = set()
        self._remove_terminated(store, used)
        self._collect(store, used)
        for driver in self._drivers:
            if driver.answer(store, changed, gone):
                used.add(Assumption.FABRIC)
        for uid in gone:
            self._orphaned.update(dict.fromkeys(store.dependents(uid)))
        for id in changed:
            live = store.find(id)
            if live is not None:
                self._look_at(store, live, used)
        for id in list(self._unclaimed):
            self._claim(store, id, used)
        return frozenset(used)

    def _look_at(self, store: ForecastStore, live: Live, used: set[Assumption]) -> None:
        """Take note of what the cluster has to do for an object, or do it."""
        if live.deleting_since is not None:
            self._terminating[live.id] = None
        elif live.id.kind == kinds.POD.name and not live.id.group:
            self._run(store, live, used)
        elif live.id.kind == kinds.SECRET.name and live.body.get("type") == TOKEN_TYPE and not live.body.get("data"):
            store.patch(live.id, {"data": {"token": "", "ca.crt": "", "namespace": ""}})
            used.add(Assumption.KUBERNETES)

    def _run(self, store: ForecastStore, live: Live, used: set[Assumption]) -> None:
        """Schedule a pod and make it ready, if nothing keeps it."""
        facts = facts_of(live)
        if facts.ready or facts.phase in ENDED or live.body["spec"].get("schedulingGates"):
            return
        if _stays(facts):
            used.add(Assumption.FAILURES_STAY)
            return
        if live.body["spec"].get("resourceClaims") and self._claim(store, live.id, used) is False:
            self._unclaimed[live.id] = None
            return
        store.patch(live.id, {"spec": {"nodeName": facts.node or NODE}, "status": running(store)})
        used.add(Assumption.CAPACITY)

    def _claim(self, store: ForecastStore, id: ResourceId, used: set[Assumption]) -> bool:
        """Create the claims of a pod from their templates. False if a template is missing."""
        live = store.find(id)
        if live is None or live.deleting_since is not None:
            self._unclaimed.pop(id, None)
            return True
        is_complete = True
        for entry in live.body["spec"].get("resourceClaims") or ():
            name = entry.get("resourceClaimTemplateName")
            if not name:
                continue
            claim = kinds.RESOURCE_CLAIM.id(id.namespace, f"{id.name}-{entry['name']}")
            if any(store.lives[other].id.kind == claim.kind and _is_claim_of(store.lives[other], entry["name"]) for other in store.dependents(live.uid)):
                continue
            template = store.find(kinds.RESOURCE_CLAIM_TEMPLATE.id(id.namespace, name))
            if template is None:
                is_complete = False
                continue
            store.create(_claim_body(live, claim, entry["name"], template.body))
            used.add(Assumption.KUBERNETES)
        if is_complete and id in self._unclaimed:
            del self._unclaimed[id]
            self._run(store, store.lives[id], used)
        return is_complete

    def _remove_terminated(self, store: ForecastStore, used: set[Assumption]) -> None:
        """Remove pods that one pass has seen terminating, and the finalizers of other programs."""
        for id in list(self._terminating):
            live = store.find(id)
            if live is None or live.deleting_since is None:
                del self._terminating[id]
                continue
            if store.now - live.deleting_since > OVERDUE + _grace(live) and not live.uid.startswith("forecast-"):
                del self._terminating[id]
                used.add(Assumption.DELETION)
                continue
            others = [each for each in live.body["metadata"].get("finalizers") or () if each not in self._ours]
            if others and not any(driver.holds(live) for driver in self._drivers):
                kept = [each for each in live.body["metadata"]["finalizers"] if each in self._ours]
                store.patch(id, {"metadata": {"finalizers": kept}})
                used.add(Assumption.KUBERNETES)
                live = store.find(id)
            if live is not None and id.kind == kinds.POD.name and not live.body["metadata"].get("finalizers"):
                store.remove(id)
                del self._terminating[id]
                used.add(Assumption.DELETION)

    def _collect(self, store: ForecastStore, used: set[Assumption]) -> None:
        """The garbage collector: objects without remaining owners are deleted, references to missing owners are removed."""
        uids = {live.uid for live in store.lives.values()} if self._orphaned else set()
        for id in list(self._orphaned):
            del self._orphaned[id]
            live = store.find(id)
            if live is None:
                continue
            remaining = [entry for entry in live.body["metadata"].get("ownerReferences") or () if entry["uid"] in uids]
            if remaining:
                store.patch(id, {"metadata": {"ownerReferences": remaining}})
            elif live.deleting_since is None:
                store.delete(id)
            used.add(Assumption.KUBERNETES)


def _stays(facts: PodFacts) -> bool:
    """Whether a pod that is not ready stays as it is (A2): it existed before the forecast and something is wrong with it."""
    is_real = not facts.live.uid.startswith("forecast-")
    return is_real and (facts.failing or facts.unready or facts.reason.startswith("Unschedulable"))


def _grace(live: Live) -> timedelta:
    return timedelta(seconds=live.body["metadata"].get("deletionGracePeriodSeconds") or 0)


def running(store: ForecastStore) -> Mapping[str, Any]:
    """The status of a pod that has just become ready."""
    moment = timestamp(store.now)
    conditions = [{"type": kind, "status": "True", "lastTransitionTime": moment} for kind in ("PodScheduled", "Initialized", "ContainersReady", "Ready")]
    return {"phase": "Running", "conditions": conditions, "startTime": moment}


def _is_claim_of(claim: Live, name: str) -> bool:
    annotations = claim.body["metadata"].get("annotations") or {}
    return annotations.get("resource.kubernetes.io/pod-claim-name") in (None, name)


def _claim_body(pod: Live, id: ResourceId, name: str, template: Mapping[str, Any]) -> dict[str, Any]:
    inherited = dict((template.get("spec") or {}).get("metadata") or {})
    annotations = {**(inherited.pop("annotations", None) or {}), "resource.kubernetes.io/pod-claim-name": name}
    owner = {"apiVersion": "v1", "kind": "Pod", "name": pod.id.name, "uid": pod.uid, "controller": True, "blockOwnerDeletion": True}
    return {
        "apiVersion": kinds.RESOURCE_CLAIM.api_version,
        "kind": kinds.RESOURCE_CLAIM.name,
        "metadata": {**inherited, "name": id.name, "namespace": id.namespace, "annotations": annotations, "ownerReferences": [owner]},
        "spec": (template.get("spec") or {}).get("spec") or {},
    }
