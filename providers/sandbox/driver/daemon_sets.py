"""DaemonSets: the driver's own, carried out where nobody else does it: one pod on each node that bears the label."""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, Final

from engine import conditions
from engine.errors import AlreadyExists, NotFound
from engine.runtime.client import Client
from engine.runtime.clock import Clock
from providers.sandbox.actors.agenda import Agenda
from providers.sandbox.actors.body import Body, Key, conditions_of, is_deleting, is_finished, key_of, labels_of, status_of, uid_of
from providers.sandbox.actors.settings import Driver
from providers.sandbox.driver.facts import Facts, living
from providers.sandbox.installation.kinds import DAEMON_SET, DOMAIN
from resources.base.kinds import POD

REAL: Final = "kube-controller-manager"
"""The name under which a real controller writes."""


class DaemonSets:
    """The controller of the driver's DaemonSets. One that is being deleted is left to the garbage collector."""

    def __init__(self, client: Client, clock: Clock, settings: Driver, facts: Facts) -> None:
        self._client, self._clock, self._settings, self._facts = client, clock, settings, facts
        self._met: dict[str, float] = {}
        """Since when a DaemonSet is known, by its uid."""
        self._agenda: Agenda[Key] = Agenda(clock)
        facts.daemon_sets.tell(lambda key, old, new: self._agenda.add(key))
        facts.nodes.tell(self._saw_labelled)
        facts.daemons.tell(self._saw_labelled)

    async def run(self) -> None:
        """Carry them out, for ever."""
        await self._agenda.work(self._look)

    def _saw_labelled(self, key: Key, old: Body | None, new: Body | None) -> None:
        uids = {labels_of(body).get(DOMAIN) for body in (old, new) if body is not None} - {None}
        for daemon_set in [one for uid in uids if uid for one in self._facts.daemon_sets.of(uid)]:
            self._agenda.add(key_of(daemon_set))

    async def _look(self, key: Key) -> float | None:
        daemon_set = self._facts.daemon_sets.get(*key)
        if daemon_set is None or is_deleting(daemon_set) or _is_taken_up(daemon_set):
            return None
        now = self._clock.monotonic()
        left = self._met.setdefault(uid_of(daemon_set), now) + self._settings.deference - now
        if left > 0:
            return left
        await self._carry_out(daemon_set)
        return None

    async def _carry_out(self, daemon_set: Body) -> None:
        wanted = self._nodes(daemon_set)
        pods = self._pods(daemon_set)
        by_node: dict[str, list[Body]] = {}
        for pod in pods:
            by_node.setdefault(node_of(pod), []).append(pod)
        for node in wanted:
            there = by_node.get(node, [])
            if not any(not is_finished(pod) for pod in living(there)):
                await self._create(daemon_set, node, there)
        for pod in living(pods):
            if node_of(pod) not in wanted or is_finished(pod):
                await self._delete(pod)
        await self._write(daemon_set, wanted, living(self._pods(daemon_set)))

    def _nodes(self, daemon_set: Body) -> list[str]:
        """Only nodes of a domain are looked at: the driver's DaemonSets select them by its label."""
        selector = daemon_set["spec"]["template"]["spec"].get("nodeSelector") or {}
        nodes = self._facts.nodes.of(selector.get(DOMAIN, ""))
        return [node["metadata"]["name"] for node in nodes if selector.items() <= labels_of(node).items()]

    def _pods(self, daemon_set: Body) -> list[Body]:
        return [pod for pod in self._facts.daemons.of(labels_of(daemon_set).get(DOMAIN, "")) if _is_owned(pod, daemon_set)]

    async def _create(self, daemon_set: Body, node: str, before: Iterable[Body]) -> None:
        try:
            made = await self._client.create(POD, daemon_set["metadata"]["namespace"], _pod(daemon_set, node, before))
        except AlreadyExists:
            return  # The watch has not told of it yet.
        self._facts.daemons.saw("ADDED", made)

    async def _delete(self, pod: Body) -> None:
        try:
            await self._client.delete(POD, *key_of(pod), uid=uid_of(pod))
        except NotFound:
            return

    async def _write(self, daemon_set: Body, wanted: Iterable[str], pods: Iterable[Body]) -> None:
        nodes, there = set(wanted), list(pods)
        placed = [pod for pod in there if node_of(pod) in nodes]
        ready = sum(conditions.is_true(conditions_of(pod), "Ready") for pod in placed)
        status = {
            "desiredNumberScheduled": len(nodes),
            "currentNumberScheduled": len(placed),
            "updatedNumberScheduled": len(placed),
            "numberMisscheduled": len(there) - len(placed),
            "numberReady": ready,
            "numberAvailable": ready,
            "numberUnavailable": len(nodes) - ready,
            "observedGeneration": daemon_set["metadata"].get("generation", 1),
        }
        live = status_of(daemon_set)
        if any((live.get(name) or 0) != value for name, value in status.items()):
            patch = {"metadata": {"uid": uid_of(daemon_set)}, "status": status}
            try:
                answer = await self._client.patch(DAEMON_SET, *key_of(daemon_set), patch, subresource="status")
            except NotFound:
                return
            self._facts.daemon_sets.assume(answer)


def node_of(pod: Body) -> str:
    """The node that the pod is pinned to, or runs on."""
    affinity = ((pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}).get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    pinned = [
        rule["values"][0]
        for term in affinity.get("nodeSelectorTerms") or ()
        for rule in term.get("matchFields") or ()
        if rule["key"] == "metadata.name" and rule.get("values")
    ]
    return str(pod["spec"].get("nodeName") or next(iter(pinned), ""))


def _is_taken_up(daemon_set: Body) -> bool:
    """Whether a real controller has said what it makes of it."""
    entries = daemon_set["metadata"].get("managedFields") or ()
    return any((one.get("manager"), one.get("subresource")) == (REAL, "status") for one in entries)


def _is_owned(pod: Body, daemon_set: Body) -> bool:
    return any(one["uid"] == uid_of(daemon_set) for one in pod["metadata"].get("ownerReferences") or ())


def _pod(daemon_set: Body, node: str, before: Iterable[Body]) -> dict[str, Any]:
    """A pod for the node, under a name that a repeated attempt arrives at again; those before it on the node have others."""
    name, template = daemon_set["metadata"]["name"], daemon_set["spec"]["template"]
    digest = hashlib.sha256("/".join([uid_of(daemon_set), node, *sorted(map(uid_of, before))]).encode()).hexdigest()[:5]
    owner = {"apiVersion": DAEMON_SET.api_version, "kind": DAEMON_SET.name, "name": name, "uid": uid_of(daemon_set)}
    metadata: Mapping[str, Any] = template.get("metadata") or {}
    pinned = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [pinned]}}}
    return {
        "apiVersion": POD.api_version,
        "kind": POD.name,
        "metadata": {
            "name": f"{name}-{digest}",
            "namespace": daemon_set["metadata"]["namespace"],
            "labels": dict(metadata.get("labels") or {}),
            "annotations": dict(metadata.get("annotations") or {}),
            "ownerReferences": [owner | {"controller": True, "blockOwnerDeletion": True}],
        },
        "spec": {**template["spec"], "affinity": affinity},
    }
