"""Gang: which pods have to be placed together, read from a PodGang and the pods it lists."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from providers.sandbox.actors.body import Body, Key, is_deleting, is_finished, labels_of
from resources.base.labels import PODGANG


class SchedulingUnit(NamedTuple):
    """What is placed at once: the gang of that name, or (`is_single`) the pod of that name."""

    namespace: str
    name: str
    is_single: bool


@dataclass(frozen=True, slots=True)
class GangPods:
    """The unplaced pods of a gang: those that must be placed together, and those beyond the minimum."""

    required: tuple[Body, ...]
    extra: tuple[Body, ...]
    missing: str = ""
    """Which pods the gang still lacks before it can be placed; empty: none."""


def unit_of(pod: Body) -> SchedulingUnit:
    """The unit that the pod belongs to."""
    namespace, gang = pod["metadata"]["namespace"], labels_of(pod).get(PODGANG)
    return SchedulingUnit(namespace, gang, False) if gang else SchedulingUnit(namespace, pod["metadata"]["name"], True)


def gang_pods(gang: Body, pods: Mapping[Key, Body], is_placed: Callable[[Body], bool], is_schedulable: Callable[[Body], bool]) -> GangPods:
    """The pods of the gang to place. Pods that are placed and not finished count towards the minimum of their group."""
    required: list[Body] = []
    extra: list[Body] = []
    missing: list[str] = []
    for group in gang["spec"].get("podgroups") or ():
        members = [pods.get((reference["namespace"], reference["name"])) for reference in group.get("podReferences") or ()]
        active = [pod for pod in members if pod is not None and not is_deleting(pod) and not is_finished(pod)]
        placed = sum(map(is_placed, active))
        schedulable = [pod for pod in active if not is_placed(pod) and is_schedulable(pod)]
        needed = max(0, group["minReplicas"] - placed)
        if len(schedulable) < needed:
            missing.append(f"podgroup {group['name']} has {placed + len(schedulable)} of {group['minReplicas']} pods")
        required += schedulable[:needed]
        extra += schedulable[needed:]
    return GangPods(tuple(required), tuple(extra), "; ".join(missing))
