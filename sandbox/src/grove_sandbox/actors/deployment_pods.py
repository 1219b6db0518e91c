"""DeploymentPods: the pods of a Deployment as they are, what a rollout creates and deletes next, and what the status says of them."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from msgspec import Struct

from grove_sandbox.actors.body import Body, by_age, condition, conditions_of, is_deleting, is_finished, labels_of, timestamp, uid_of
from grove_sandbox.actors.lws_groups import scaled
from grove_sandbox.product import DEPLOYMENT, POD, conditions

HASH: Final = "pod-template-hash"


class DeploymentPods(Struct, frozen=True):
    """The pods that a Deployment controls and that run or may run: those of its template, and those of earlier ones."""

    updated: tuple[Body, ...]
    earlier: tuple[Body, ...]
    leaving: tuple[Body, ...]
    """Pods that have finished or are being deleted."""

    @property
    def active(self) -> tuple[Body, ...]:
        """All that run or may run."""
        return (*self.updated, *self.earlier)


def template_hash(deployment: Body) -> str:
    """The value of the label by which the pods of a template are told from those of another."""
    return hashlib.sha256(json.dumps(deployment["spec"]["template"], sort_keys=True).encode()).hexdigest()[:10]


def pods_of(deployment: Body, pods: Iterable[Body]) -> DeploymentPods:
    """These pods, which the Deployment controls, in order of age."""
    known = sorted(pods, key=by_age)
    active = [pod for pod in known if not is_deleting(pod) and not is_finished(pod)]
    updated = [pod for pod in active if labels_of(pod).get(HASH) == template_hash(deployment)]
    earlier = [pod for pod in active if pod not in updated]
    return DeploymentPods(tuple(updated), tuple(earlier), tuple(pod for pod in known if pod not in active))


def to_create(deployment: Body, pods: DeploymentPods) -> int:
    """How many pods of the template may be created now."""
    spec, replicas = deployment["spec"], _replicas(deployment)
    if _strategy(spec) == "Recreate":
        is_clear = not pods.earlier and not any(labels_of(pod).get(HASH) != template_hash(deployment) for pod in pods.leaving)
        return max(0, replicas - len(pods.updated)) if is_clear else 0
    surge, _ = _bounds(spec, replicas)
    return max(0, min(replicas - len(pods.updated), replicas + surge - len(pods.active)))


def to_delete(deployment: Body, pods: DeploymentPods) -> Sequence[Body]:
    """Which pods may be deleted now: those beyond the replicas, and earlier ones as far as enough others are available."""
    spec, replicas = deployment["spec"], _replicas(deployment)
    surplus = [pod for pod in sorted(pods.updated, key=is_ready)[: max(0, len(pods.updated) - replicas)]]
    if _strategy(spec) == "Recreate":
        return [*surplus, *pods.earlier]
    _, unavailable = _bounds(spec, replicas)
    spare = sum(map(is_ready, pods.active)) - (replicas - unavailable)
    unready = [pod for pod in pods.earlier if not is_ready(pod)]
    ready = [pod for pod in pods.earlier if is_ready(pod)]
    return [*surplus, *unready, *ready[: max(0, spare - sum(map(is_ready, surplus)))]]


def new_pod(deployment: Body, taken: Iterable[str]) -> dict[str, Any]:
    """A pod of the template under a name that is not taken. The name is the same at every attempt."""
    template, revision = deployment["spec"]["template"], template_hash(deployment)
    own: Mapping[str, Any] = template.get("metadata") or {}
    prefix, names = f"{deployment['metadata']['name']}-{revision}", set(taken)
    name = next(name for number in range(len(names) + 1) if (name := f"{prefix}-{_suffix(deployment, number)}") not in names)
    owner = {"apiVersion": DEPLOYMENT.api_version, "kind": DEPLOYMENT.name, "name": deployment["metadata"]["name"]}
    metadata = {
        "name": name,
        "namespace": deployment["metadata"]["namespace"],
        "labels": {**(own.get("labels") or {}), HASH: revision},
        "annotations": dict(own.get("annotations") or {}),
        "ownerReferences": [owner | {"uid": uid_of(deployment), "controller": True, "blockOwnerDeletion": True}],
    }
    return {"apiVersion": POD.api_version, "kind": POD.name, "metadata": metadata, "spec": template["spec"]}


def _suffix(deployment: Body, number: int) -> str:
    return hashlib.sha256(f"{uid_of(deployment)}/{number}".encode()).hexdigest()[:8]


def status(deployment: Body, pods: DeploymentPods, now: datetime) -> Mapping[str, Any]:
    """The status of the Deployment. Counts of 0 are None, as a server leaves them out."""
    replicas, name = _replicas(deployment), f"{deployment['metadata']['name']}-{template_hash(deployment)}"
    _, unavailable = _bounds(deployment["spec"], replicas)
    ready = sum(map(is_ready, pods.active))
    is_complete = len(pods.updated) == replicas == ready and not pods.earlier
    is_available = ready >= replicas - unavailable
    if is_available:
        available = (True, "MinimumReplicasAvailable", "Deployment has minimum availability.")
    else:
        available = (False, "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    progress = (
        ("NewReplicaSetAvailable", f'ReplicaSet "{name}" has successfully progressed.')
        if is_complete
        else ("ReplicaSetUpdated", f'ReplicaSet "{name}" is progressing.')
    )
    return {
        "observedGeneration": deployment["metadata"].get("generation", 1),
        "replicas": len(pods.active) or None,
        "updatedReplicas": len(pods.updated) or None,
        "readyReplicas": ready or None,
        "availableReplicas": ready or None,
        "unavailableReplicas": max(0, replicas - ready) or None,
        "conditions": [
            _condition(deployment, "Available", *available, now),
            _condition(deployment, "Progressing", True, *progress, now),
        ],
    }


def _condition(deployment: Body, type_: str, is_true: bool, reason: str, message: str, now: datetime) -> Mapping[str, Any]:
    """The condition; the live one, if that says the same."""
    new = condition(deployment, type_, is_true, reason, message, now)
    live = conditions.find(conditions_of(deployment), type_)
    return live if live is not None and new.items() <= live.items() else {**new, "lastUpdateTime": timestamp(now)}


def is_ready(pod: Body) -> bool:
    """Whether the pod is ready; it is available at once."""
    return conditions.is_true(conditions_of(pod), "Ready")


def _replicas(deployment: Body) -> int:
    return int(deployment["spec"].get("replicas", 1))


def _strategy(spec: Body) -> str:
    return str((spec.get("strategy") or {}).get("type", "RollingUpdate"))


def _bounds(spec: Body, replicas: int) -> tuple[int, int]:
    """How many pods there may be beyond the replicas, and how many may be unavailable; not both 0."""
    if _strategy(spec) == "Recreate":
        return 0, replicas
    rolling = (spec.get("strategy") or {}).get("rollingUpdate") or {}
    surge = scaled(rolling.get("maxSurge", "25%"), replicas, up=True)
    unavailable = scaled(rolling.get("maxUnavailable", "25%"), replicas)
    return surge, min(replicas, unavailable or (0 if surge else 1))
