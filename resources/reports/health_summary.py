"""Health summary: the health of a set or a graph in one word, from the conditions of its status that GitOps tools read."""

from enum import StrEnum

from msgspec import Struct

from engine.conditions import READY, find, is_true
from engine.health import RECONCILING, STALLED
from engine.observed import Live
from resources.base.fields import mapping, mappings


class HealthState(StrEnum):
    """The health of a root, the worst first."""

    STALLED = "Stalled"
    """A user or another controller has to act."""
    RECONCILING = "Reconciling"
    """It is under way, or its status is about an earlier generation."""
    NOT_READY = "not ready"
    """It does not serve, and its status does not say why: an earlier version has written it."""
    UNKNOWN = "unknown"
    """Its status says nothing of it, e.g. as it does not exist yet."""
    READY = "Ready"


class HealthSummary(Struct, frozen=True):
    """The health of a root, and why it is not ready."""

    health: HealthState
    reason: str = ""
    """The reason of the condition, one word; empty if it is ready or nothing is known."""
    message: str = ""


def health_of(root: Live) -> HealthSummary:
    """The health of a root as its status says it."""
    conditions = tuple(mappings(mapping(root.body.get("status")).get("conditions")))
    ready = find(conditions, READY)
    if ready is None:
        return HealthSummary(HealthState.UNKNOWN)
    stated = ready.get("observedGeneration")
    if isinstance(stated, int) and stated < root.generation:
        return HealthSummary(HealthState.RECONCILING, "NotObserved", "its status is about an earlier generation")
    if is_true(conditions, READY):
        return HealthSummary(HealthState.READY)
    words = {STALLED: HealthState.STALLED, RECONCILING: HealthState.RECONCILING}
    health = next((word for type, word in words.items() if is_true(conditions, type)), HealthState.NOT_READY)
    return HealthSummary(health, str(ready.get("reason") or ""), str(ready.get("message") or ""))
