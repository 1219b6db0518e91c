"""Statuses of domains: which nodes have joined, and whether the domain is Ready; three writers who do not always agree."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import anyio

from engine import conditions
from engine.errors import ClusterError, NotFound
from engine.runtime.client import Client
from engine.runtime.clock import Clock
from providers.sandbox.actors.agenda import Agenda
from providers.sandbox.actors.body import Body, Key, conditions_of, key_of, labels_of, status_of, uid_of
from providers.sandbox.driver.facts import Facts, daemons_in
from providers.sandbox.driver.rounds import Rounds
from providers.sandbox.installation.kinds import CLIQUE, CLIQUE_ID, COMPUTE_DOMAIN, DOMAIN

READY, NOT_READY = "Ready", "NotReady"
EVERY: Final = 2.0
"""Seconds between two comparisons of who has joined with what the statuses say."""

Nodes = Sequence[dict[str, Any]]


def overall(domain: Body, nodes: Iterable[Body]) -> str:
    """Ready unless nodes are missing or not ready. With numNodes 0 a domain without any nodes is Ready: the word then means nothing."""
    joined = list(nodes)
    few = len(joined) < ((domain.get("spec") or {}).get("numNodes") or 0)
    return NOT_READY if few or any((node or {}).get("status") != READY for node in joined) else READY


class Statuses:
    """The writers: one after a domain has been served, one that counts ready daemons, and one in rounds."""

    def __init__(self, client: Client, clock: Clock, facts: Facts) -> None:
        self._client, self._facts = client, facts
        self._rounds = Rounds(clock, EVERY, self._sync)
        self._counts: Agenda[Key] = Agenda(clock)
        for seen in (facts.domains, facts.cliques, facts.daemons):
            seen.tell(lambda key, old, new: self._rounds.note())
        facts.daemon_sets.tell(lambda key, old, new: self._counts.add(key))

    async def run(self) -> None:
        """Write, for ever."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._rounds.go)
            tasks.start_soon(self._counts.work, self._count)

    async def write(self, domain: Body, status: str, nodes: Nodes | None = None) -> None:
        """The overall status; and the nodes, where they are given."""
        live = status_of(domain)
        wanted: dict[str, Any] = {"status": status} | ({} if nodes is None else {"nodes": list(nodes) or None})
        if all(live.get(name) == value for name, value in wanted.items()):
            return
        patch = {"metadata": {"resourceVersion": domain["metadata"]["resourceVersion"]}, "status": wanted}
        try:
            self._facts.domains.assume(await self._client.patch(COMPUTE_DOMAIN, *key_of(domain), patch, subresource="status"))
        except NotFound:
            return

    async def _count(self, key: Key) -> None:
        """As many daemons are ready as the domain wants nodes: so it is Ready, whatever its nodes say; also where both are 0."""
        daemon_set = self._facts.daemon_sets.get(*key)
        domain = self._facts.domain(labels_of(daemon_set).get(DOMAIN, "")) if daemon_set else None
        if daemon_set is None or domain is None:
            return
        wanted = (domain.get("spec") or {}).get("numNodes") or 0
        if (status_of(daemon_set).get("numberReady") or 0) == wanted:
            await self.write(domain, READY)

    async def _sync(self) -> None:
        """Bring the nodes of every domain up to date, those on their way out included; first take out of the cliques who is gone."""
        for clique in list(self._facts.cliques.objects.values()):
            await self._prune(clique)
        failure: ClusterError | None = None
        for domain in list(self._facts.domains.objects.values()):
            nodes = self._nodes(uid_of(domain))
            if nodes != list(status_of(domain).get("nodes") or ()):
                try:
                    await self.write(domain, overall(domain, nodes), nodes)
                except ClusterError as error:
                    failure = error  # One domain that cannot be written keeps no other from it.
        if failure is not None:
            raise failure

    async def _prune(self, clique: Body) -> None:
        there = {pod["spec"].get("nodeName") for pod in self._facts.daemons.of(labels_of(clique).get(DOMAIN, ""))}
        daemons = daemons_in(clique)
        kept = [one for one in daemons if one["nodeName"] in there]
        if len(kept) == len(daemons):
            return
        patch = {"metadata": {"resourceVersion": clique["metadata"]["resourceVersion"]}, "daemons": kept or None}
        try:
            self._facts.cliques.assume(await self._client.patch(CLIQUE, *key_of(clique), patch))
        except NotFound:
            return

    def _nodes(self, uid: str) -> list[dict[str, Any]]:
        """Who has joined a clique, and the daemons of nodes that have no fabric."""
        joined = [_joined(one) for clique in self._facts.cliques.of(uid) for one in daemons_in(clique)]
        alone = [_alone(pod) for pod in self._facts.daemons.of(uid) if labels_of(pod).get(CLIQUE_ID) == "" and status_of(pod).get("podIP")]
        return sorted((*joined, *alone), key=lambda node: (node["cliqueID"], node["index"], node["name"]))


def _joined(daemon: Body) -> dict[str, Any]:
    node = {"name": daemon["nodeName"], "ipAddress": daemon["ipAddress"], "cliqueID": daemon["cliqueID"]}
    return node | {"index": daemon.get("index", 0), "status": daemon.get("status", NOT_READY)}


def _alone(pod: Body) -> dict[str, Any]:
    status = READY if conditions.is_true(conditions_of(pod), "Ready") else NOT_READY
    return {"name": pod["spec"]["nodeName"], "ipAddress": status_of(pod)["podIP"], "cliqueID": "", "index": -1, "status": status}
