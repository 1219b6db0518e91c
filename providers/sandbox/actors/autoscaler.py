"""Autoscaler: HPAs with a knob in place of metrics.

The annotation `sandbox.grove.io/desired-replicas: "4"` on an HPA says what its metrics would recommend; without it they recommend
what is there. Either is kept between `minReplicas` and `maxReplicas` and written to the target's scale. A target at 0 is left alone.
"""

from typing import Any, Final

import anyio
from anyio.abc import TaskGroup

from engine import conditions
from engine.errors import NotFound
from engine.ids import Kind
from engine.runtime.client import Client
from engine.runtime.clock import Clock
from providers.sandbox.actors.agenda import Agenda
from providers.sandbox.actors.body import Body, Key, annotations_of, conditions_of, key_of, status_of, uid_of
from providers.sandbox.actors.moments import written
from providers.sandbox.actors.reflector import Reflection, reflect
from providers.sandbox.actors.settings import Settings
from resources.base.kinds import AUTOSCALER

KNOB: Final = "sandbox.grove.io/desired-replicas"


async def run(client: Client, clock: Clock, settings: Settings) -> None:
    """Scale the targets of HPAs as their knobs say."""
    await Autoscaler(client, clock).run()


class Autoscaler:
    """What the actor knows: HPAs, and the kinds of their targets. All of it can be read anew from the API."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client, self._clock = client, clock
        self._agenda: Agenda[Key] = Agenda(clock)
        self._scalers = Reflection(AUTOSCALER, self._saw_scaler)
        self._targets: dict[Kind, Reflection] = {}
        self._of_target: dict[tuple[str, str, str, str], dict[Key, None]] = {}
        """HPAs by the group, kind, namespace and name of their target."""

    async def run(self) -> None:
        """Scale, for ever."""
        async with anyio.create_task_group() as tasks:

            async def look(key: Key) -> None:
                scaler = self._scalers.get(*key)
                if scaler is not None:
                    await self._scale(scaler, tasks)

            tasks.start_soon(reflect, self._client, self._clock, self._scalers)
            tasks.start_soon(self._agenda.work, look)

    def _saw_scaler(self, key: Key, old: Body | None, new: Body | None) -> None:
        if old is not None:
            self._of_target.get(_target(old), {}).pop(key, None)
        if new is not None:
            self._of_target.setdefault(_target(new), {})[key] = None
            self._agenda.add(key)

    async def _scale(self, scaler: Body, tasks: TaskGroup) -> None:
        group, kind_name, namespace, name = _target(scaler)
        kind = await self._watched(group, kind_name, tasks)
        if kind is None:
            return await self._tell(scaler, {"currentReplicas": 0, "desiredReplicas": 0}, f"{kind_name} is not served")
        try:
            scale = await self._client.get(kind, namespace, name, subresource="scale")
        except NotFound:
            return await self._tell(scaler, {"currentReplicas": 0, "desiredReplicas": 0}, f"{kind_name} {name} is not there")
        current = scale["spec"].get("replicas", 0)
        desired = _desired(scaler, current)
        if desired != current:
            bound = {"resourceVersion": scale["metadata"]["resourceVersion"]} if scale["metadata"].get("resourceVersion") else {}
            await self._client.patch(kind, namespace, name, {"metadata": bound, "spec": {"replicas": desired}}, subresource="scale")
        seen = {"currentReplicas": status_of(scale).get("replicas", 0), "desiredReplicas": desired}
        await self._tell(scaler, seen | ({"lastScaleTime": written(self._clock.now())} if desired != current else {}))

    async def _watched(self, group: str, name: str, tasks: TaskGroup) -> Kind | None:
        """The kind of a target, watched from now on, so that its HPAs follow."""
        known = next((kind for kind in self._targets if (kind.group, kind.name) == (group, name)), None)
        kind = known or next((kind for kind in await self._client.kinds() if (kind.group, kind.name) == (group, name)), None)
        if kind is not None and kind not in self._targets:
            self._targets[kind] = Reflection(kind, lambda key, old, new: self._saw_target(group, name, key))
            tasks.start_soon(reflect, self._client, self._clock, self._targets[kind])
        return kind

    def _saw_target(self, group: str, kind: str, key: Key) -> None:
        for scaler in self._of_target.get((group, kind, *key), ()):
            self._agenda.add(scaler)

    async def _tell(self, scaler: Body, seen: dict[str, Any], trouble: str = "") -> None:
        """Write the status if it says something else."""
        live = status_of(scaler)
        able = {
            "type": "AbleToScale",
            "status": "False" if trouble else "True",
            "reason": "FailedGetScale" if trouble else "SucceededGetScale",
        }
        able["message"] = trouble or "the target's scale was read"
        old = conditions.find(conditions_of(scaler), "AbleToScale") or {}
        if all(live.get(name) == value for name, value in seen.items()) and all(old.get(name) == value for name, value in able.items()):
            return
        since = old.get("lastTransitionTime") if old.get("status") == able["status"] else None
        patch = {
            "metadata": {"uid": uid_of(scaler)},
            "status": {
                **seen,
                "observedGeneration": scaler["metadata"].get("generation"),
                "currentMetrics": None,
                "conditions": [able | {"lastTransitionTime": since or written(self._clock.now())}],
            },
        }
        self._scalers.assume(await self._client.patch(AUTOSCALER, *key_of(scaler), patch, subresource="status"))


def _target(scaler: Body) -> tuple[str, str, str, str]:
    reference = scaler["spec"]["scaleTargetRef"]
    group = reference.get("apiVersion", "").rpartition("/")[0]
    return group, reference["kind"], scaler["metadata"]["namespace"], reference["name"]


def _desired(scaler: Body, current: int) -> int:
    """What the knob says, or what is there, within the bounds."""
    if current == 0:
        return 0
    turned = annotations_of(scaler).get(KNOB, "")
    wanted = int(turned) if turned.isdecimal() and len(turned) < 10 else current
    return int(max(scaler["spec"].get("minReplicas") or 1, min(scaler["spec"]["maxReplicas"], wanted)))
