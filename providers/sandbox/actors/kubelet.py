"""Kubelets: one actor that plays them all, for every node that is labelled as simulated."""

import math
from collections import Counter
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final, NamedTuple

import anyio

from engine import conditions
from engine.errors import NotFound
from engine.runtime.client import Client
from engine.runtime.clock import Clock
from engine.verdict import Verdict, earliest
from providers.sandbox.actors.addresses import Addresses
from providers.sandbox.actors.agenda import Agenda
from providers.sandbox.actors.body import Body, Key, conditions_of, is_deleting, is_finished, key_of, labels_of, status_of, uid_of
from providers.sandbox.actors.claimed import asks_for_claims, claims_of, users_of
from providers.sandbox.actors.devices import Devices, has_begun
from providers.sandbox.actors.life import Scene, departed, differs, life
from providers.sandbox.actors.moments import read
from providers.sandbox.actors.nodes import is_simulated, keep_ready
from providers.sandbox.actors.reflector import Reflection, reflect
from providers.sandbox.actors.script import script_of
from providers.sandbox.actors.settings import Settings
from resources.base.kinds import NODE, POD, RESOURCE_CLAIM
from resources.base.labels import PODCLIQUE, PODGANG

WAITER: Final = "grove-initc"
"""The init container that holds a pod back until other cliques of its gang are ready; it is told which on its command line."""
PARENT: Final = "--podcliques="


BEGUN: Final = Verdict(True)


class Crew(NamedTuple):
    """The pods of one clique in one gang: what a waiter counts."""

    namespace: str
    gang: str
    clique: str


async def run(client: Client, clock: Clock, settings: Settings) -> None:
    """Bring bound pods to life, let them fail as their annotations ask, and let them go when they are deleted."""
    await Kubelets(client, clock, settings).run()


