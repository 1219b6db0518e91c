"""Status: the nodes of a domain and its overall status, by three writers that may disagree, as the driver's do."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, Final

import anyio

from grove_sandbox.actors.body import Body, Key, conditions_of, labels_of, status_of, uid_of
from grove_sandbox.actors.work_queue import WorkQueue
from grove_sandbox.driver.cache import Cache, daemons_in
from grove_sandbox.driver.periodic import PeriodicTask
from grove_sandbox.installation.kinds import CLIQUE_ID
from grove_sandbox.product import Client, Clock, ClusterError, NotFound, conditions, nvidia

READY, NOT_READY = "Ready", "NotReady"
PERIOD: Final = 2.0
"""Seconds between two updates of the nodes in the statuses."""

Nodes = Sequence[dict[str, Any]]


def overall_status(domain: Body, nodes: Iterable[Body]) -> str:
    """Ready unless nodes are missing or not ready. With numNodes 0 a domain without nodes is Ready, too."""
    joined = list(nodes)
    is_short = len(joined) < ((domain.get("spec") or {}).get("numNodes") or 0)
    return NOT_READY if is_short or any((node or {}).get("status") != READY for node in joined) else READY


class StatusWriters:
    """The writers: one after a domain has been set up, one that counts ready daemons, and a periodic one."""

    def __init__(self, client: Client, clock: Clock, cache: Cache) -> None:
        self._client, self._cache = client, cache
        self._periodic = PeriodicTask(clock, PERIOD, self._update_all)
        self._queue: WorkQueue[Key] = WorkQueue(clock)
        for store in (cache.domains, cache.cliques, cache.daemons):
            store.subscribe(lambda key, old, new: self._periodic.request())
        cache.daemon_sets.subscribe(lambda key, old, new: self._queue.add(key))

    async def run(self) -> None:
        """Write until cancelled."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._periodic.run)
            tasks.start_soon(self._queue.run, self._process_daemon_set)

    async def write(self, domain: Body, status: str, nodes: Nodes | None = None) -> None:
        """Write the overall status, and the nodes if they are given."""
        live = status_of(domain)
        desired: dict[str, Any] = {"status": status} | ({} if nodes is None else {"nodes": list(nodes) or None})
        if any(live.get(name) != value for name, value in desired.items()):
            with suppress(NotFound):
                await self._cache.domains.patch(self._client, domain, {"status": desired}, subresource="status")

    async def _process_daemon_set(self, key: Key) -> None:
        """If as many daemons are ready as the domain has nodes, it is Ready, whatever its nodes say; also if both are 0."""
        daemon_set = self._cache.daemon_sets.get(*key)
        domain = self._cache.domain(labels_of(daemon_set).get(nvidia.DOMAIN_LABEL, "")) if daemon_set else None
        if daemon_set is None or domain is None:
            return
        if (status_of(daemon_set).get("numberReady") or 0) == ((domain.get("spec") or {}).get("numNodes") or 0):
            await self.write(domain, READY)

    async def _update_all(self) -> None:
        """Remove daemons without pods from the cliques, and write the nodes of every domain, also of those that are being deleted."""
        for clique in list(self._cache.cliques.objects.values()):
            await self._prune(clique)
        failure: ClusterError | None = None
        for domain in list(self._cache.domains.objects.values()):
            nodes = self._nodes(uid_of(domain))
            if nodes != list(status_of(domain).get("nodes") or ()):
                try:
                    await self.write(domain, overall_status(domain, nodes), nodes)
                except ClusterError as error:
                    failure = error  # The other domains are written all the same.
        if failure is not None:
            raise failure

    async def _prune(self, clique: Body) -> None:
        nodes = {pod["spec"].get("nodeName") for pod in self._cache.daemons.of(labels_of(clique).get(nvidia.DOMAIN_LABEL, ""))}
        daemons = daemons_in(clique)
        kept = [daemon for daemon in daemons if daemon["nodeName"] in nodes]
        if len(kept) < len(daemons):
            with suppress(NotFound):
                await self._cache.cliques.patch(self._client, clique, {"daemons": kept or None})

    def _nodes(self, uid: str) -> list[dict[str, Any]]:
        """The daemons that have joined a clique, and those on nodes without a fabric."""
        in_cliques = [_clique_entry(daemon) for clique in self._cache.cliques.of(uid) for daemon in daemons_in(clique)]
        without_fabric = [
            _pod_entry(pod) for pod in self._cache.daemons.of(uid) if labels_of(pod).get(CLIQUE_ID) == "" and status_of(pod).get("podIP")
        ]
        return sorted((*in_cliques, *without_fabric), key=lambda node: (node["cliqueID"], node["index"], node["name"]))


def _clique_entry(daemon: Body) -> dict[str, Any]:
    node = {"name": daemon["nodeName"], "ipAddress": daemon["ipAddress"], "cliqueID": daemon["cliqueID"]}
    return node | {"index": daemon.get("index", 0), "status": daemon.get("status", NOT_READY)}


def _pod_entry(pod: Body) -> dict[str, Any]:
    status = READY if conditions.is_true(conditions_of(pod), "Ready") else NOT_READY
    return {"name": pod["spec"]["nodeName"], "ipAddress": status_of(pod)["podIP"], "cliqueID": "", "index": -1, "status": status}
