"""Absence: why a clique or a pod does not exist yet, as far as the statuses tell that were written when it was last observed."""

from collections.abc import Mapping
from typing import Any

from engine.conditions import is_true
from engine.observed import Live
from engine.reason import Reason
from resources.model.view import CliqueView, View
from resources.policies.availability import BREACHED
from resources.status import update


def of_clique(view: View, clique: CliqueView) -> Reason | None:
    """Why a clique does not exist; None if it exists, or if nothing explains it: then somebody deleted it."""
    if clique.live is not None:
        return None
    return _of_member(clique.group.live, clique.group_replica) if clique.group is not None else None


def _of_member(group: Live | None, index: int) -> Reason | None:
    """Why a clique of the scaling group's replica with that index does not exist."""
    status = _status(group)
    if update.is_in_progress(status.get("updateProgress")):
        return Reason.TEMPLATE_CHANGED
    if is_true(status.get("conditions") or (), BREACHED):
        return Reason.GANG_TERMINATED
    return Reason.SCALED_OUT if index >= (status.get("replicas") or 0) else None


def of_pod(view: View, clique: CliqueView, index: int) -> Reason | None:
    """Why a clique has no pod with that index; None if its clique does not exist either, and nothing explains that."""
    predecessors = [pod for pod in clique.pods if pod.index == index and not pod.serving]
    if any(pod.ended for pod in predecessors):
        return Reason.POD_ENDED
    if any(not clique.is_current(pod) for pod in predecessors):
        return Reason.TEMPLATE_CHANGED
    if predecessors:
        return Reason.MISSING
    if clique.live is None:
        return of_clique(view, clique)
    status = _status(clique.live)
    if "observedGeneration" not in status:
        return Reason.CLIQUE_CREATED
    if update.is_in_progress(status.get("updateProgress")):
        return Reason.TEMPLATE_CHANGED
    return Reason.SCALED_OUT if status["observedGeneration"] != clique.live.generation else Reason.MISSING


def _status(live: Live | None) -> Mapping[str, Any]:
    return (live.body.get("status") or {}) if live is not None else {}


def follows_pods(view: View) -> Reason:
    """Why an object that lists the pods of the replica is patched."""
    return Reason.TEMPLATE_CHANGED if view.removals.updating else Reason.PODS_CHANGED
