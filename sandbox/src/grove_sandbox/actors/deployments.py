"""Deployments: the controller of Deployments. It creates their pods itself: there are no ReplicaSets."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, Final

import anyio
from msgspec import Struct

from grove_sandbox.actors.body import (
    Body,
    Key,
    by_age,
    condition,
    conditions_of,
    is_deleting,
    is_finished,
    key_of,
    labels_of,
    status_of,
    timestamp,
    uid_of,
)
from grove_sandbox.actors.lws_groups import scaled
from grove_sandbox.actors.lws_pods import controller_of
from grove_sandbox.actors.options import ActorOptions
from grove_sandbox.actors.store import InformerStore, delete, run_informers
from grove_sandbox.actors.work_queue import WorkQueue
from grove_sandbox.installation.kinds import CONTROLLER_LABELS
from grove_sandbox.product import AlreadyExists, Client, Clock, NotFound, conditions, kinds

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
    owner = {"apiVersion": kinds.DEPLOYMENT.api_version, "kind": kinds.DEPLOYMENT.name, "name": deployment["metadata"]["name"]}
    metadata = {
        "name": name,
        "namespace": deployment["metadata"]["namespace"],
        "labels": {**(own.get("labels") or {}), HASH: revision},
        "annotations": dict(own.get("annotations") or {}),
        "ownerReferences": [owner | {"uid": uid_of(deployment), "controller": True, "blockOwnerDeletion": True}],
    }
    return {"apiVersion": kinds.POD.api_version, "kind": kinds.POD.name, "metadata": metadata, "spec": template["spec"]}


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


NAME_TAKEN_RETRY: Final = 1.0
"""Seconds after which another name is tried, when an object that is not the Deployment's had the first one."""


async def run(client: Client, clock: Clock, options: ActorOptions) -> None:
    """Create the pods of Deployments, replace them when the template changes, and report the status."""
    await DeploymentController(client, clock).run()


class DeploymentController:
    """Knows Deployments and their pods, all of it from the API. The DRA driver's own Deployment is left to the driver."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client, self._clock = client, clock
        self._queue: WorkQueue[Key] = WorkQueue(clock)
        self._deployments = InformerStore(kinds.DEPLOYMENT, self._on_deployment)
        self._pods = InformerStore(kinds.POD, self._on_pod, labels=HASH)
        self._keys: dict[str, Key] = {}
        """Deployments by uid."""
        self._pods_of: dict[str, dict[Key, None]] = {}
        """Pods by the uid of their controller."""
        self._refused: dict[str, set[str]] = {}
        """Names of pods that were taken, by the uid of the Deployment."""
        self._templates: dict[str, Any] = {}
        """The template that was rolled out last, by the uid of the Deployment: one that is paused is scaled with that."""

    async def run(self) -> None:
        """Run the controller until cancelled."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run_informers, self._client, self._clock, self._deployments, self._pods)
            # What is missing is known only after everything has been listed.
            await self._deployments.synced.wait()
            await self._pods.synced.wait()
            tasks.start_soon(self._queue.run, self._process)

    def _on_deployment(self, key: Key, old: Body | None, new: Body | None) -> None:
        if old is not None:
            self._keys.pop(uid_of(old), None)
            if new is None or uid_of(new) != uid_of(old):
                self._refused.pop(uid_of(old), None)
                self._templates.pop(uid_of(old), None)
        if new is not None:
            self._keys[uid_of(new)] = key
            self._queue.add(key)

    def _on_pod(self, key: Key, old: Body | None, new: Body | None) -> None:
        if old is not None:
            self._pods_of.get(controller_of(old), {}).pop(key, None)
        if new is not None:
            self._pods_of.setdefault(controller_of(new), {})[key] = None
        for body in (old, new):
            if body is not None and (deployment := self._keys.get(controller_of(body))):
                self._queue.add(deployment)

    async def _process(self, key: Key) -> float | None:
        deployment = self._deployments.get(*key)
        if deployment is None or is_deleting(deployment) or _is_of_the_driver(deployment):
            return None
        is_complete = True
        if (scaled := self._to_scale(deployment)) is not None:
            await self._delete_surplus(scaled)
            is_complete = await self._create_missing(scaled)
        await self._write_status(deployment)
        return None if is_complete else NAME_TAKEN_RETRY

    def _to_scale(self, deployment: Body) -> Body | None:
        """The Deployment with the template of its new pods. One that is paused is scaled in the template that it has rolled out last,
        from 0 too, unless it was paused in the middle of a rollout."""
        spec, uid = deployment["spec"], uid_of(deployment)
        if not spec.get("paused"):
            self._templates[uid] = spec["template"]
            return deployment
        known = {**deployment, "spec": {**spec, "template": self._templates.get(uid, spec["template"])}}
        pods = self._pods_now(known)
        return known if not pods.earlier and (pods.updated or uid in self._templates) else None

    def _pods_now(self, deployment: Body) -> DeploymentPods:
        keys = self._pods_of.get(uid_of(deployment), ())
        return pods_of(deployment, [pod for key in keys if (pod := self._pods.get(*key)) is not None])

    async def _delete_surplus(self, deployment: Body) -> None:
        pods = self._pods_now(deployment)
        finished = [pod for pod in pods.leaving if is_finished(pod) and not is_deleting(pod)]
        for pod in (*to_delete(deployment, pods), *finished):
            await delete(self._client, kinds.POD, pod)

    async def _create_missing(self, deployment: Body) -> bool:
        """Create the pods that the rollout allows. Returns whether no name was taken."""
        pods = self._pods_now(deployment)
        taken = {key_of(pod)[1] for pod in (*pods.active, *pods.leaving)} | self._refused.get(uid_of(deployment), set())
        for _ in range(to_create(deployment, pods)):
            pod = new_pod(deployment, taken)
            taken.add(pod["metadata"]["name"])
            try:
                self._pods.apply("ADDED", await self._client.create(kinds.POD, pod["metadata"]["namespace"], pod))
            except AlreadyExists:
                self._refused.setdefault(uid_of(deployment), set()).add(pod["metadata"]["name"])
                return False
        return True

    async def _write_status(self, deployment: Body) -> None:
        new = status(deployment, self._pods_now(deployment), self._clock.now())
        live = status_of(deployment)
        if any(live.get(field) != value for field, value in new.items()):
            with suppress(NotFound):
                await self._deployments.patch(self._client, deployment, {"status": new}, subresource="status", by_uid=True)


def _is_of_the_driver(deployment: Body) -> bool:
    """Whether the pods of a Deployment are the controller of the DRA driver."""
    return CONTROLLER_LABELS.items() <= labels_of(deployment["spec"]["template"]).items()
