"""The status of a PodGang: whether all its pods exist, and how far they have come."""

from collections.abc import Mapping
from typing import Any

from engine.conditions import condition, is_true, keep
from engine.resource import Body
from resources.model.view import CliqueView, GangView, View, is_scheduled

INITIALIZED = "Initialized"


def of(view: View, gang: GangView) -> Body | None:
    """What the gang says of itself, once it is there to say it."""
    if gang.live is None:
        return None
    old: Mapping[str, Any] = gang.live.body.get("status") or {}
    conditions = old.get("conditions") or ()
    return {"phase": phase(gang), "conditions": keep(conditions, [_initialized(gang, conditions)], owned=(INITIALIZED,))}


def phase(gang: GangView) -> str:
    """Pending until its minimum is scheduled, Starting until its minimum is ready, then Running."""
    if not is_scheduled(gang):
        return "Pending"
    is_ready = all(clique is not None and sum(pod.ready for pod in clique.pods) >= minimum for _, minimum, clique in gang.groups)
    return "Running" if is_ready else "Starting"


def _initialized(gang: GangView, conditions: Any) -> dict[str, Any]:
    """A gang that has been complete once stays initialized when a pod of it is replaced."""
    if is_true(conditions, INITIALIZED) or all(clique is not None and _is_complete(clique) for _, _, clique in gang.groups):
        return condition(INITIALIZED, True, "PodGangPodsCreated", "PodGang is fully initialized")
    return condition(INITIALIZED, False, "PodGangPodsCreationPending", "Not all constituent pods have been created yet")


def _is_complete(clique: CliqueView) -> bool:
    return clique.live is not None and not clique.going and not clique.assignment.fresh
