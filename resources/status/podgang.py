"""The status of a PodGang: its phase, and whether all its pods exist."""

from collections.abc import Mapping
from typing import Any

from engine.conditions import condition, is_true, merge
from engine.resource import Body
from resources.model.view import CliqueView, GangView, View, is_scheduled
from resources.policies.availability import INITIALIZED

COMING_UP = ("Pending", "Starting")
"""The phases before a gang runs."""


def of(view: View, gang: GangView) -> Body | None:
    """The desired status of a gang; None until the gang exists."""
    if gang.live is None:
        return None
    old: Mapping[str, Any] = gang.live.body.get("status") or {}
    conditions = old.get("conditions") or ()
    return {"phase": phase(gang), "conditions": merge(conditions, [_initialized(gang, conditions)], owned=(INITIALIZED,))}


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
    is_ready = all(
        clique is not None and sum(pod.ready or pod.completed for pod in clique.pods) >= minimum for _, minimum, clique in gang.groups
    )
    return "Running" if is_ready else "Starting"


def _initialized(gang: GangView, conditions: Any) -> dict[str, Any]:
    """A gang that once had all its pods stays initialized while a pod is replaced."""
    if is_true(conditions, INITIALIZED) or has_all_pods(gang):
        return condition(INITIALIZED, True, "PodGangPodsCreated", "PodGang is fully initialized")
    return condition(INITIALIZED, False, "PodGangPodsCreationPending", "Not all constituent pods have been created yet")


def has_all_pods(gang: GangView) -> bool:
    """Whether all pods of the gang's cliques exist."""
    return all(clique is not None and _has_all_pods(clique) for _, _, clique in gang.groups)


def _has_all_pods(clique: CliqueView) -> bool:
    return clique.live is not None and not clique.terminating and not clique.assignment.new
