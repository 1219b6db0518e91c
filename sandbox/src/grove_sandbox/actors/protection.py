"""Protection: the controller that lets a PodGroup go once no pod needs it any more."""

import anyio

from grove_sandbox.actors.body import Body, Key, finalizers_of, is_deleting, is_finished
from grove_sandbox.actors.gang import unit_of
from grove_sandbox.actors.options import ActorOptions
from grove_sandbox.actors.store import InformerStore, run_informers
from grove_sandbox.actors.work_queue import WorkQueue
from grove_sandbox.product import GROUP_PROTECTION, Client, Clock, kinds


async def run(client: Client, clock: Clock, options: ActorOptions) -> None:
    """Remove the finalizer of every PodGroup that is being deleted and that no pod refers to, finished ones apart."""
    if options.gangs:
        await _Protection(client, clock).run()


class _Protection:
    def __init__(self, client: Client, clock: Clock) -> None:
        self._client, self._clock = client, clock
        self._queue: WorkQueue[Key] = WorkQueue(clock)
        self._groups, self._pods = InformerStore(kinds.POD_GROUP, self._on_group), InformerStore(kinds.POD, self._on_pod)
        self._users: dict[Key, set[Key]] = {}
        """The pods by the PodGroup that they refer to."""

    async def run(self) -> None:
        """Remove finalizers until cancelled."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run_informers, self._client, self._clock, self._groups, self._pods)
            # A PodGroup whose pods are not known yet must not go.
            await self._pods.synced.wait()
            tasks.start_soon(self._queue.run, self._process)

    def _on_group(self, key: Key, old: Body | None, new: Body | None) -> None:
        if new is not None and is_deleting(new):
            self._queue.add(key)

    def _on_pod(self, key: Key, old: Body | None, new: Body | None) -> None:
        before, after = _group_of(old), _group_of(new)
        if after is not None:
            self._users.setdefault(after, set()).add(key)
        if before is not None and before != after:
            self._users[before].discard(key)
            self._queue.add(before)

    async def _process(self, key: Key) -> None:
        group = self._groups.get(*key)
        if group is not None and is_deleting(group) and GROUP_PROTECTION in finalizers_of(group) and not self._users.get(key):
            finalizers = [finalizer for finalizer in finalizers_of(group) if finalizer != GROUP_PROTECTION]
            await self._groups.patch(self._client, group, {"metadata": {"finalizers": finalizers}})


def _group_of(pod: Body | None) -> Key | None:
    """The PodGroup that a pod refers to; None for a pod of none, and for one that has finished."""
    if pod is None or is_finished(pod) or (unit := unit_of(pod)).kind != kinds.POD_GROUP:
        return None
    return unit.namespace, unit.name
