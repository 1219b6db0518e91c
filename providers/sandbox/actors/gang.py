"""Gang: which pods have to be placed together, read from a PodGang and the pods it lists."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from providers.sandbox.actors.body import Body, Key, is_deleting, is_finished, labels_of
from resources.base.labels import PODGANG


class Unit(NamedTuple):
    """What is placed in one go: the gang of that name, or (`alone`) the pod of that name."""

    namespace: str
    name: str
    alone: bool


@dataclass(frozen=True, slots=True)
class Muster:
    """The unplaced pods of a gang: those that must find a place together, and those beyond the minimum."""

    required: tuple[Body, ...]
    extra: tuple[Body, ...]
    missing: str = ""
    """What the gang still lacks before placing it makes sense."""


def unit_of(pod: Body) -> Unit:
    """The unit that the pod belongs to."""
    namespace, gang = pod["metadata"]["namespace"], labels_of(pod).get(PODGANG)
    return Unit(namespace, gang, False) if gang else Unit(namespace, pod["metadata"]["name"], True)


def muster(gang: Body, pods: Mapping[Key, Body], is_placed: Callable[[Body], bool], is_free: Callable[[Body], bool]) -> Muster:
    """Who of the gang has to be placed. `is_free` pods may be; those placed and living count towards the minimum."""
    required: list[Body] = []
    extra: list[Body] = []
    missing: list[str] = []
    for group in gang["spec"].get("podgroups") or ():
        listed = [pods.get((one["namespace"], one["name"])) for one in group.get("podReferences") or ()]
        living = [pod for pod in listed if pod is not None and not is_deleting(pod) and not is_finished(pod)]
        placed = sum(map(is_placed, living))
        free = [pod for pod in living if not is_placed(pod) and is_free(pod)]
        needed = max(0, group["minReplicas"] - placed)
        if len(free) < needed:
            missing.append(f"podgroup {group['name']} has {placed + len(free)} of {group['minReplicas']} pods")
        required += free[:needed]
        extra += free[needed:]
    return Muster(tuple(required), tuple(extra), "; ".join(missing))
