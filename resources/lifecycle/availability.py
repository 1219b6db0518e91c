"""Availability: whether cliques and scaling groups have their minAvailable, and since when they have not."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct

from engine.conditions import find, is_true
from engine.observed import Live, moment
from engine.resource import Body
from resources.model.view import CliqueView, GroupView

SCHEDULED = "PodCliqueScheduled"
BREACHED = "MinAvailableBreached"
INITIALIZED = "Initialized"
"""The condition of a PodGang that has had all its pods."""

FIRST_MOMENTS = timedelta(seconds=5)
"""A condition that changed within this time after the creation of its object describes the initial state, not a later change (Q16)."""


class BreachState(Struct, frozen=True):
    """Whether a clique is below its minAvailable, with the reason and the message of its condition MinAvailableBreached."""

    breached: bool
    reason: str
    message: str


def has_minimum_scheduled(clique: CliqueView) -> bool:
    """Whether at least minAvailable pods are scheduled."""
    return clique.scheduled >= clique.clique.min_available


def has_minimum_ready(clique: CliqueView) -> bool:
    """Whether the clique exists, is not being deleted, and has at least minAvailable ready pods."""
    return clique.live is not None and not clique.terminating and clique.ready >= clique.clique.min_available


def breach_state(clique: CliqueView) -> BreachState:
    """The breach state of a clique, from its pods: breached if fewer than minAvailable of them are scheduled and healthy.

    A clique that is scaled below minAvailable needs no more than all its pods: nothing is lost that its gang could be recycled for.

    A scheduled pod is healthy unless it is `failing` or `unready`; while it pulls images or runs init containers it is healthy, and when it
    has completed.
    """
    minimum, scheduled = min(clique.clique.min_available, clique.replicas), clique.scheduled
    if scheduled < minimum:
        return BreachState(True, "ScheduledReplicasBelowMinAvailable", f"Scheduled replicas ({scheduled}) below MinAvailable ({minimum})")
    healthy = scheduled - sum(pod.failing or pod.unready for pod in clique.pods)
    counts = f"expected at least: {minimum}, found: {healthy}"
    if healthy < minimum:
        return BreachState(True, "InsufficientReadyPods", f"Insufficient ready or starting pods. {counts}")
    return BreachState(False, "SufficientReadyPods", f"Either sufficient ready or starting pods found. {counts}")


def breached_since(clique: CliqueView) -> datetime | None:
    """The onset of the clique's breach, as its condition records it.

    None if the clique is not breached, if its condition does not say so yet, or if its minimum was never scheduled.
    """
    if clique.live is None or not breach_state(clique).breached:
        return None
    return _onset(clique.live) if was_ever_scheduled(clique.live) else None


def group_breached_since(group: GroupView) -> datetime | None:
    """The time at which the group fell below its minAvailable, as its condition records it; None if the condition is not True."""
    return _onset(group.live) if group.live is not None else None


def is_sound(members: Sequence[CliqueView]) -> bool:
    """Whether a replica of a scaling group has all its cliques, and none of them is breached."""
    return all(clique.live is not None and not clique.terminating and not breach_state(clique).breached for clique in members)


def _onset(live: Live) -> datetime | None:
    """When MinAvailableBreached became True; None if it is not True."""
    condition = find(_conditions(live), BREACHED)
    return moment(condition["lastTransitionTime"]) if condition is not None and condition.get("status") == "True" else None


def was_ever_scheduled(live: Live) -> bool:
    """Whether PodCliqueScheduled is True, or was True before: it changed after the first moments of the clique."""
    condition = find(_conditions(live), SCHEDULED)
    if condition is None:
        return False
    return condition.get("status") == "True" or moment(condition["lastTransitionTime"]) > live.created_at + FIRST_MOMENTS


def _conditions(live: Live) -> Iterable[Mapping[str, Any]]:
    return (live.body.get("status") or {}).get("conditions") or ()


def is_provisional(old: Body, new: Body, desired: int, counts: Sequence[str]) -> bool:
    """Whether the new status is that of an object that is still coming up.

    The last of the counts is below the desired number, none of them has fallen since the old status was written, and no breach begins: a
    loss is never provisional.
    """
    has_fallen = any(new[count] < (old.get(count) or 0) for count in counts)
    return new[counts[-1]] < desired and not has_fallen and not _breach_begins(old, new)


def _breach_begins(old: Body, new: Body) -> bool:
    """Whether a breach begins whose time is that of the write. The first conditions of an object bear the time of its creation."""
    known = old.get("conditions") or ()
    return bool(known) and is_true(new.get("conditions") or (), BREACHED) and not is_true(known, BREACHED)
