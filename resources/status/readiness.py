"""Readiness of a set: whether it serves, and what it waits for, as its condition `Ready` says it."""

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from engine.conditions import find
from engine.health import Obstacle, Readiness
from engine.plan import Alarm
from engine.report.printable import clipped
from resources.base.fields import mapping, mappings
from resources.model.pod_facts import CRASH_LOOP, IMAGE, PodFacts
from resources.model.view import CliqueView, GroupView, View
from resources.status.update import LATE

MAX_REASON: Final = 500
"""Characters of what a cluster says of a pod."""
COMING_UP: Final = "ComingUp"
DOMAIN_CUT: Final = "DomainCut"
REPLACING: Final = "DomainReplacing"


class Shortfall(Struct, frozen=True):
    """What a replica waits for, first of all."""

    reason: str
    text: str


def shortfall(view: View) -> Shortfall | None:
    """What the replica waits for until it serves; None if every clique and scaling group has the pods that it needs."""
    standalone = (clique for clique in view.cliques if clique.group is None)
    in_groups = (clique for group in view.groups for clique in _missing_in(view, group))
    clique = next((clique for clique in (*standalone, *in_groups) if not _serves(clique)), None)
    if clique is None:
        return None
    pods = sorted((pod for pod in clique.pods if not (pod.ready or pod.completed)), key=lambda pod: pod.name)
    named = next((pod for pod in pods if pod.reason and not pod.scheduling_gated), None)
    reason = _word(named) if named is not None else COMING_UP
    what = f"PodClique {clique.name}"
    return Shortfall(reason, f"{what}: pod {named.name} {clipped(named.reason, MAX_REASON)}" if named is not None else what)


def _missing_in(view: View, group: GroupView) -> Iterable[CliqueView]:
    """The cliques of a scaling group of which it needs more; none if enough of its replicas serve."""
    replicas = view.members_by_replica(group)
    needed = min(group.group.min_available, group.replicas)
    return () if sum(all(map(_serves, members)) for members in replicas) >= needed else (each for members in replicas for each in members)


def _serves(clique: CliqueView) -> bool:
    """Whether the clique exists, and as many of its pods as it needs are ready or have completed.

    One that is scaled below its minimum needs all its pods.
    """
    needed = min(clique.clique.min_available, clique.replicas)
    return clique.live is not None and not clique.terminating and clique.ready + clique.completed >= needed


def _word(pod: PodFacts) -> str:
    """Why the pod is not ready, as the reason of a condition."""
    status = mapping(pod.live.body.get("status"))
    if not pod.scheduled and (find(mappings(status.get("conditions")), "PodScheduled") or {}).get("reason") == "Unschedulable":
        return "Unschedulable"
    containers = (*mappings(status.get("initContainerStatuses")), *mappings(status.get("containerStatuses")))
    reasons = [mapping(mapping(container.get("state")).get("waiting")).get("reason") for container in containers]
    if any(reason in IMAGE for reason in reasons):
        return "ImagePull"
    return "Crashing" if CRASH_LOOP in reasons else COMING_UP


class SetReadiness(Struct, frozen=True):
    """What is known of the replicas of a set together."""

    shortfalls: Sequence[Shortfall | None]
    """What each replica waits for."""
    is_applied: bool
    """Whether every object of this generation exists, and nothing older is left."""
    was_applied: bool
    """Whether that was so before in this generation."""
    has_excess: bool
    """Whether replicas beyond those that are asked for are still there."""
    updating: bool
    updated: int
    """How many replicas are updated."""
    is_outdated: bool
    """Whether pods of an earlier template are left that users have to delete (update strategy OnDelete)."""
    stalled: str
    """That the update makes no progress; empty if it does, or none runs."""
    completed: bool
    """Whether there are pods, and all of them have completed."""
    cut_off: Alarm | None
    """What is wrong with a domain that pods are cut off from; None if nothing is. It may pass if the domain is being replaced."""


def of(known: SetReadiness) -> Readiness:
    """How far the set is."""
    count = len(known.shortfalls)
    waiting = [(index, missing) for index, missing in enumerate(known.shortfalls) if missing is not None]
    serving = count - len(waiting)
    available = f"{serving} of {_replicas(count)} available"
    if known.cut_off is not None:
        text = known.cut_off.text
        return Readiness(False, REPLACING, text, obstacle=None if known.cut_off.may_pass else Obstacle(DOMAIN_CUT, text))
    if known.updating:
        text = f"an update is in progress: {known.updated} of {_replicas(count)} updated, {serving} available"
        late = Obstacle(LATE, f"{known.stalled}; {text}") if known.stalled else None
        return Readiness(False, "Updating", text, obstacle=late)
    if waiting:
        index, missing = waiting[0]
        text = f"{available}; replica {index} waits for {missing.text}"
        return Readiness(False, missing.reason, text, may_have_lost=known.is_applied or known.was_applied)
    if known.has_excess:
        return Readiness(False, "ScalingIn", f"{available}; replicas that are not asked for any more are being deleted")
    if not known.is_applied and not known.was_applied:
        return Readiness(False, COMING_UP, f"{available}; not all objects of the set exist yet")
    if not count:
        return Readiness(True, "ScaledToZero", "scaled to zero")
    if known.completed:
        return Readiness(True, "Completed", "all pods have completed")
    if known.is_outdated:
        return Readiness(True, "OutdatedOnDelete", f"{available}, {known.updated} updated: the others are once their pods are deleted")
    return Readiness(True, "AllReplicasAvailable", f"{available} and updated")


def _replicas(count: int) -> str:
    return f"{count} replica{'' if count == 1 else 's'}"
