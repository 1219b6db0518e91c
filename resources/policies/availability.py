"""Availability: how many pods of a clique serve, whether that is too few, and since when."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from engine.conditions import find
from engine.observed import moment
from resources.model.view import CliqueView

SCHEDULED = "PodCliqueScheduled"
BREACHED = "MinAvailableBreached"

FIRST_MOMENTS = timedelta(seconds=5)
"""A transition within these of an object's creation is how it began, not something that happened to it (Q16)."""


@dataclass(frozen=True, slots=True)
class BreachState:
    """Whether fewer pods of a clique serve than must, in the words of its condition."""

    broken: bool
    reason: str
    message: str


def ready(clique: CliqueView) -> int:
    """Pods that are ready, those on their way out included."""
    return sum(pod.ready for pod in clique.pods)


def scheduled(clique: CliqueView) -> int:
    """Pods that have a node, those on their way out included."""
    return sum(pod.scheduled for pod in clique.pods)


def is_enough_scheduled(clique: CliqueView) -> bool:
    """Whether its minimum is scheduled."""
    return scheduled(clique) >= clique.clique.min_available


def breach(clique: CliqueView) -> BreachState:
    """Whether too few pods are scheduled, ready or starting; pods that pull images or run init containers are starting."""
    minimum, found = clique.clique.min_available, scheduled(clique)
    if found < minimum:
        return BreachState(True, "ScheduledReplicasBelowMinAvailable", f"Scheduled replicas ({found}) below MinAvailable ({minimum})")
    fine = found - sum(pod.failing or pod.unready for pod in clique.pods)
    told = f"expected at least: {minimum}, found: {fine}"
    if fine < minimum:
        return BreachState(True, "InsufficientReadyPods", f"Insufficient ready or starting pods. {told}")
    return BreachState(False, "SufficientReadyPods", f"Either sufficient ready or starting pods found. {told}")


def breached_since(clique: CliqueView) -> datetime | None:
    """When the breach began that is told and still there; None without one, and for a clique that never had its minimum scheduled."""
    if clique.live is None or not breach(clique).broken:
        return None
    conditions = (clique.live.body.get("status") or {}).get("conditions") or ()
    told = find(conditions, BREACHED)
    if told is None or told.get("status") != "True" or not _was_ever_scheduled(clique, conditions):
        return None
    return moment(told["lastTransitionTime"])


def _was_ever_scheduled(clique: CliqueView, conditions: Iterable[Mapping[str, Any]]) -> bool:
    told = find(conditions, SCHEDULED)
    if told is None or clique.live is None:
        return False
    return told.get("status") == "True" or moment(told["lastTransitionTime"]) > clique.live.created_at + FIRST_MOMENTS
