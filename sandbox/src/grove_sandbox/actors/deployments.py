"""Deployments: the controller of Deployments. It creates their pods itself: there are no ReplicaSets."""

from contextlib import suppress
from typing import Final

import anyio

from grove_sandbox.actors.body import Body, Key, is_deleting, is_finished, key_of, labels_of, status_of, uid_of
from grove_sandbox.actors.deployment_pods import HASH, DeploymentPods, new_pod, pods_of, status, to_create, to_delete
from grove_sandbox.actors.lws_pods import controller_of
from grove_sandbox.actors.options import ActorOptions
from grove_sandbox.actors.store import Store, delete, run_informers
from grove_sandbox.actors.work_queue import WorkQueue
from grove_sandbox.installation.kinds import CONTROLLER_LABELS
from grove_sandbox.product import DEPLOYMENT, POD, AlreadyExists, Client, Clock, NotFound

NAME_TAKEN_RETRY: Final = 1.0
"""Seconds after which another name is tried, when an object that is not the Deployment's had the first one."""


async def run(client: Client, clock: Clock, options: ActorOptions) -> None:
    """Create the pods of Deployments, replace them when the template changes, and report the status."""
    await DeploymentController(client, clock).run()


class DeploymentController:
    """Knows Deployments and their pods, all of it from the API. The DRA driver's own Deployment is left to the driver."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client, self._clock = client, clock
        self._queue: WorkQueue[Key] = WorkQueue(clock)
        self._deployments = Store(DEPLOYMENT, self._on_deployment)
        self._pods = Store(POD, self._on_pod, labels=HASH)
        self._keys: dict[str, Key] = {}
        """Deployments by uid."""
        self._pods_of: dict[str, dict[Key, None]] = {}
        """Pods by the uid of their controller."""
        self._refused: dict[str, set[str]] = {}
        """Names of pods that were taken, by the uid of the Deployment."""

    async def run(self) -> None:
        """Run the controller until cancelled."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run_informers, self._client, self._clock, self._deployments, self._pods)
            # What is missing is known only after everything has been listed.
            await self._deployments.synced.wait()
            await self._pods.synced.wait()
            tasks.start_soon(self._queue.run, self._process)

    def _on_deployment(self, key: Key, old: Body | None, new: Body | None) -> None:
        if old is not None:
            self._keys.pop(uid_of(old), None)
            if new is None or uid_of(new) != uid_of(old):
                self._refused.pop(uid_of(old), None)
        if new is not None:
            self._keys[uid_of(new)] = key
            self._queue.add(key)

    def _on_pod(self, key: Key, old: Body | None, new: Body | None) -> None:
        if old is not None:
            self._pods_of.get(controller_of(old), {}).pop(key, None)
        if new is not None:
            self._pods_of.setdefault(controller_of(new), {})[key] = None
        for body in (old, new):
            if body is not None and (deployment := self._keys.get(controller_of(body))):
                self._queue.add(deployment)

    async def _process(self, key: Key) -> float | None:
        deployment = self._deployments.get(*key)
        if deployment is None or is_deleting(deployment) or _is_of_the_driver(deployment):
            return None
        is_complete = True
        if not deployment["spec"].get("paused"):
            await self._delete_surplus(deployment)
            is_complete = await self._create_missing(deployment)
        await self._write_status(deployment)
        return None if is_complete else NAME_TAKEN_RETRY

    def _pods_now(self, deployment: Body) -> DeploymentPods:
        keys = self._pods_of.get(uid_of(deployment), ())
        return pods_of(deployment, [pod for key in keys if (pod := self._pods.get(*key)) is not None])

    async def _delete_surplus(self, deployment: Body) -> None:
        pods = self._pods_now(deployment)
        finished = [pod for pod in pods.leaving if is_finished(pod) and not is_deleting(pod)]
        for pod in (*to_delete(deployment, pods), *finished):
            await delete(self._client, POD, pod)

    async def _create_missing(self, deployment: Body) -> bool:
        """Create the pods that the rollout allows. Returns whether no name was taken."""
        pods = self._pods_now(deployment)
        taken = {key_of(pod)[1] for pod in (*pods.active, *pods.leaving)} | self._refused.get(uid_of(deployment), set())
        for _ in range(to_create(deployment, pods)):
            pod = new_pod(deployment, taken)
            taken.add(pod["metadata"]["name"])
            try:
                self._pods.apply("ADDED", await self._client.create(POD, pod["metadata"]["namespace"], pod))
            except AlreadyExists:
                self._refused.setdefault(uid_of(deployment), set()).add(pod["metadata"]["name"])
                return False
        return True

    async def _write_status(self, deployment: Body) -> None:
        new = status(deployment, self._pods_now(deployment), self._clock.now())
        live = status_of(deployment)
        if any(live.get(field) != value for field, value in new.items()):
            with suppress(NotFound):
                await self._deployments.patch(self._client, deployment, {"status": new}, subresource="status", by_uid=True)


def _is_of_the_driver(deployment: Body) -> bool:
    """Whether the pods of a Deployment are the controller of the DRA driver."""
    return CONTROLLER_LABELS.items() <= labels_of(deployment["spec"]["template"]).items()
