"""Daemons: what runs in the pods of DaemonSets: it joins the clique of its node, says when it is ready, and leaves when stopped."""

from collections.abc import Iterable
from typing import Any

from engine import conditions
from engine.errors import AlreadyExists, NotFound
from engine.runtime.client import Client
from engine.runtime.clock import Clock
from providers.sandbox.actors.agenda import Agenda
from providers.sandbox.actors.body import Body, Key, conditions_of, is_deleting, is_finished, key_of, labels_of, status_of, uid_of
from providers.sandbox.actors.nodes import is_simulated
from providers.sandbox.actors.settings import Driver
from providers.sandbox.driver.facts import Facts, NotYet, daemons_in
from providers.sandbox.driver.status import NOT_READY, READY
from providers.sandbox.installation.kinds import CLIQUE, CLIQUE_ID, DOMAIN, FABRIC
from resources.base.kinds import POD


class Daemons:
    """All the daemons on simulated nodes."""

    def __init__(self, client: Client, clock: Clock, settings: Driver, facts: Facts) -> None:
        self._client, self._settings, self._facts = client, settings, facts
        # One clique is written by many: they take turns.
        self._agenda: Agenda[Key] = Agenda(clock)
        facts.daemons.tell(self._saw_pod)

    async def run(self) -> None:
        """Run, for ever."""
        await self._agenda.work(self._look, workers=1)

    def _saw_pod(self, key: Key, old: Body | None, new: Body | None) -> None:
        if new is not None:
            self._agenda.add(key)

    async def _look(self, key: Key) -> None:
        pod = self._facts.daemons.get(*key)
        node = self._facts.nodes.get("", pod["spec"].get("nodeName", "")) if pod else None
        if pod is None or node is None or not is_simulated(node):
            return
        if is_deleting(pod) or is_finished(pod):
            return await self._leave(pod)
        if status_of(pod).get("phase") != "Running":
            return
        fabric = labels_of(node).get(FABRIC, "")
        if labels_of(pod).get(CLIQUE_ID) != fabric:
            await self._label(pod, fabric)
        if fabric:
            await self._join(pod, fabric)

    async def _label(self, pod: Body, fabric: str) -> None:
        patch = {"metadata": {"uid": uid_of(pod), "labels": {CLIQUE_ID: fabric}}}
        try:
            self._facts.daemons.assume(await self._client.patch(POD, *key_of(pod), patch))
        except NotFound:
            return

    async def _join(self, pod: Body, fabric: str) -> None:
        """Enter the clique, or say there that something has changed. Raises `NotYet` when it is full."""
        domain, node = labels_of(pod)[DOMAIN], pod["spec"]["nodeName"]
        clique = self._facts.cliques.get(self._settings.namespace, f"{domain}.{fabric}")
        if clique is None:
            return await self._found(domain, fabric, pod)
        daemons = daemons_in(clique)
        old = next((one for one in daemons if one["nodeName"] == node), None)
        others = [one for one in daemons if one is not old]
        index = old["index"] if old and "index" in old else self._free_index(others)
        entry = _entry(pod, fabric, index)
        owners = clique["metadata"].get("ownerReferences") or []
        if entry != old or not any(one["uid"] == uid_of(pod) for one in owners):
            kept = [one for one in owners if one["uid"] != uid_of(pod)]
            await self._write(clique, [*others, entry], [*kept, _owner(pod)])

    def _free_index(self, daemons: Iterable[Body]) -> int:
        taken = {one.get("index") for one in daemons}
        free = next((index for index in range(self._settings.max_nodes) if index not in taken), None)
        if free is None:
            raise NotYet(f"no available indices within maxNodesPerIMEXDomain ({self._settings.max_nodes})")
        return free

    async def _found(self, domain: str, fabric: str, pod: Body) -> None:
        metadata = {
            "name": f"{domain}.{fabric}",
            "namespace": self._settings.namespace,
            "labels": {DOMAIN: domain, CLIQUE_ID: fabric},
            "ownerReferences": [_owner(pod)],
        }
        body = {"apiVersion": CLIQUE.api_version, "kind": CLIQUE.name, "metadata": metadata, "daemons": [_entry(pod, fabric, 0)]}
        try:
            made = await self._client.create(CLIQUE, self._settings.namespace, body)
        except AlreadyExists:
            raise NotYet("somebody else has founded the clique") from None
        self._facts.cliques.saw("ADDED", made)

    async def _leave(self, pod: Body) -> None:
        """Stopped: out of the clique, by address."""
        address = status_of(pod).get("podIP")
        for clique in self._facts.cliques.of(labels_of(pod)[DOMAIN]):
            daemons = daemons_in(clique)
            kept = [one for one in daemons if one["ipAddress"] != address]
            if len(kept) < len(daemons):
                await self._write(clique, kept, clique["metadata"].get("ownerReferences") or [])

    async def _write(self, clique: Body, daemons: list[Any], owners: list[Any]) -> None:
        metadata = {"resourceVersion": clique["metadata"]["resourceVersion"], "ownerReferences": owners}
        ordered = sorted(daemons, key=lambda one: one.get("index", 0))
        try:
            self._facts.cliques.assume(
                await self._client.patch(CLIQUE, *key_of(clique), {"metadata": metadata, "daemons": ordered or None})
            )
        except NotFound:
            return


def _entry(pod: Body, fabric: str, index: int) -> dict[str, Any]:
    status = READY if conditions.is_true(conditions_of(pod), "Ready") else NOT_READY
    address = status_of(pod).get("podIP", "")
    return {"nodeName": pod["spec"]["nodeName"], "ipAddress": address, "cliqueID": fabric, "index": index, "status": status}


def _owner(pod: Body) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "name": pod["metadata"]["name"], "uid": uid_of(pod)}
