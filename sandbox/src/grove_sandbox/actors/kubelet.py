"""Kubelet: the kubelets of all simulated nodes, in one actor."""

import math
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Any, Final, NamedTuple

import anyio

from grove_sandbox.actors.addresses import Addresses
from grove_sandbox.actors.body import (
    Body,
    Key,
    conditions_of,
    is_deleting,
    is_finished,
    key_of,
    labels_of,
    parse_time,
    status_of,
    uid_of,
)
from grove_sandbox.actors.claim_fields import claims_of, pods_of, uses_claims
from grove_sandbox.actors.dra_manager import DraManager, has_started
from grove_sandbox.actors.nodes import is_simulated, keep_ready
from grove_sandbox.actors.options import ActorOptions
from grove_sandbox.actors.pod_status import NodeState, desired_status, differs, stopped_status
from grove_sandbox.actors.script import script_of
from grove_sandbox.actors.store import InformerStore, run_informers
from grove_sandbox.actors.work_queue import WorkQueue
from grove_sandbox.product import PODCLIQUE_LABEL, PODGANG_LABEL, Client, Clock, NotFound, Verdict, conditions, earliest, kinds

STARTUP_WAITER: Final = "grove-initc"
"""The init container that ends when the cliques on its command line have enough ready pods."""
PARENT: Final = "--podcliques="
PREPARED: Final = Verdict(True)


class GangClique(NamedTuple):
    """The pods of one clique in one gang, which a startup waiter counts."""

    namespace: str
    gang: str
    clique: str


async def run(client: Client, clock: Clock, options: ActorOptions) -> None:
    """Start bound pods, let them fail as their annotations say, and end them when they are deleted."""
    await Kubelets(client, clock, options).run()


