"""LWS: the controller of LeaderWorkerSets, as v0.9 behaves for what is used of it.

There are no StatefulSets and no ControllerRevisions: the set controls its leaders and its Service, a leader controls its workers, so
that the garbage collector removes everything after the set, and a group after its leader. A group that is created anew during a rollout
has the new templates. Sub-groups, exclusive topologies, volume claim templates and surge are left out.
"""

from collections.abc import Iterable
from contextlib import suppress

import anyio

from grove_sandbox.actors import lws_pods
from grove_sandbox.actors.body import Body, Key, conditions_of, is_deleting, is_finished, labels_of, status_of
from grove_sandbox.actors.lws_groups import LwsGroup, groups_of, outdated, status
from grove_sandbox.actors.options import ActorOptions
from grove_sandbox.actors.store import InformerStore, delete, run_informers
from grove_sandbox.actors.work_queue import WorkQueue
from grove_sandbox.product import AlreadyExists, Client, Clock, NotFound, conditions, kinds

NAME_TAKEN_RETRY = 1.0
"""Seconds after which a pod or Service whose name was taken by another object is tried again."""


async def run(client: Client, clock: Clock, options: ActorOptions) -> None:
    """Create the pods of LeaderWorkerSets, replace groups, and report their status."""
    await LwsController(client, clock).run()


