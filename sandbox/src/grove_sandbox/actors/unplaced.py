"""Unplaced: the pods that wait for a node, by the unit that they are placed with, and the units that did not fit."""

from collections.abc import Callable

from grove_sandbox.actors.body import Body, Key, by_age
from grove_sandbox.actors.gang import SchedulingUnit, unit_of
from grove_sandbox.product import affinity_of


class Unplaced:
    """Pods without a node. A unit is known as long as it has any."""

    def __init__(self) -> None:
        self._pods: dict[SchedulingUnit, dict[Key, Body]] = {}
        self._unschedulable: set[SchedulingUnit] = set()
        self._with_affinity: set[SchedulingUnit] = set()
        """The unschedulable units with pods whose place depends on other pods."""
        self._incomplete_since: dict[SchedulingUnit, float] = {}

    def __contains__(self, unit: SchedulingUnit) -> bool:
        return unit in self._pods

    def pods(self, unit: SchedulingUnit) -> list[Body]:
        """The pods of the unit."""
        return list(self._pods.get(unit, {}).values())

    def put(self, key: Key, pod: Body) -> None:
        """Add or update a pod."""
        self._pods.setdefault(unit_of(pod), {})[key] = pod

    def remove(self, key: Key, pod: Body) -> None:
        """Remove a pod: it is placed, or gone, or belongs to another unit now."""
        unit = unit_of(pod)
        if self._pods.get(unit, {}).pop(key, None) and not self._pods[unit]:
            del self._pods[unit]
            self._incomplete_since.pop(unit, None)

    def mark_unschedulable(self, unit: SchedulingUnit) -> None:
        """The unit did not fit: try it again when resources are free."""
        self._unschedulable.add(unit)
        if any(affinity_of(pod, ()) for pod in self.pods(unit)):
            self._with_affinity.add(unit)

    def depends_on_others(self) -> bool:
        """Whether a unit that did not fit may fit beside a pod that gets a node or other labels."""
        return bool(self._with_affinity)

    def retry(self, add: Callable[[SchedulingUnit], None]) -> None:
        """Add the units that did not fit, by priority, then by age."""
        for unit in sorted(self._unschedulable & self._pods.keys(), key=self._rank):
            add(unit)
        self._unschedulable.clear()
        self._with_affinity.clear()

    def _rank(self, unit: SchedulingUnit) -> tuple[int, tuple[str, str, str]]:
        return min((-(pod["spec"].get("priority") or 0), by_age(pod)) for pod in self._pods[unit].values())

    def mark_complete(self, unit: SchedulingUnit) -> None:
        """The unit lacks nothing."""
        self._incomplete_since.pop(unit, None)

    def incomplete_for(self, unit: SchedulingUnit, now: float) -> float:
        """The seconds since the unit was first incomplete."""
        return now - self._incomplete_since.setdefault(unit, now)