class Kubelets:
    """Knows pods, nodes and claims, how many pods are ready, and which waiters wait for them, all of it from the API."""

    def __init__(self, client: Client, clock: Clock, options: ActorOptions) -> None:
        self._client, self._clock, self._options = client, clock, options
        self._queue: WorkQueue[Key] = WorkQueue(clock)
        self._node_queue: WorkQueue[str] = WorkQueue(clock)
        self._claim_queue: WorkQueue[Key] = WorkQueue(clock)
        self._pods = InformerStore(kinds.POD, self._on_pod)
        self._nodes = InformerStore(kinds.NODE, self._on_node)
        self._claims = InformerStore(kinds.RESOURCE_CLAIM, self._on_claim)
        self._dra = DraManager(client, clock, self._pods, self._claims, options.termination)
        self._addresses = Addresses()
        self._ready: Counter[GangClique] = Counter()
        self._waiters: dict[GangClique, dict[Key, int]] = {}
        """Pods that wait for a clique, and how many ready pods of it they need."""

    async def run(self) -> None:
        """Run the kubelets until cancelled."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run_informers, self._client, self._clock, self._pods, self._nodes, self._claims)
            tasks.start_soon(keep_ready, self._client, self._clock, self._options, self._nodes, self._node_queue)
            # No address is assigned before it is known which are taken.
            await self._pods.synced.wait()
            tasks.start_soon(self._queue.run, self._process)
            tasks.start_soon(self._claim_queue.run, self._dra.process_claim)

    def _on_pod(self, key: Key, old: Body | None, new: Body | None) -> None:
        if old is not None and (new is None or uid_of(new) != uid_of(old)):
            self._addresses.release(uid_of(old))
        if new is not None and (address := status_of(new).get("podIP")):
            self._addresses.assign(uid_of(new), address)
        self._count_ready(old, new)
        self._queue.add(key)
        for claim in claims_of(old):
            self._claim_queue.add(claim)

    def _on_node(self, key: Key, old: Body | None, new: Body | None) -> None:
        self._node_queue.add(key[1])
        if is_simulated(new) and not is_simulated(old):
            for pod_key, pod in self._pods.objects.items():
                if pod["spec"].get("nodeName") == key[1]:
                    self._queue.add(pod_key)

    def _on_claim(self, key: Key, old: Body | None, new: Body | None) -> None:
        self._claim_queue.add(key)
        for pod in dict.fromkeys((*pods_of(old), *pods_of(new))):
            self._queue.add(pod)

    def _count_ready(self, old: Body | None, new: Body | None) -> None:
        """Count the ready pods of each clique, and queue the waiters for which there are enough now."""
        before, after = _clique_if_ready(old), _clique_if_ready(new)
        if before == after:
            return
        if before is not None:
            self._ready[before] -= 1
        if after is not None:
            self._ready[after] += 1
            waiters = self._waiters.get(after, {})
            for key in [key for key, needed in waiters.items() if needed <= self._ready[after]]:
                del waiters[key]
                self._queue.add(key)

    async def _process(self, key: Key) -> float | None:
        pod = self._pods.get(*key)
        node = self._nodes.get("", pod["spec"].get("nodeName", "")) if pod else None
        if pod is None or node is None or not is_simulated(node):
            return None
        if is_deleting(pod):
            return await self._terminate(pod)
        prepared = await self._dra.prepare(pod) if uses_claims(pod) and not has_started(pod) else PREPARED
        desired = desired_status(pod, script_of(pod), self._node_state(pod, node, is_prepared=prepared.value))
        if differs(desired.value, status_of(pod)):
            await self._update_status(pod, desired.value)
        until = earliest((desired.until, prepared.until))
        # Statuses have whole seconds: before the next one nothing changes.
        return math.ceil(until.timestamp()) - self._clock.now().timestamp() if until else None

    async def _update_status(self, pod: Body, status: Mapping[str, Any]) -> None:
        """Write the status; a terminal phase only after the devices are unprepared, because then others may be given them."""
        if status["phase"] in ("Succeeded", "Failed") and self._dra.has_own_devices(pod):
            await self._dra.unprepare(pod)
        else:
            await self._write_status(pod, status)

    def _node_state(self, pod: Body, node: Body, *, is_prepared: bool) -> NodeState:
        addresses = status_of(node).get("addresses") or ()
        host = next((entry["address"] for entry in addresses if entry["type"] == "InternalIP"), "")
        address = host if pod["spec"].get("hostNetwork") else self._addresses.of(uid_of(pod))
        now = self._clock.now().replace(microsecond=0)
        return NodeState(now, address, host, lambda container: self._may_end(pod, container), is_prepared, self._dra.is_fabric_lost(pod))

    def _may_end(self, pod: Body, container: Mapping[str, Any]) -> bool:
        """Whether all pods that a startup waiter waits for are ready; if not, the pod is queued when they are."""
        if container["name"] != STARTUP_WAITER:
            return True
        missing = {clique: needed for clique, needed in _parents(pod, container).items() if self._ready[clique] < needed}
        for clique, needed in missing.items():
            self._waiters.setdefault(clique, {})[key_of(pod)] = needed
        return not missing

    async def _terminate(self, pod: Body) -> float | None:
        """Stop the containers after the time that they take, write that they ended, and delete the pod."""
        grace = pod["metadata"].get("deletionGracePeriodSeconds") or 0
        if grace == 0 and is_finished(pod):
            return None  # Only finalizers of others keep it.
        terminate_after = script_of(pod).terminate_after
        takes = min(float(grace), terminate_after.total_seconds() if terminate_after is not None else self._options.termination)
        deadline = parse_time(pod["metadata"]["deletionTimestamp"])
        remaining = (deadline + timedelta(seconds=takes - grace) - self._clock.now()).total_seconds() if deadline else 0.0
        if remaining > 0:
            return remaining
        with suppress(NotFound):
            if not is_finished(pod):
                if self._dra.has_own_devices(pod):
                    # Devices are unprepared after the containers have stopped and before the API says so.
                    await self._dra.unprepare(pod)
                    return None
                await self._write_status(pod, stopped_status(pod, self._clock.now()))
            await self._client.delete(kinds.POD, *key_of(pod), uid=uid_of(pod), grace=0)
        return None

    async def _write_status(self, pod: Body, status: Mapping[str, Any]) -> None:
        """A strategic patch, because others have conditions in it as well; bound to the uid, because a successor may have the name."""
        await self._pods.patch(self._client, pod, {"status": status}, how="strategic", subresource="status", by_uid=True)


def _clique_if_ready(pod: Body | None) -> GangClique | None:
    """The clique that the pod counts for, if it is ready and not being deleted."""
    if pod is None or is_deleting(pod) or not conditions.is_true(conditions_of(pod), "Ready"):
        return None
    return GangClique(pod["metadata"]["namespace"], labels_of(pod).get(PODGANG_LABEL, ""), labels_of(pod).get(PODCLIQUE_LABEL, ""))


def _parents(pod: Body, container: Mapping[str, Any]) -> dict[GangClique, int]:
    """The cliques of its own gang that a startup waiter waits for, and how many ready pods it needs of each."""
    namespace, gang = pod["metadata"]["namespace"], labels_of(pod).get(PODGANG_LABEL, "")
    parents = [argument.removeprefix(PARENT).rpartition(":") for argument in container.get("args") or () if argument.startswith(PARENT)]
    return {GangClique(namespace, gang, clique): int(count) for clique, _, count in parents if count.isdecimal() and len(count) < 10}
