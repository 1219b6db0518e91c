"""DaemonSets: a controller for the driver's DaemonSets where no kube-controller-manager runs: one pod on each node with the label."""

import hashlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, Final

from grove_sandbox.actors.body import (
    Body,
    Key,
    conditions_of,
    is_deleting,
    is_finished,
    key_of,
    labels_of,
    owners_of,
    status_of,
    uid_of,
)
from grove_sandbox.actors.options import DriverOptions
from grove_sandbox.actors.store import delete
from grove_sandbox.actors.work_queue import WorkQueue
from grove_sandbox.driver.cache import Cache, not_deleting
from grove_sandbox.product import AlreadyExists, Client, Clock, NotFound, conditions, kinds, nvidia

REAL_MANAGER: Final = "kube-controller-manager"
"""The field manager of a real controller."""


class DaemonSetController:
    """Carries out the driver's DaemonSets. One that is being deleted is left to the garbage collector."""

    def __init__(self, client: Client, clock: Clock, options: DriverOptions, cache: Cache) -> None:
        self._client, self._clock, self._options, self._cache = client, clock, options, cache
        self._known_since: dict[str, float] = {}
        """Since when a DaemonSet is known, by its uid."""
        self._queue: WorkQueue[Key] = WorkQueue(clock)
        cache.daemon_sets.subscribe(lambda key, old, new: self._queue.add(key))
        cache.nodes.subscribe(self._on_labelled)
        cache.daemons.subscribe(self._on_labelled)

    async def run(self) -> None:
        """Run the controller until cancelled."""
        await self._queue.run(self._process)

    def _on_labelled(self, key: Key, old: Body | None, new: Body | None) -> None:
        uids = {labels_of(body).get(nvidia.DOMAIN_LABEL) for body in (old, new) if body is not None} - {None}
        for daemon_set in [daemon_set for uid in uids if uid for daemon_set in self._cache.daemon_sets.of(uid)]:
            self._queue.add(key_of(daemon_set))

    async def _process(self, key: Key) -> float | None:
        daemon_set = self._cache.daemon_sets.get(*key)
        if daemon_set is None or is_deleting(daemon_set) or _has_real_controller(daemon_set):
            return None
        now = self._clock.monotonic()
        remaining = self._known_since.setdefault(uid_of(daemon_set), now) + self._options.deference - now
        if remaining > 0:
            return remaining
        await self._reconcile(daemon_set)
        return None

    async def _reconcile(self, daemon_set: Body) -> None:
        nodes, pods = self._nodes(daemon_set), self._pods(daemon_set)
        by_node: dict[str, list[Body]] = {}
        for pod in pods:
            by_node.setdefault(node_of(pod), []).append(pod)
        for node in nodes:
            predecessors = by_node.get(node, [])
            if all(is_finished(pod) for pod in not_deleting(predecessors)):
                await self._create(daemon_set, node, predecessors)
        for pod in not_deleting(pods):
            if node_of(pod) not in nodes or is_finished(pod):
                await delete(self._client, kinds.POD, pod)
        await self._write_status(daemon_set, nodes, not_deleting(self._pods(daemon_set)))

    def _nodes(self, daemon_set: Body) -> list[str]:
        """The nodes that the DaemonSet selects, which all have the label of its domain."""
        selector = daemon_set["spec"]["template"]["spec"].get("nodeSelector") or {}
        nodes = self._cache.nodes.of(selector.get(nvidia.DOMAIN_LABEL, ""))
        return [node["metadata"]["name"] for node in nodes if selector.items() <= labels_of(node).items()]

    def _pods(self, daemon_set: Body) -> list[Body]:
        pods = self._cache.daemons.of(labels_of(daemon_set).get(nvidia.DOMAIN_LABEL, ""))
        return [pod for pod in pods if any(owner["uid"] == uid_of(daemon_set) for owner in owners_of(pod))]

    async def _create(self, daemon_set: Body, node: str, predecessors: Iterable[Body]) -> None:
        with suppress(AlreadyExists):  # The watch has not reported it yet.
            pod = await self._client.create(kinds.POD, daemon_set["metadata"]["namespace"], _pod(daemon_set, node, predecessors))
            self._cache.daemons.apply("ADDED", pod)

    async def _write_status(self, daemon_set: Body, nodes: list[str], pods: list[Body]) -> None:
        placed = [pod for pod in pods if node_of(pod) in nodes]
        ready = sum(conditions.is_true(conditions_of(pod), "Ready") for pod in placed)
        status = {
            "desiredNumberScheduled": len(nodes),
            "currentNumberScheduled": len(placed),
            "updatedNumberScheduled": len(placed),
            "numberMisscheduled": len(pods) - len(placed),
            "numberReady": ready,
            "numberAvailable": ready,
            "numberUnavailable": len(nodes) - ready,
            "observedGeneration": daemon_set["metadata"].get("generation", 1),
        }
        live = status_of(daemon_set)
        if any((live.get(name) or 0) != value for name, value in status.items()):
            with suppress(NotFound):
                await self._cache.daemon_sets.patch(self._client, daemon_set, {"status": status}, subresource="status", by_uid=True)


def node_of(pod: Body) -> str:
    """The node that the pod runs on, or has to run on by its affinity; empty: neither is set."""
    affinity = ((pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}).get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    names = [
        rule["values"][0]
        for term in affinity.get("nodeSelectorTerms") or ()
        for rule in term.get("matchFields") or ()
        if rule["key"] == "metadata.name" and rule.get("values")
    ]
    return str(pod["spec"].get("nodeName") or next(iter(names), ""))


def _has_real_controller(daemon_set: Body) -> bool:
    """Whether a real controller has written its status."""
    entries = daemon_set["metadata"].get("managedFields") or ()
    return any((entry.get("manager"), entry.get("subresource")) == (REAL_MANAGER, "status") for entry in entries)


def _pod(daemon_set: Body, node: str, predecessors: Iterable[Body]) -> dict[str, Any]:
    """The pod for a node. Its name is the same at every attempt, and differs from those of its predecessors on the node."""
    name, template = daemon_set["metadata"]["name"], daemon_set["spec"]["template"]
    digest = hashlib.sha256("/".join([uid_of(daemon_set), node, *sorted(map(uid_of, predecessors))]).encode()).hexdigest()[:5]
    owner = {"apiVersion": kinds.DAEMON_SET.api_version, "kind": kinds.DAEMON_SET.name, "name": name, "uid": uid_of(daemon_set)}
    metadata: Mapping[str, Any] = template.get("metadata") or {}
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    return {
        "apiVersion": kinds.POD.api_version,
        "kind": kinds.POD.name,
        "metadata": {
            "name": f"{name}-{digest}",
            "namespace": daemon_set["metadata"]["namespace"],
            "labels": dict(metadata.get("labels") or {}),
            "annotations": dict(metadata.get("annotations") or {}),
            "ownerReferences": [owner | {"controller": True, "blockOwnerDeletion": True}],
        },
        "spec": {**template["spec"], "affinity": affinity},
    }
