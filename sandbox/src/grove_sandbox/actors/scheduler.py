"""Scheduler: places gangs as a whole or not at all, and pods of no gang one by one."""

from collections.abc import Callable, Iterable, Mapping, Sequence

import anyio

from grove_sandbox.actors.body import (
    Body,
    Key,
    condition,
    conditions_of,
    is_deleting,
    is_finished,
    key_of,
    labels_of,
    status_of,
    uid_of,
)
from grove_sandbox.actors.claim_fields import claims_of, uses_claims, volume_claims_of
from grove_sandbox.actors.dynamic_resources import ClaimsNotReady, DynamicResources
from grove_sandbox.actors.event_recorder import record_warning
from grove_sandbox.actors.gang import PodBlock, PodStates, SchedulingUnit, unit_of
from grove_sandbox.actors.gangs import Gangs
from grove_sandbox.actors.group_attempt import GroupAttempt, GroupResult, Results
from grove_sandbox.actors.group_tree import GroupTree
from grove_sandbox.actors.options import ActorOptions
from grove_sandbox.actors.placement import NOWHERE, Requirements, Selector, place, place_gang, selector_of
from grove_sandbox.actors.pod_group_status import SHORT_OF_PODS, SHORT_OF_RESOURCES, Failure, PodGroupStatuses
from grove_sandbox.actors.pool import Pool, Shortage
from grove_sandbox.actors.store import InformerStore, run_informers
from grove_sandbox.actors.unplaced import Unplaced
from grove_sandbox.actors.work_queue import WorkQueue
from grove_sandbox.product import PODS, Client, Clock, ClusterError, affinity_of, conditions, kinds, requests_of, requirements_of

RETRY_DELAY = 0.1
"""Seconds after resources are freed until all units that did not fit are tried again."""
PATIENCE = 1.0
"""Seconds that a unit may be incomplete until its pods say so: the pods of a gang are created one by one."""


async def run(client: Client, clock: Clock, options: ActorOptions) -> None:
    """Bind pods that can be scheduled; write into the status of the others why they cannot."""
    await Scheduler(client, clock, options).run()


