"""The status of a PodGang: its phase, and whether all its pods exist."""

from collections.abc import Mapping
from typing import Any, Final

from engine.conditions import condition, is_true, merge
from engine.report.printable import clipped
from engine.resource import Body
from resources.lifecycle.availability import INITIALIZED
from resources.model.view import CliqueView, GangView, View, is_scheduled
from resources.ports.scheduler import GangAnswer

SCHEDULED: Final = "Scheduled"
"""The type of the condition that says whether the minimum of a gang is scheduled, where the scheduler tells it."""
LONGEST_MESSAGE: Final = 1024
COMING_UP = ("Pending", "Starting")
"""The phases before a gang runs."""


def of(view: View, gang: GangView, answer: GangAnswer | None = None) -> Body | None:
    """The desired status of a gang; None until the gang exists. `answer`: what its scheduler says of it."""
    if gang.live is None:
        return None
    old: Mapping[str, Any] = gang.live.body.get("status") or {}
    conditions = old.get("conditions") or ()
    current = [_initialized(gang, conditions), *([_scheduled(gang, answer)] if answer is not None else [])]
    return {
        "phase": phase(gang),
        "conditions": merge(conditions, current, owned=(INITIALIZED, *((SCHEDULED,) if answer is not None else ()))),
    }


def is_coming_up(gang: GangView) -> bool:
    """Whether a gang that has not run yet does not run yet."""
    known = ((gang.live.body.get("status") or {}).get("phase") if gang.live is not None else None) or "Pending"
    return known in COMING_UP and phase(gang) in COMING_UP


def phase(gang: GangView) -> str:
    """Pending until its minimum is scheduled, Starting until its minimum is ready, then Running; Succeeded when all pods have completed."""
    if not is_scheduled(gang):
        return "Pending"
    pods = [pod for clique in gang.cliques for pod in clique.pods]
    if pods and all(pod.completed for pod in pods):
        return "Succeeded"
    is_ready = all(clique is not None and clique.ready + clique.completed >= minimum for _, minimum, clique in gang.groups)
    return "Running" if is_ready else "Starting"


def _initialized(gang: GangView, conditions: Any) -> dict[str, Any]:
    """A gang that once had all its pods stays initialized while a pod is replaced."""
    if is_true(conditions, INITIALIZED) or has_all_pods(gang):
        return condition(INITIALIZED, True, "PodGangPodsCreated", "PodGang is fully initialized")
    return condition(INITIALIZED, False, "PodGangPodsCreationPending", "Not all constituent pods have been created yet")


def _scheduled(gang: GangView, answer: GangAnswer) -> dict[str, Any]:
    """The scheduler's words; of a gang that was scheduled and has lost pods, how many it has."""
    if not answer.is_scheduled:
        return condition(SCHEDULED, False, answer.reason, clipped(answer.message or "the gang cannot be scheduled", LONGEST_MESSAGE))
    if is_scheduled(gang):
        return condition(SCHEDULED, True, answer.reason, "The minimum of the gang is scheduled")
    return condition(
        SCHEDULED, False, "MembersMissing", f"{bound_pods(gang)} of {needed_pods(gang)} pods that the gang needs are scheduled"
    )


def bound_pods(gang: GangView) -> int:
    """How many of the pods that a gang needs are scheduled: of each clique at most its minimum."""
    return sum(min(minimum, sum(pod.scheduled for pod in clique.pods)) for _, minimum, clique in gang.groups if clique is not None)


def needed_pods(gang: GangView) -> int:
    """How many pods a gang needs."""
    return sum(minimum for _, minimum, _ in gang.groups)


def has_all_pods(gang: GangView) -> bool:
    """Whether all pods of the gang's cliques exist."""
    return all(clique is not None and _has_all_pods(clique) for _, _, clique in gang.groups)


def _has_all_pods(clique: CliqueView) -> bool:
    return clique.live is not None and not clique.terminating and not clique.assignment.new
