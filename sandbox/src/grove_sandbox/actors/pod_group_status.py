"""PodGroupStatus: what schedulers write into the status of PodGroups.

As with the real Volcano and KAI, the condition of an attempt that failed stays when a later one succeeds: of Volcano's groups the
phase says what is true now, of KAI's the pods do.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

from grove_sandbox.actors.body import Body, condition, conditions_of, is_deleting, status_of, timestamp, uid_of
from grove_sandbox.actors.gang import SchedulingUnit
from grove_sandbox.actors.gangs import Gangs
from grove_sandbox.actors.pod_groups import minimum_of
from grove_sandbox.actors.work_queue import WorkQueue
from grove_sandbox.product import Client, Clock, NotFound, conditions, kinds

SHORT_OF_RESOURCES, SHORT_OF_PODS = "NotEnoughResources", "NotEnoughTasks"
"""Volcano's reasons."""
READY: Final = "tasks in gang are ready to be scheduled"
NODE_POOL: Final = "default"
INITIALLY_SCHEDULED: Final = "PodGroupInitiallyScheduled"
"""The condition by which kube-scheduler says what has come of a PodGroup."""


class Failure(NamedTuple):
    """Why a gang could not be placed at the last attempt."""

    reason: str
    message: str


class PodGroupStatuses:
    """Writes the statuses of PodGroups. `None` for a failure means that the last attempt succeeded."""

    def __init__(self, client: Client, clock: Clock, gangs: Gangs) -> None:
        self._client, self._clock, self._gangs = client, clock, gangs
        self._queue: WorkQueue[SchedulingUnit] = WorkQueue(clock)
        self._failures: dict[SchedulingUnit, Failure] = {}

    async def run(self) -> None:
        """Write until cancelled."""
        await self._queue.run(self._process, workers=2)

    def update(self, unit: SchedulingUnit) -> None:
        """Write the status of the gang if it has one and something in it has changed."""
        if unit.kind in (kinds.VOLCANO_POD_GROUP, kinds.KAI_POD_GROUP):
            self._queue.add(unit)

    def record(self, unit: SchedulingUnit, failure: Failure | None) -> None:
        """Record the outcome of an attempt to place the gang."""
        if failure is None:
            self._failures.pop(unit, None)
        else:
            self._failures[unit] = failure
        self.update(unit)

    async def answer(self, unit: SchedulingUnit, why: str) -> None:
        """Write the condition of one of kube-scheduler's PodGroups: why it is not scheduled, or that it is. Once True it stays so."""
        store = self._gangs.trees.stores[kinds.POD_GROUP]
        group = store.get(unit.namespace, unit.name)
        if group is None or conditions.is_true(conditions_of(group), INITIALLY_SCHEDULED):
            return
        new = condition(group, INITIALLY_SCHEDULED, not why, "Unschedulable" if why else "Scheduled", why, self._clock.now())
        if new not in conditions_of(group):
            with suppress(NotFound):
                status = {"status": {"conditions": [new]}}
                await store.patch(self._client, group, status, how="strategic", subresource="status", by_uid=True)

    async def _process(self, unit: SchedulingUnit) -> None:
        group = self._gangs.get(unit)
        if group is None:
            self._failures.pop(unit, None)
        elif not is_deleting(group):
            status = self._status(unit, group)
            live = status_of(group)
            if any(live.get(field) != value for field, value in status.items()):
                await self._write(unit, group, status)

    def _status(self, unit: SchedulingUnit, group: Body) -> Mapping[str, Any]:
        pods, failure = self._gangs.members(unit), self._failures.get(unit)
        if unit.kind == kinds.KAI_POD_GROUP:
            return self._kai_status(group, pods, failure)
        return self._volcano_status(group, pods, failure)

    def _kai_status(self, group: Body, pods: Sequence[Body], failure: Failure | None) -> Mapping[str, Any]:
        if failure is None or failure.reason == SHORT_OF_PODS or any(map(_is_bound, pods)):
            return {}
        new = {"type": "UnschedulableOnNodePool", "status": "True", "reason": "Unschedulable", "message": failure.message}
        return {"schedulingConditions": self._merged(group, "schedulingConditions", {**new, "nodePool": NODE_POOL})}

    def _volcano_status(self, group: Body, pods: Sequence[Body], failure: Failure | None) -> Mapping[str, Any]:
        bound = sum(map(_is_bound, pods))
        phases = [status_of(pod).get("phase") for pod in pods]
        counts = {"running": phases.count("Running"), "succeeded": phases.count("Succeeded"), "failed": phases.count("Failed")}
        is_placed = 0 < bound >= minimum_of(group.get("spec") or {})
        new = None
        if is_placed:
            new = {"type": "Scheduled", "status": "True", "reason": READY, "message": ""}
        elif failure is not None:
            message = f"{len(pods) - bound}/{len(pods)} tasks in gang unschedulable: {failure.message}"
            new = {"type": "Unschedulable", "status": "True", "reason": failure.reason, "message": message}
        status: dict[str, Any] = {"phase": self._phase(group, counts, bound, is_placed, failure)}
        status |= {name: count for name, count in counts.items() if count or status_of(group).get(name)}
        return status | ({"conditions": self._merged(group, "conditions", new)} if new else {})

    def _phase(self, group: Body, counts: Mapping[str, int], bound: int, is_placed: bool, failure: Failure | None) -> str:
        if is_placed:
            return "Completed" if counts["succeeded"] + counts["failed"] == bound else "Running"
        if failure is not None and counts["running"]:
            return "Unknown"
        # Volcano admits a group without `minResources` to its queue whether there is room or not.
        return "Pending" if failure is not None and (group.get("spec") or {}).get("minResources") else "Inqueue"

    def _merged(self, group: Body, field: str, new: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """The conditions with this one in place of the one of its type, which is kept if it says the same."""
        live: list[Mapping[str, Any]] = list(status_of(group).get(field) or ())
        known = conditions.find(live, new["type"])
        if known is not None and new.items() <= known.items():
            return live
        dated = {**new, "lastTransitionTime": timestamp(self._clock.now())}
        return [dated if entry is known else entry for entry in live] if known is not None else [*live, dated]

    async def _write(self, unit: SchedulingUnit, group: Body, status: Mapping[str, Any]) -> None:
        subresource = "" if unit.kind == kinds.VOLCANO_POD_GROUP else "status"
        with suppress(NotFound):
            await self._gangs.store(unit.kind).patch(self._client, group, {"status": status}, subresource=subresource, by_uid=True)


def _is_bound(pod: Body) -> bool:
    return bool(uid_of(pod) and pod["spec"].get("nodeName") and not is_deleting(pod))
