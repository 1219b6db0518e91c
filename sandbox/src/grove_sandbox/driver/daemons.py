"""Daemons: the processes in the DaemonSets' pods; each joins the clique of its node, reports readiness, and leaves when stopped."""

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from grove_sandbox.actors.body import Body, Key, conditions_of, is_deleting, is_finished, labels_of, owners_of, status_of, uid_of
from grove_sandbox.actors.nodes import is_simulated
from grove_sandbox.actors.options import DriverOptions
from grove_sandbox.actors.work_queue import WorkQueue
from grove_sandbox.driver.cache import Cache, RetryLater, daemons_in
from grove_sandbox.driver.status import NOT_READY, READY
from grove_sandbox.installation.kinds import CLIQUE_ID
from grove_sandbox.product import AlreadyExists, Client, Clock, NotFound, conditions, nvidia


class Daemons:
    """The daemons on all simulated nodes."""

    def __init__(self, client: Client, clock: Clock, options: DriverOptions, cache: Cache) -> None:
        self._client, self._options, self._cache = client, options, cache
        self._queue: WorkQueue[Key] = WorkQueue(clock)
        cache.daemons.subscribe(self._on_pod)

    async def run(self) -> None:
        """Run the daemons until cancelled."""
        # One worker, because all daemons of a clique write the same object.
        await self._queue.run(self._process, workers=1)

    def _on_pod(self, key: Key, old: Body | None, new: Body | None) -> None:
        if new is not None:
            self._queue.add(key)

    async def _process(self, key: Key) -> None:
        pod = self._cache.daemons.get(*key)
        node = self._cache.nodes.get("", pod["spec"].get("nodeName", "")) if pod else None
        if pod is None or node is None or not is_simulated(node):
            return
        if is_deleting(pod) or is_finished(pod):
            return await self._leave(pod)
        if status_of(pod).get("phase") != "Running":
            return
        fabric = labels_of(node).get(nvidia.NVLINK_CLIQUE_LABEL, "")
        if labels_of(pod).get(CLIQUE_ID) != fabric:
            with suppress(NotFound):
                await self._cache.daemons.patch(self._client, pod, {"metadata": {"labels": {CLIQUE_ID: fabric}}}, by_uid=True)
        if fabric:
            await self._join(pod, fabric)

    async def _join(self, pod: Body, fabric: str) -> None:
        """Add or update the pod's entry in the clique. Raises `RetryLater` if the clique is full."""
        domain, node = labels_of(pod)[nvidia.DOMAIN_LABEL], pod["spec"]["nodeName"]
        clique = self._cache.cliques.get(self._options.namespace, f"{domain}.{fabric}")
        if clique is None:
            return await self._create_clique(domain, fabric, pod)
        daemons, owners = daemons_in(clique), owners_of(clique)
        old = next((daemon for daemon in daemons if daemon["nodeName"] == node), None)
        others = [daemon for daemon in daemons if daemon is not old]
        index = old["index"] if old and "index" in old else self._free_index(others)
        entry = _entry(pod, fabric, index)
        if entry != old or not any(owner["uid"] == uid_of(pod) for owner in owners):
            other_owners = [owner for owner in owners if owner["uid"] != uid_of(pod)]
            await self._write(clique, [*others, entry], [*other_owners, _owner(pod)])

    def _free_index(self, daemons: Iterable[Body]) -> int:
        taken = {daemon.get("index") for daemon in daemons}
        free = next((index for index in range(self._options.max_nodes) if index not in taken), None)
        if free is None:
            raise RetryLater(f"no available indices within maxNodesPerIMEXDomain ({self._options.max_nodes})")
        return free

    async def _create_clique(self, domain: str, fabric: str, pod: Body) -> None:
        metadata = {
            "name": f"{domain}.{fabric}",
            "namespace": self._options.namespace,
            "labels": {nvidia.DOMAIN_LABEL: domain, CLIQUE_ID: fabric},
            "ownerReferences": [_owner(pod)],
        }
        body = {
            "apiVersion": nvidia.COMPUTE_DOMAIN_CLIQUE.api_version,
            "kind": nvidia.COMPUTE_DOMAIN_CLIQUE.name,
            "metadata": metadata,
            "daemons": [_entry(pod, fabric, 0)],
        }
        try:
            clique = await self._client.create(nvidia.COMPUTE_DOMAIN_CLIQUE, self._options.namespace, body)
        except AlreadyExists:
            raise RetryLater("another daemon has created the clique") from None
        self._cache.cliques.apply("ADDED", clique)

    async def _leave(self, pod: Body) -> None:
        """The daemon has stopped: remove the entry of its address."""
        address = status_of(pod).get("podIP")
        for clique in self._cache.cliques.of(labels_of(pod)[nvidia.DOMAIN_LABEL]):
            daemons = daemons_in(clique)
            others = [daemon for daemon in daemons if daemon["ipAddress"] != address]
            if len(others) < len(daemons):
                await self._write(clique, others, owners_of(clique))

    async def _write(self, clique: Body, daemons: list[Any], owners: Iterable[Any]) -> None:
        ordered = sorted(daemons, key=lambda daemon: daemon.get("index", 0))
        with suppress(NotFound):
            patch = {"metadata": {"ownerReferences": list(owners)}, "daemons": ordered or None}
            await self._cache.cliques.patch(self._client, clique, patch)


def _entry(pod: Body, fabric: str, index: int) -> dict[str, Any]:
    status = READY if conditions.is_true(conditions_of(pod), "Ready") else NOT_READY
    address = status_of(pod).get("podIP", "")
    return {"nodeName": pod["spec"]["nodeName"], "ipAddress": address, "cliqueID": fabric, "index": index, "status": status}


def _owner(pod: Body) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "name": pod["metadata"]["name"], "uid": uid_of(pod)}
