"""Grove's operator in a cluster, as far as a take-over meets it: it deploys sets, begins updates, and writes statuses, as itself.

`Grove.deploy` leaves what a running operator has when a set is at rest. Scheduler, kubelet and garbage collector are those of the cluster.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from typing import Any

from engine.conditions import is_true
from engine.ids import Kind
from engine.runtime.provider import Client
from resources.base import kinds
from tests.takeover.grove import Body, Child, Rendering
from tests.takeover.stored_set import Options, clique_hash, generation_hash, stored

SET_FINALIZER = "grove.io/podcliqueset.grove.io"
HASH = "grove.io/pod-template-hash"
CLIQUE = "grove.io/podclique"
GROUP = "grove.io/podcliquescalinggroup"
J = "grove.io/podcliquescalinggroup-replica-index"


class Grove:
    """The operator. `pause` lets the cluster act until pods run; `client` writes as the operator."""

    def __init__(self, client: Client, pause: Callable[[], Awaitable[None]], options: Options, namespace: str = "default") -> None:
        self.client, self.pause, self.options, self.namespace = client, pause, options, namespace
        self.uids: dict[tuple[str, str], str] = {}
        self.pcs: Body = {}

    def moved(self, client: Client, pause: Callable[[], Awaitable[None]]) -> "Grove":
        """The same operator in another cluster, which is as this one's."""
        moved = Grove(client, pause, self.options, self.namespace)
        moved.uids, moved.pcs = dict(self.uids), deepcopy(self.pcs)
        return moved

    @property
    def rendering(self) -> Rendering:
        """The children of the set as it is stored."""
        return Rendering(self.pcs, self.options)

    async def deploy(self, manifest: Mapping[str, Any], *, gated: Iterable[str] = ()) -> None:
        """A user creates the set, and the operator brings it to rest. The pods of the cliques in `gated` keep the gate."""
        self.pcs = stored(manifest, self.options)
        await self.create(Child(kinds.PODCLIQUESET, self._with_finalizer(), ("", "")))
        cliques = []
        for child in self.rendering.children():
            await self.create(child)
            if child.kind is kinds.PODCLIQUE:
                cliques.append(child)
        await self.pause()
        for clique in cliques:
            await self.start(clique, gated=clique.name in set(gated))
        await self._list_pods_in_gangs()
        await self.pause()
        await self.report()

    def _with_finalizer(self) -> Body:
        return {**self.pcs, "metadata": {**self.pcs["metadata"], "finalizers": [SET_FINALIZER]}}

    async def start(self, clique: Child, indices: Sequence[int] | None = None, *, gated: bool = False) -> None:
        """Create pods of a PodClique."""
        for pod in self.rendering.pods(clique, indices, gated=gated):
            await self.create(pod)

    async def create(self, child: Child) -> Body:
        """Create an object as the operator, with its owner."""
        body = child.body
        if child.owner[0]:
            kind, name = child.owner
            version = "scheduler.grove.io/v1alpha1" if kind == "PodGang" else "grove.io/v1alpha1"
            reference: Body = {"apiVersion": version, "kind": kind, "name": name, "uid": self.uids[child.owner]}
            reference |= {"controller": True, "blockOwnerDeletion": True}
            body = {**body, "metadata": {**body["metadata"], "ownerReferences": [reference]}}
        created = await self.client.create(child.kind, self.namespace, body)
        self.uids[child.kind.name, created["metadata"]["name"]] = created["metadata"]["uid"]
        return created

    async def live(self, kind: Kind) -> list[Body]:
        """The objects of the set of that kind."""
        selector = f"app.kubernetes.io/part-of={self.rendering.name}"
        return [dict(item) for item in (await self.client.list(kind, self.namespace, labels=selector)).items]

    async def begin_update(self, manifest: Mapping[str, Any], *, pods: int = 0, replicas: Iterable[str] = ()) -> None:
        """The user edits the set, and the operator has begun: every standalone PodClique has the new template, `pods` pods of the first
        one and the group replicas in `replicas` (the prefixes of their PodCliques' names) are replaced."""
        self.pcs = stored(manifest, self.options)
        await self.client.patch(kinds.PODCLIQUESET, self.namespace, self.rendering.name, {"spec": self.pcs["spec"]})
        cliques = {child.name: child for child in self.rendering.children() if child.kind is kinds.PODCLIQUE}
        standalone = {name: child for name, child in cliques.items() if child.owner[0] == "PodCliqueSet"}
        for name, child in standalone.items():
            meta = child.body["metadata"]
            patch = {"metadata": {"labels": meta["labels"]}, "spec": {"podSpec": child.body["spec"]["podSpec"]}}
            await self.client.patch(kinds.PODCLIQUE, self.namespace, name, patch)
        live = sorted(await self.live(kinds.POD), key=lambda pod: (pod["metadata"]["labels"][CLIQUE], pod["spec"]["hostname"]))
        first = [pod for pod in live if pod["metadata"]["labels"][CLIQUE] == next(iter(standalone), "")]
        for k, pod in enumerate(first[:pods]):
            await self._delete(kinds.POD, pod["metadata"]["name"])
            await self.start(cliques[pod["metadata"]["labels"][CLIQUE]], [k])
        for prefix in replicas:
            for name in [name for name in cliques if name.startswith(f"{prefix}-")]:
                for pod in live:
                    if pod["metadata"]["labels"][CLIQUE] == name:
                        await self._delete(kinds.POD, pod["metadata"]["name"])
                await self._delete(kinds.PODCLIQUE, name)
                await self.create(cliques[name])
                await self.start(cliques[name])
        await self._list_pods_in_gangs()
        await self.pause()
        await self.report(updating=True)

    async def _delete(self, kind: Kind, name: str) -> None:
        """Delete an object at once, whatever finalizer of the operator it has."""
        if kind is not kinds.POD:
            await self.client.patch(kind, self.namespace, name, {"metadata": {"finalizers": None}})
        await self.client.delete(kind, self.namespace, name, grace=0)

    async def _pods_by_clique(self) -> dict[str, list[Body]]:
        by_clique: dict[str, list[Body]] = {}
        for pod in await self.live(kinds.POD):
            by_clique.setdefault(pod["metadata"]["labels"][CLIQUE], []).append(pod)
        return by_clique

    async def _list_pods_in_gangs(self) -> list[str]:
        """Fill in the pods of every gang. Returns the names of the gangs."""
        by_clique = await self._pods_by_clique()
        names = {name: [pod["metadata"]["name"] for pod in pods] for name, pods in by_clique.items()}
        gangs = [gang for i in self.rendering.indices for gang in self.rendering.gangs(i, names)]
        for gang in gangs:
            await self.client.patch(kinds.PODGANG, self.namespace, gang.name, {"spec": gang.body["spec"]})
        return [gang.name for gang in gangs]

    async def report(self, *, updating: bool = False) -> None:
        """Fill in the pods of gangs, and write every status."""
        by_clique = await self._pods_by_clique()
        for gang in await self._list_pods_in_gangs():
            await self._status(kinds.PODGANG, gang, _gang_status())
        cliques = await self.live(kinds.PODCLIQUE)
        statuses = {clique["metadata"]["name"]: self._clique_status(clique, by_clique, updating=updating) for clique in cliques}
        for name, status in statuses.items():
            await self._status(kinds.PODCLIQUE, name, status)
        for group in await self.live(kinds.SCALING_GROUP):
            await self._status(
                kinds.SCALING_GROUP, group["metadata"]["name"], self._group_status(group, cliques, statuses, updating=updating)
            )
        await self._status(kinds.PODCLIQUESET, self.rendering.name, self._set_status(statuses, updating=updating))

    async def _status(self, kind: Kind, name: str, status: Body) -> None:
        await self.client.patch(kind, self.namespace, name, {"status": status}, subresource="status")

    @property
    def _selector(self) -> str:
        return f"app.kubernetes.io/managed-by=grove-operator,app.kubernetes.io/part-of={self.rendering.name}"

    def _clique_status(self, clique: Body, by_clique: Mapping[str, list[Body]], *, updating: bool) -> Body:
        meta, spec = clique["metadata"], clique["spec"]
        pods, minimum, at = by_clique.get(meta["name"], []), spec["minAvailable"], meta["creationTimestamp"]
        hash, generation = meta["labels"][HASH], generation_hash(self.pcs)
        counts = {
            "replicas": len(pods),
            "readyReplicas": sum(_is(pod, "Ready") for pod in pods),
            "scheduledReplicas": sum(_is(pod, "PodScheduled") for pod in pods),
            "scheduleGatedReplicas": sum(bool(pod["spec"].get("schedulingGates")) for pod in pods),
            "updatedReplicas": sum(pod["metadata"]["labels"][HASH] == hash for pod in pods),
        }
        found = counts["scheduledReplicas"]
        status: Body = {**counts, "observedGeneration": meta.get("generation", 1)}
        is_current = not updating or counts["updatedReplicas"] == counts["replicas"]
        if is_current and (GROUP not in meta["labels"] or hash in self._hashes):
            status |= {"currentPodTemplateHash": hash, "currentPodCliqueSetGenerationHash": generation}
        if GROUP not in meta["labels"]:
            status["hpaPodSelector"] = f"{self._selector},{CLIQUE}={meta['name']}"
            progress = {"updateStartedAt": at, "podCliqueSetGenerationHash": generation, "podTemplateHash": hash}
            status["updateProgress"] = progress | ({"updateEndedAt": at} if is_current else {})
        breached = _condition("MinAvailableBreached", "Unknown", "UpdateInProgress", "Update is in progress", at)
        if is_current:
            text = f"Either sufficient ready or starting pods found. expected at least: {minimum}, found: {found}"
            breached = _condition("MinAvailableBreached", "False", "SufficientReadyPods", text, at)
        if found < minimum:
            text = f"Scheduled replicas ({found}) below MinAvailable ({minimum})"
            breached = _condition("MinAvailableBreached", "True", "ScheduledReplicasBelowMinAvailable", text, at)
        enough, counts_text = found >= minimum, f"expected at least: {minimum}, found: {found}"
        reason = "SufficientScheduledPods" if enough else "InsufficientScheduledPods"
        text = f"Sufficient scheduled pods found. {counts_text}" if enough else f"Insufficient scheduled pods. {counts_text}"
        status["conditions"] = [_condition("PodCliqueScheduled", str(enough), reason, text, at), breached]
        return status

    @property
    def _hashes(self) -> set[str]:
        return {clique_hash(self.pcs, clique) for clique in self.pcs["spec"]["template"]["cliques"]}

    def _group_status(self, group: Body, cliques: Sequence[Body], statuses: Mapping[str, Body], *, updating: bool) -> Body:
        meta, spec = group["metadata"], group["spec"]
        members = [clique for clique in cliques if clique["metadata"]["labels"].get(GROUP) == meta["name"]]
        by_replica: dict[str, list[Body]] = {}
        for clique in members:
            by_replica.setdefault(clique["metadata"]["labels"][J], []).append(clique)
        ready = sum(all(_has_minimum(clique, statuses) for clique in replica) for replica in by_replica.values())
        generation = generation_hash(self.pcs)
        stale = [clique for clique in members if clique["metadata"]["labels"][HASH] not in self._hashes]
        text = f"PCSG replicas not in breach ({ready}) meets MinAvailable ({spec['minAvailable']})"
        reason = "SufficientAvailablePodCliqueScalingGroupReplicas"
        status: Body = {
            "observedGeneration": meta.get("generation", 1),
            "replicas": spec["replicas"],
            "scheduledReplicas": ready,
            "availableReplicas": ready,
            "updatedReplicas": ready - len({clique["metadata"]["labels"][J] for clique in stale}),
            "selector": f"{self._selector},{GROUP}={meta['name']}",
            "conditions": [_condition("MinAvailableBreached", "False", reason, text, meta["creationTimestamp"])],
        }
        if not stale:
            return status | {"currentPodCliqueSetGenerationHash": generation}
        if updating:
            status["updateProgress"] = {
                "updateStartedAt": meta["creationTimestamp"],
                "podCliqueSetGenerationHash": generation,
                "updatedPodCliquesCount": len(members) - len(stale),
                "totalPodCliquesCount": len(members),
            }
        return status

    def _set_status(self, statuses: Mapping[str, Body], *, updating: bool) -> Body:
        replicas = self.pcs["spec"]["replicas"]
        at = "2026-01-01T00:00:00Z"
        status: Body = {
            "observedGeneration": 1,
            "replicas": replicas,
            "availableReplicas": replicas,
            "updatedReplicas": 0 if updating else replicas,
            "currentGenerationHash": generation_hash(self.pcs),
            "hpaPodSelector": self._selector,
        }
        if updating:
            status["updateProgress"] = {"updateStartedAt": at, "currentlyUpdating": [{"replicaIndex": 0, "updateStartedAt": at}]}
        return status


def _has_minimum(clique: Body, statuses: Mapping[str, Body]) -> bool:
    return int(statuses[clique["metadata"]["name"]]["readyReplicas"]) >= int(clique["spec"]["minAvailable"])


def _is(pod: Body, condition: str) -> bool:
    return is_true((pod.get("status") or {}).get("conditions") or (), condition)


def _condition(type: str, status: str, reason: str, message: str, at: str) -> Body:
    return {"type": type, "status": status, "reason": reason, "message": message, "lastTransitionTime": at}


def _gang_status() -> Body:
    at = "2026-01-01T00:00:00Z"
    condition = _condition("Initialized", "True", "PodGangPodsCreated", "PodGang is fully initialized", at)
    return {"phase": "Pending", "conditions": [condition]}
