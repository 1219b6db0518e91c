"""Autoscaler: scales the targets of HPAs by an annotation in place of metrics.

The annotation `sandbox.grove.io/desired-replicas: "4"` on an HPA is what its metrics would recommend; without it they recommend the
current number. Either is kept between `minReplicas` and `maxReplicas` and written to the target's scale. A target at 0 is not scaled.
"""

from functools import partial
from typing import Any, Final

import anyio
from anyio.abc import TaskGroup

from grove_sandbox.actors.body import Body, Key, annotations_of, condition, conditions_of, status_of, timestamp
from grove_sandbox.actors.options import ActorOptions
from grove_sandbox.actors.store import InformerStore, run_informers
from grove_sandbox.actors.work_queue import WorkQueue
from grove_sandbox.product import Client, Clock, Kind, NotFound, conditions, kinds

RECOMMENDATION: Final = "sandbox.grove.io/desired-replicas"


async def run(client: Client, clock: Clock, options: ActorOptions) -> None:
    """Scale the targets of HPAs as their annotations say."""
    await Autoscaler(client, clock).run()


class Autoscaler:
    """Knows HPAs and the objects of the kinds that they target, all of it from the API."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client, self._clock = client, clock
        self._queue: WorkQueue[Key] = WorkQueue(clock)
        self._scalers = InformerStore(kinds.AUTOSCALER, self._on_scaler)
        self._targets: dict[Kind, InformerStore] = {}
        self._scalers_of: dict[tuple[str, str, str, str], dict[Key, None]] = {}
        """HPAs by the group, kind, namespace and name of their target."""

    async def run(self) -> None:
        """Scale until cancelled."""
        async with anyio.create_task_group() as tasks:

            async def process(key: Key) -> None:
                scaler = self._scalers.get(*key)
                if scaler is not None:
                    await self._scale(scaler, tasks)

            tasks.start_soon(run_informers, self._client, self._clock, self._scalers)
            tasks.start_soon(self._queue.run, process)

    def _on_scaler(self, key: Key, old: Body | None, new: Body | None) -> None:
        if old is not None:
            self._scalers_of.get(_target(old), {}).pop(key, None)
        if new is not None:
            self._scalers_of.setdefault(_target(new), {})[key] = None
            self._queue.add(key)

    def _on_target(self, kind: Kind, key: Key, old: Body | None, new: Body | None) -> None:
        for scaler in self._scalers_of.get((kind.group, kind.name, *key), ()):
            self._queue.add(scaler)

    async def _scale(self, scaler: Body, tasks: TaskGroup) -> None:
        group, kind_name, namespace, name = _target(scaler)
        kind = await self._watched_kind(group, kind_name, tasks)
        if kind is None:
            return await self._write_status(scaler, {"currentReplicas": 0, "desiredReplicas": 0}, f"{kind_name} is not served")
        try:
            scale = await self._client.get(kind, namespace, name, subresource="scale")
        except NotFound:
            return await self._write_status(scaler, {"currentReplicas": 0, "desiredReplicas": 0}, f"{kind_name} {name} does not exist")
        current = scale["spec"].get("replicas", 0)
        desired = _desired_replicas(scaler, current)
        replicas = {"currentReplicas": status_of(scale).get("replicas", 0), "desiredReplicas": desired}
        if desired != current:
            bound = {"resourceVersion": scale["metadata"]["resourceVersion"]} if scale["metadata"].get("resourceVersion") else {}
            await self._client.patch(kind, namespace, name, {"metadata": bound, "spec": {"replicas": desired}}, subresource="scale")
            replicas["lastScaleTime"] = timestamp(self._clock.now())
        await self._write_status(scaler, replicas)

    async def _watched_kind(self, group: str, name: str, tasks: TaskGroup) -> Kind | None:
        """The kind of a target, which is watched from now on; None if it is not served."""
        known = next((kind for kind in self._targets if (kind.group, kind.name) == (group, name)), None)
        kind = known or next((kind for kind in await self._client.kinds() if (kind.group, kind.name) == (group, name)), None)
        if kind is not None and kind not in self._targets:
            self._targets[kind] = InformerStore(kind, partial(self._on_target, kind))
            tasks.start_soon(run_informers, self._client, self._clock, self._targets[kind])
        return kind

    async def _write_status(self, scaler: Body, replicas: dict[str, Any], failure: str = "") -> None:
        """Write the status if it differs."""
        reason, message = ("FailedGetScale", failure) if failure else ("SucceededGetScale", "the target's scale was read")
        able = condition(scaler, "AbleToScale", not failure, reason, message, self._clock.now())
        live = conditions.find(conditions_of(scaler), "AbleToScale") or {}
        if replicas.items() <= status_of(scaler).items() and able.items() <= live.items():
            return
        generation = scaler["metadata"].get("generation")
        status = {**replicas, "observedGeneration": generation, "currentMetrics": None, "conditions": [able]}
        await self._scalers.patch(self._client, scaler, {"status": status}, subresource="status", by_uid=True)


def _target(scaler: Body) -> tuple[str, str, str, str]:
    reference = scaler["spec"]["scaleTargetRef"]
    group = reference.get("apiVersion", "").rpartition("/")[0]
    return group, reference["kind"], scaler["metadata"]["namespace"], reference["name"]


def _desired_replicas(scaler: Body, current: int) -> int:
    """The recommendation, or the current number, within the bounds."""
    if current == 0:
        return 0
    text = annotations_of(scaler).get(RECOMMENDATION, "")
    recommended = int(text) if text.isdecimal() and len(text) < 10 else current
    return int(max(scaler["spec"].get("minReplicas") or 1, min(scaler["spec"]["maxReplicas"], recommended)))