class Scheduler:
    """Knows pods, nodes, gangs and claims, all of it from the API. `None` in the queue stands for all units that did not fit."""

    def __init__(self, client: Client, clock: Clock, options: ActorOptions) -> None:
        self._client, self._clock, self._options = client, clock, options
        self._queue: WorkQueue[SchedulingUnit | None] = WorkQueue(clock)
        self._pool = Pool()
        self._pods = InformerStore(kinds.POD, self._on_pod)
        self._nodes = InformerStore(kinds.NODE, self._on_node)
        self._volumes = InformerStore(kinds.PVC, self._on_volume)
        self._dra = DynamicResources(client, self._pool, self._retry_unschedulable, self._on_claim)
        self._pods_of_claim: dict[Key, dict[Key, None]] = {}
        """Unplaced pods by the claims that they use."""
        self._unplaced = Unplaced()
        states = PodStates(self._is_placed, self._is_schedulable)
        self._gangs = Gangs(self._pods, states, self._on_gang, self._retry_unschedulable, has_trees=options.gangs)
        self._statuses = PodGroupStatuses(client, clock, self._gangs)
        self._binding_limit = anyio.CapacityLimiter(16)

    async def run(self) -> None:
        """Schedule until cancelled."""
        async with anyio.create_task_group() as tasks:
            stores = (self._pods, self._nodes, self._volumes, *self._gangs.stores, *self._dra.stores)
            tasks.start_soon(run_informers, self._client, self._clock, *stores)
            # Nothing is placed before it is known what is in use.
            for store in stores:
                await store.synced.wait()
            tasks.start_soon(self._queue.run, self._process)
            tasks.start_soon(self._statuses.run)

    def _on_pod(self, key: Key, old: Body | None, new: Body | None) -> None:
        self._update_pool(old, new)
        is_unplaced = new is not None and self._is_schedulable(new)
        if old is not None and not (is_unplaced and new is not None and unit_of(new) == unit_of(old)):
            self._unplaced.remove(key, old)
        for body in (old, new):
            if body is not None:
                self._statuses.update(unit_of(body))
        if new is not None and is_unplaced:
            self._unplaced.put(key, new)
            for claim in claims_of(new):
                self._pods_of_claim.setdefault(claim, {})[key] = None
            # Status conditions that we wrote are no reason to try again; claims that have been created are.
            if old is None or old["spec"] != new["spec"] or claims_of(old) != claims_of(new):
                self._queue.add(unit_of(new))

    def _on_claim(self, key: Key) -> None:
        """A claim was created, deleted, allocated or deallocated: try the pods that use it."""
        for pod_key in list(self._pods_of_claim.get(key, ())):
            pod = self._pods.get(*pod_key)
            if pod is None or not self._is_schedulable(pod) or key not in claims_of(pod):
                del self._pods_of_claim[key][pod_key]
            else:
                self._queue.add(unit_of(pod))
        if not self._pods_of_claim.get(key):
            self._pods_of_claim.pop(key, None)

    def _on_volume(self, _: Key, old: Body | None, new: Body | None) -> None:
        if old is None and new is not None:
            self._retry_unschedulable()

    def _retry_unschedulable(self) -> None:
        self._queue.add_after(None, RETRY_DELAY)

    def _update_pool(self, old: Body | None, new: Body | None) -> None:
        """Release what a pod used that is gone or finished, and reserve what a bound pod uses. It may be what others have to be beside."""
        if old is not None and (new is None or uid_of(new) != uid_of(old) or is_finished(new)) and self._pool.release(uid_of(old)):
            self._retry_unschedulable()
        if new is not None and _company(new) not in (None, _company(old)) and self._unplaced.depends_on_others():
            self._retry_unschedulable()
        if new is not None and not is_finished(new) and (node := new["spec"].get("nodeName")) and self._pool.node_of(uid_of(new)) != node:
            self._pool.reserve(uid_of(new), node, _requests(new))

    def _on_node(self, key: Key, old: Body | None, new: Body | None) -> None:
        if old is None or new is None or _scheduling_fields(old) != _scheduling_fields(new):
            self._pool.set_node(key[1], new)
            self._retry_unschedulable()

    def _on_gang(self, unit: SchedulingUnit) -> None:
        self._statuses.update(unit)
        if unit in self._unplaced:
            self._queue.add(unit)

    def _is_schedulable(self, pod: Body) -> bool:
        """Whether the pod may be placed now, by this scheduler."""
        spec, schedulers = pod["spec"], self._options.schedulers
        is_ours = not schedulers or spec.get("schedulerName", "default-scheduler") in schedulers
        is_open = not spec.get("nodeName") and not spec.get("schedulingGates") and not is_deleting(pod) and not is_finished(pod)
        return is_ours and is_open and not self._is_placed(pod)

    def _is_placed(self, pod: Body) -> bool:
        return self._pool.node_of(uid_of(pod)) != ""

    async def _process(self, unit: SchedulingUnit | None) -> float | None:
        if unit is None:
            self._unplaced.retry(self._queue.add)
        elif unit in self._unplaced:
            return await self._schedule(unit)
        return None

    async def _schedule(self, unit: SchedulingUnit) -> float | None:
        if unit.kind == kinds.POD_GROUP:
            return await self._schedule_groups(unit)
        # Where kube-scheduler has groups of its own, it knows nothing of PodGangs.
        if unit.is_single or (unit.kind == kinds.PODGANG and self._options.gangs):
            return await self._schedule_single(unit)
        return await self._schedule_gang(unit)

    async def _schedule_single(self, unit: SchedulingUnit) -> float | None:
        pods = [pod for pod in self._unplaced.pods(unit) if self._is_schedulable(pod)]
        if reason := self._claims_not_ready(pods):
            return await self._postpone(unit, reason)
        self._unplaced.mark_complete(unit)
        for pod in pods:
            await self._place_single(unit, pod)
        return None

    async def _schedule_gang(self, unit: SchedulingUnit) -> float | None:
        gang = self._gangs.get(unit)
        if gang is None:
            return await self._postpone(unit, f"{unit} does not exist")
        pods = self._gangs.pods_of(unit, gang)
        if pods.missing:
            self._statuses.record(unit, Failure(SHORT_OF_PODS, pods.missing))
            return await self._postpone(unit, f"gang {unit.namespace}/{unit.name} is incomplete: {pods.missing}")
        if reason := self._claims_not_ready(pods.required):
            return await self._postpone(unit, reason)
        self._unplaced.mark_complete(unit)
        if reason := pods.refusal or self._gangs.refusal(unit, gang, pods.required):
            await self._reject(unit, self._unplaced.pods(unit), reason)
        elif await self._place_all(unit, pods.root, pods.required):
            await self._place_extra(unit, gang, pods.root, pods.extra)
        return None

    async def _schedule_groups(self, unit: SchedulingUnit) -> float | None:
        """Place what waits in the tree of a PodGroup. Of a tree that is incomplete nothing is said, as by kube-scheduler."""
        tree = self._gangs.trees.tree(unit)
        pods = [pod for leaf in tree.leaves() for pod in leaf.waiting] if tree is not None else []
        if tree is None or not tree.is_complete or not pods:
            return None
        if reason := self._claims_not_ready(pods):
            delay = await self._postpone(unit, reason)
            if delay is None:
                await self._statuses.answer(unit, reason)
            return delay
        results = self._attempt(tree, pods)
        nodes = {uid: node for result in results.values() for uid, node in result.nodes.items()}
        placed = [pod for pod in pods if uid_of(pod) in nodes]
        self._dra.reserve(placed, _requests)
        for leaf in tree.leaves():
            self._unplaced.mark_complete(leaf.unit)
            if len(results[leaf.unit].nodes) < len(leaf.waiting):
                self._unplaced.mark_unschedulable(leaf.unit)
                # As kube-scheduler does: the others of the tree have been placed, which may be what this group needs.
                if placed:
                    self._queue.add(leaf.unit)
        await self._bind(placed, nodes)
        for leaf in tree.leaves():
            await self._report(leaf, results[leaf.unit])
        return None

    def _attempt(self, tree: GroupTree, pods: Sequence[Body]) -> Results:
        """The result of each group of the tree, with the nodes reserved."""
        try:
            requirements = self._requirements(pods)
        except (ValueError, ClaimsNotReady) as error:
            return {leaf.unit: GroupResult(leaf.unit, str(error)) for leaf in tree.leaves()}
        return GroupAttempt(self._pool, requirements).place(tree)

    async def _report(self, group: GroupTree, result: GroupResult) -> None:
        """Write what has come of a PodGroup, and why pods of it have no node."""
        await self._statuses.answer(group.unit, result.message)
        left = [pod for pod in group.waiting if uid_of(pod) not in result.nodes]
        for pod in left:
            await self._write_reason([pod], result.message_of(uid_of(pod)))
        await self._dra.post_filter(left)

    async def _postpone(self, unit: SchedulingUnit, reason: str) -> float | None:
        """The unit is incomplete. Write the reason into its pods once that has lasted."""
        remaining = PATIENCE - self._unplaced.incomplete_for(unit, self._clock.monotonic())
        if remaining > 0:
            return remaining
        await self._write_reason(self._unplaced.pods(unit), reason)
        return None

    async def _reject(self, unit: SchedulingUnit, pods: Sequence[Body], reason: str) -> None:
        """The pods cannot be placed now. Write why, and try again when something is free or admitted."""
        self._unplaced.mark_unschedulable(unit)
        self._statuses.record(unit, Failure(SHORT_OF_RESOURCES, reason))
        await self._write_reason(pods, reason)

    def _claims_not_ready(self, pods: Iterable[Body]) -> str:
        try:
            for pod in pods:
                self._dra.pre_filter(pod)
        except ClaimsNotReady as reason:
            return str(reason)
        return ""

    async def _place_all(self, unit: SchedulingUnit, root: PodBlock, pods: Sequence[Body]) -> bool:
        """Bind all of the pods, or none and write why. Returns whether they were bound."""
        nodes = self._reserve(unit, pods, lambda requirements: place_gang(self._pool, root, requirements))
        if isinstance(nodes, str):
            await self._reject(unit, pods, nodes)
            await self._dra.post_filter(pods)
            return False
        self._statuses.record(unit, None)
        await self._bind(pods, nodes)
        return True

    async def _place_extra(self, unit: SchedulingUnit, gang: Body, root: PodBlock, pods: Iterable[Body]) -> None:
        """Bind those of the pods beyond the minimum that fit where the others are, and that the queue admits."""
        for pod in pods:
            if not self._is_schedulable(pod):
                continue
            if reason := self._gangs.refusal(unit, gang, [pod]):
                self._unplaced.mark_unschedulable(unit)
                await self._write_reason([pod], reason)
            else:
                await self._place_single(unit, pod, selector_of(self._pool, root, uid_of(pod)))

    async def _place_single(self, unit: SchedulingUnit, pod: Body, selector: Selector = NOWHERE) -> None:
        """Bind the pod to a node with these labels, or write into it why it does not fit."""
        nodes = self._reserve(unit, [pod], lambda requirements: place(self._pool, [pod], requirements, selector))
        if isinstance(nodes, str):
            self._unplaced.mark_unschedulable(unit)
            await self._write_reason([pod], nodes)
            await self._dra.post_filter([pod])
        else:
            await self._bind([pod], nodes)

    def _reserve(
        self, unit: SchedulingUnit, pods: Sequence[Body], reserve: Callable[[Requirements], Mapping[str, str] | Shortage]
    ) -> Mapping[str, str] | str:
        """Reserve a node for each of the pods. Returns the nodes by uid, or why there are none."""
        try:
            nodes = reserve(self._requirements(pods))
        except ValueError as error:
            return f"invalid resources: {error}"
        except ClaimsNotReady as reason:
            return str(reason)
        if not isinstance(nodes, Shortage):
            self._dra.reserve(pods, _requests)
            return nodes
        fitting = f" {nodes.placed} of {len(pods)} pods of gang {unit.namespace}/{unit.name} would fit." if len(pods) > 1 else ""
        return f"{nodes}{fitting}"

    def _requirements(self, pods: Sequence[Body]) -> Requirements:
        """What the pods require, of nodes and of each other. Raises `ValueError` for malformed quantities, `ClaimsNotReady`."""
        for pod in pods:
            self._require_volumes(pod)
        of_pods = dict(self._dra.with_devices([(pod, requirements_of(pod)) for pod in pods]))
        affinities = {uid_of(pod): affinity for pod in pods if (affinity := affinity_of(pod, self._pods.objects.values())) is not None}
        return Requirements(of_pods, affinities)

    def _require_volumes(self, pod: Body) -> None:
        """Raises `ClaimsNotReady` unless the volume claims of the pod exist and stay."""
        for name in volume_claims_of(pod):
            claim = self._volumes.get(pod["metadata"]["namespace"], name)
            if claim is None or is_deleting(claim):
                why = "not found. not found" if claim is None else "is being deleted. not found"
                raise ClaimsNotReady(f'0/{len(self._nodes.objects)} nodes are available: persistentvolumeclaim "{name}" {why}')

    async def _bind(self, pods: Sequence[Body], nodes: Mapping[str, str]) -> None:
        """Bind all at once, after all have their devices. Raises the last error; pods that were not bound are unreserved."""
        errors: list[ClusterError] = []
        try:
            for pod in pods:
                if uses_claims(pod):
                    await self._dra.pre_bind(pod, nodes[uid_of(pod)])
        except ClusterError:
            for pod in pods:
                self._unreserve(pod)
            raise

        async def bind(pod: Body) -> None:
            namespace, name = key_of(pod)
            try:
                async with self._binding_limit:
                    await self._client.create(kinds.POD, namespace, _binding(pod, nodes[uid_of(pod)]), name=name, subresource="binding")
            except ClusterError as error:
                errors.append(error)
                self._unreserve(pod)

        async with anyio.create_task_group() as tasks:
            for pod in pods:
                tasks.start_soon(bind, pod)
        if errors:
            raise errors[-1]

    def _unreserve(self, pod: Body) -> None:
        """Unless the watch says that the pod is bound: then the answer was lost, or another scheduler was faster."""
        known = self._pods.get(*key_of(pod))
        if known is not None and known["spec"].get("nodeName"):
            return
        self._dra.unreserve(pod)
        if self._pool.release(uid_of(pod)):
            self._retry_unschedulable()

    async def _write_reason(self, pods: Iterable[Body], message: str) -> None:
        """Write into the pods why they are not scheduled, unless they say so already."""
        for pod in list(pods):
            old = conditions.find(conditions_of(pod), "PodScheduled") or {}
            new = condition(pod, "PodScheduled", False, "Unschedulable", message, self._clock.now())
            if not new.items() <= old.items():
                status = {"status": {"conditions": [new]}}
                await self._pods.patch(self._client, pod, status, how="strategic", subresource="status", by_uid=True)
                if self._options.gangs:
                    await record_warning(self._client, self._clock, pod, "FailedScheduling", message, component="default-scheduler")


def _binding(pod: Body, node: str) -> Body:
    metadata = {"name": pod["metadata"]["name"], "namespace": pod["metadata"]["namespace"], "uid": uid_of(pod)}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": {"apiVersion": "v1", "kind": "Node", "name": node}}


def _company(pod: Body | None) -> object:
    """What pods that must be beside others see of a pod; None if it has no node, or has finished."""
    return (uid_of(pod), labels_of(pod)) if pod is not None and pod["spec"].get("nodeName") and not is_finished(pod) else None


def _scheduling_fields(node: Body) -> tuple[object, ...]:
    """The fields of a node that placement depends on; heartbeats are not among them."""
    ready = conditions.find(conditions_of(node), "Ready") or {}
    return node.get("spec"), labels_of(node), status_of(node).get("allocatable"), ready.get("status")


def _requests(pod: Body) -> Mapping[str, int]:
    """What a bound pod uses; one pod, if its quantities are malformed."""
    try:
        return requests_of(pod["spec"])
    except ValueError:
        return {PODS: 1000}