class Kubelets:
    """What all the kubelets know: pods, nodes, who is ready, and who waits for whom. All of it can be read anew from the API."""

    def __init__(self, client: Client, clock: Clock, settings: Settings) -> None:
        self._client, self._clock, self._settings = client, clock, settings
        self._agenda: Agenda[Key] = Agenda(clock)
        self._node_agenda: Agenda[str] = Agenda(clock)
        self._pods = Reflection(POD, self._saw_pod)
        self._nodes = Reflection(NODE, self._saw_node)
        self._claims = Reflection(RESOURCE_CLAIM, self._saw_claim)
        self._claim_agenda: Agenda[Key] = Agenda(clock)
        self._devices = Devices(client, clock, self._pods, self._claims, settings.termination)
        self._addresses = Addresses()
        self._ready: Counter[Crew] = Counter()
        self._waiting: dict[Crew, dict[Key, int]] = {}

    async def run(self) -> None:
        """Play, for ever."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(reflect, self._client, self._clock, self._pods, self._nodes, self._claims)
            tasks.start_soon(keep_ready, self._client, self._clock, self._settings, self._nodes, self._node_agenda)
            # Addresses are given out only once those that are taken are known.
            await self._pods.synced.wait()
            tasks.start_soon(self._agenda.work, self._look)
            tasks.start_soon(self._claim_agenda.work, self._devices.look)

    def _saw_pod(self, key: Key, old: Body | None, new: Body | None) -> None:
        if old is not None and (new is None or uid_of(new) != uid_of(old)):
            self._addresses.drop(uid_of(old))
        if new is not None and (address := status_of(new).get("podIP")):
            self._addresses.hold(uid_of(new), address)
        self._count(old, new)
        self._agenda.add(key)
        if old is not None and asks_for_claims(old):
            for claim in claims_of(old):
                self._claim_agenda.add(claim)

    def _saw_node(self, key: Key, old: Body | None, new: Body | None) -> None:
        self._node_agenda.add(key[1])
        if is_simulated(new) and not is_simulated(old):
            for pod_key, pod in self._pods.objects.items():
                if pod["spec"].get("nodeName") == key[1]:
                    self._agenda.add(pod_key)

    def _saw_claim(self, key: Key, old: Body | None, new: Body | None) -> None:
        self._claim_agenda.add(key)
        for pod in dict.fromkeys((*users_of(old), *users_of(new))):
            self._agenda.add(pod)

    def _count(self, old: Body | None, new: Body | None) -> None:
        """Keep the number of ready pods per crew; wake those who waited for exactly that."""
        before, after = _ready_in(old), _ready_in(new)
        if before == after:
            return
        if before is not None:
            self._ready[before] -= 1
        if after is not None:
            self._ready[after] += 1
            waiting = self._waiting.get(after, {})
            for key in [key for key, needed in waiting.items() if needed <= self._ready[after]]:
                del waiting[key]
                self._agenda.add(key)

    async def _look(self, key: Key) -> float | None:
        pod = self._pods.get(*key)
        node = self._nodes.get("", pod["spec"].get("nodeName", "")) if pod else None
        if pod is None or node is None or not is_simulated(node):
            return None
        if is_deleting(pod):
            return await self._let_go(pod)
        prepared = await self._devices.ready(pod) if asks_for_claims(pod) and not has_begun(pod) else BEGUN
        verdict = life(pod, script_of(pod), self._scene(pod, node, may_begin=prepared.value))
        if differs(verdict.value, status_of(pod)):
            await self._live_on(pod, verdict.value)
        until = earliest((verdict.until, prepared.until))
        # Lives go by whole seconds: before the next one there would be nothing new to see.
        return math.ceil(until.timestamp()) - self._clock.now().timestamp() if until else None

    async def _live_on(self, pod: Body, status: Mapping[str, Any]) -> None:
        """Write the status; that a pod is over only once its devices are given back: others would take them for free."""
        over = status["phase"] in ("Succeeded", "Failed")
        if not over or not asks_for_claims(pod) or not self._devices.holds_devices(pod):
            return await self._write(pod, status)
        await self._devices.give_back(pod)

    def _scene(self, pod: Body, node: Body, *, may_begin: bool) -> Scene:
        addresses = status_of(node).get("addresses") or ()
        host = next((one["address"] for one in addresses if one["type"] == "InternalIP"), "")
        address = host if pod["spec"].get("hostNetwork") else self._addresses.of(uid_of(pod))
        lost = asks_for_claims(pod) and self._devices.is_lost(pod)
        now = self._clock.now().replace(microsecond=0)
        return Scene(now, address, host, lambda container: self._may_end(pod, container), may_begin, lost)

    def _may_end(self, pod: Body, container: Mapping[str, Any]) -> bool:
        """Whether all that a waiter waits for is there; if not, the pod is looked at again when it is."""
        if container["name"] != WAITER:
            return True
        missing = {crew: needed for crew, needed in _parents(pod, container).items() if self._ready[crew] < needed}
        for crew, needed in missing.items():
            self._waiting.setdefault(crew, {})[key_of(pod)] = needed
        return not missing

    async def _let_go(self, pod: Body) -> float | None:
        """Once its processes have had their time, say that they ended, and take the pod from the API for good."""
        grace = pod["metadata"].get("deletionGracePeriodSeconds") or 0
        if grace == 0 and is_finished(pod):
            return None  # Only finalizers keep it: somebody else's turn.
        asked = script_of(pod).terminate_after
        obeyed = min(float(grace), asked.total_seconds() if asked is not None else self._settings.termination)
        at = read(pod["metadata"]["deletionTimestamp"])
        left = (at + timedelta(seconds=obeyed - grace) - self._clock.now()).total_seconds() if at else 0.0
        if left > 0:
            return left
        try:
            if not is_finished(pod):
                if asks_for_claims(pod) and self._devices.holds_devices(pod):
                    # Devices go back after the containers have stopped and before anybody is told: others would take them for free.
                    await self._devices.give_back(pod)
                    return None
                await self._write(pod, departed(pod, self._clock.now()))
            await self._client.delete(POD, *key_of(pod), uid=uid_of(pod), grace=0)
        except NotFound:
            return None
        return None

    async def _write(self, pod: Body, status: Mapping[str, Any]) -> None:
        """Strategic, because conditions of others stand beside ours; bound to the uid, because a successor may have the name."""
        patch = {"metadata": {"uid": uid_of(pod)}, "status": status}
        self._pods.assume(await self._client.patch(POD, *key_of(pod), patch, how="strategic", subresource="status"))


def _ready_in(pod: Body | None) -> Crew | None:
    """The crew that the pod counts for, if it is ready and stays."""
    if pod is None or is_deleting(pod) or not conditions.is_true(conditions_of(pod), "Ready"):
        return None
    return Crew(pod["metadata"]["namespace"], labels_of(pod).get(PODGANG, ""), labels_of(pod).get(PODCLIQUE, ""))


def _parents(pod: Body, container: Mapping[str, Any]) -> dict[Crew, int]:
    """How many ready pods of which cliques of its own gang a waiter waits for."""
    namespace, gang = pod["metadata"]["namespace"], labels_of(pod).get(PODGANG, "")
    asked = [arg.removeprefix(PARENT).rpartition(":") for arg in container.get("args") or () if arg.startswith(PARENT)]
    return {Crew(namespace, gang, clique): int(count) for clique, _, count in asked if count.isdecimal() and len(count) < 10}
