"""Components: how a forecast expects the controllers of Deployments and LeaderWorkerSets to go on with what the engine writes."""

from collections.abc import Mapping
from typing import Any, Final

from engine.conditions import find
from engine.observed import Live
from resources.base import kinds
from resources.base.fields import mapping, mappings

CONTROLLED: Final = frozenset({kinds.DEPLOYMENT.key, kinds.LEADER_WORKER_SET.key})
"""The kinds whose controllers create pods of their own and report how many are ready."""
FAILED: Final[Mapping[str, str]] = {"Progressing": "False", "ReplicaFailure": "True"}
"""Condition of a Deployment -> the status with which its controller reports that it does not go on."""


def is_component(live: Live) -> bool:
    """Whether a controller of the cluster creates the pods of this object."""
    return not CONTROLLED.isdisjoint(live.id.keys())


def has_failed(live: Live) -> bool:
    """Whether its controller has reported, of this generation, that it does not go on."""
    status = mapping(live.body.get("status"))
    conditions = list(mappings(status.get("conditions")))
    is_observed = status.get("observedGeneration", live.generation) == live.generation
    return is_observed and any((find(conditions, type) or {}).get("status") == value for type, value in FAILED.items())


def rolled_out(live: Live, moment: str) -> dict[str, Any] | None:
    """The patch of an object whose pods are all updated and ready; None if it says so already, or if it is paused."""
    spec, old = mapping(live.body.get("spec")), mapping(live.body.get("status"))
    replicas = spec.get("replicas", 1)
    if not isinstance(replicas, int) or spec.get("paused") is True:
        return None
    names = ("replicas", "updatedReplicas", "readyReplicas")
    counts = dict.fromkeys((*names, "availableReplicas") if live.id.kind == kinds.DEPLOYMENT.name else names, replicas)
    available = find(list(mappings(old.get("conditions"))), "Available") or {}
    is_reported = all((old.get(name) or 0) == count for name, count in counts.items())
    if is_reported and available.get("status") == "True" and old.get("observedGeneration") == live.generation:
        return None
    condition = {"type": "Available", "status": "True", "lastTransitionTime": moment}
    return {"status": {**counts, "observedGeneration": live.generation, "conditions": [condition]}}