class LwsController:
    """Knows LeaderWorkerSets, their pods and their Services, all of it from the API."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client, self._clock = client, clock
        self._queue: WorkQueue[Key] = WorkQueue(clock)
        self._sets = InformerStore(kinds.LEADER_WORKER_SET, lambda key, old, new: self._queue.add(key))
        self._pods = InformerStore(kinds.POD, self._on_pod, labels=lws_pods.NAME)
        self._services = InformerStore(kinds.SERVICE, self._on_child, labels=lws_pods.NAME)
        self._pods_of: dict[Key, dict[Key, None]] = {}
        """Pods by the set that their label names."""

    async def run(self) -> None:
        """Run the controller until cancelled."""
        async with anyio.create_task_group() as tasks:
            stores = (self._sets, self._pods, self._services)
            tasks.start_soon(run_informers, self._client, self._clock, *stores)
            # What is missing is known only after everything has been listed.
            for store in stores:
                await store.synced.wait()
            tasks.start_soon(self._queue.run, self._process)

    def _on_pod(self, key: Key, old: Body | None, new: Body | None) -> None:
        if old is not None:
            self._pods_of.get(_set_of(old), {}).pop(key, None)
        if new is not None:
            self._pods_of.setdefault(_set_of(new), {})[key] = None
        self._on_child(key, old, new)

    def _on_child(self, key: Key, old: Body | None, new: Body | None) -> None:
        for body in (old, new):
            if body is not None:
                self._queue.add(_set_of(body))

    async def _process(self, key: Key) -> float | None:
        lws = self._sets.get(*key)
        if lws is None or is_deleting(lws):
            return None
        await self._delete_superfluous(lws)
        is_complete = await self._create_missing(lws)
        await self._write_status(lws)
        return None if is_complete else NAME_TAKEN_RETRY

    def _groups(self, lws: Body) -> dict[int, LwsGroup]:
        keys = self._pods_of.get((lws["metadata"]["namespace"], lws["metadata"]["name"]), ())
        return groups_of(lws, [pod for key in keys if (pod := self._pods.get(*key)) is not None])

    async def _delete_superfluous(self, lws: Body) -> None:
        """Delete finished pods, groups beyond the number of replicas, groups that lost a pod, and groups that the rollout replaces."""
        groups = self._groups(lws)
        for pod in [pod for group in groups.values() for pod in group.pods if is_finished(pod) and not is_deleting(pod)]:
            await delete(self._client, kinds.POD, pod)
        replicas = lws["spec"].get("replicas", 1)
        surplus = [group for index, group in sorted(groups.items(), reverse=True) if index >= replicas]
        for group in (*surplus, *outdated(lws, groups)):
            if not is_deleting(group.leader):
                await delete(self._client, kinds.POD, group.leader)
        for group in groups.values():
            if not is_deleting(group.leader) and _is_broken(lws, group):
                await delete(self._client, kinds.POD, group.leader, propagation="Foreground")

    async def _create_missing(self, lws: Body) -> bool:
        """Create what the set lacks. Returns whether no name was taken."""
        if not lws_pods.is_subdomain_unique(lws) and not await self._ensure_service(lws_pods.shared_service(lws)):
            return False
        groups, is_complete = self._groups(lws), True
        for index in range(lws["spec"].get("replicas", 1)):
            group = groups.get(index)
            if group is None:
                leader = await self._create_pod(lws_pods.leader_pod(lws, index))
                group = LwsGroup(index, leader, ()) if leader else None
            if group is None:
                is_complete = False
            elif not is_deleting(group.leader):
                is_complete = await self._complete_group(lws, group) and is_complete
        return is_complete

    async def _complete_group(self, lws: Body, group: LwsGroup) -> bool:
        """Create the workers that the group lacks. Those of an older revision are not created: the rollout replaces the group."""
        leader = group.leader
        if lws_pods.is_subdomain_unique(lws) and not await self._ensure_service(lws_pods.group_service(lws, leader)):
            return False
        is_leader_awaited = lws["spec"].get("startupPolicy") == "LeaderReady" and not conditions.is_true(conditions_of(leader), "Ready")
        if is_leader_awaited or not group.is_updated(lws_pods.template_revision(lws)):
            return True
        existing = {labels_of(pod).get(lws_pods.WORKER) for pod in group.workers}
        missing = [index for index in range(1, lws_pods.size_of(lws)) if str(index) not in existing]
        created = [await self._create_pod(lws_pods.worker_pod(lws, leader, index)) for index in missing]
        return all(created)

    async def _create_pod(self, pod: Body) -> Body | None:
        """Create the pod. None: its name is taken, by a predecessor that is still terminating or by another object."""
        with suppress(AlreadyExists):
            created = await self._client.create(kinds.POD, pod["metadata"]["namespace"], pod)
            self._pods.apply("ADDED", created)
            return created
        return None

    async def _ensure_service(self, service: Body) -> bool:
        """Create the Service unless it exists. Returns whether pods may rely on it: an object of that name is left as it is."""
        namespace, name = service["metadata"]["namespace"], service["metadata"]["name"]
        live = self._services.get(namespace, name)
        if live is None:
            with suppress(AlreadyExists):
                self._services.apply("ADDED", await self._client.create(kinds.SERVICE, namespace, service))
        return live is None or not is_deleting(live)

    async def _write_status(self, lws: Body) -> None:
        new = status(lws, self._groups(lws), self._clock.now())
        if any(status_of(lws).get(field) != value for field, value in new.items()):
            with suppress(NotFound):
                await self._sets.patch(self._client, lws, {"status": new}, subresource="status", by_uid=True)


def _set_of(body: Body) -> Key:
    """Namespace and name of the set that the object's label names."""
    return body["metadata"]["namespace"], labels_of(body).get(lws_pods.NAME, "")


def _is_broken(lws: Body, group: LwsGroup) -> bool:
    """Whether the group has to be created anew, because one of its pods was deleted or restarted, and the policy demands it."""
    policy = lws["spec"]["leaderWorkerTemplate"].get("restartPolicy", "RecreateGroupOnPodRestart")
    if policy not in ("RecreateGroupOnPodRestart", "RecreateGroupAfterStart") or not any(map(_was_interrupted, group.pods)):
        return False
    is_starting = len(group.pods) < lws_pods.size_of(lws) or any(status_of(pod).get("phase") == "Pending" for pod in group.pods)
    return policy == "RecreateGroupOnPodRestart" or not is_starting


def _was_interrupted(pod: Body) -> bool:
    """Whether the pod is being deleted, or a container of it was restarted while the pod was not over."""
    statuses: Iterable[Body] = (*(status_of(pod).get("initContainerStatuses") or ()), *(status_of(pod).get("containerStatuses") or ()))
    is_active = status_of(pod).get("phase") in ("Running", "Pending")
    return is_deleting(pod) or (is_active and any(entry.get("restartCount", 0) > 0 for entry in statuses))
