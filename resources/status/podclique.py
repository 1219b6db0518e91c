"""The status of a PodClique: its pods by state, its update, and whether it has its minimum."""

from collections.abc import Mapping, Sequence
from typing import Any

from engine.conditions import condition, merge
from engine.observed import timestamp
from engine.resource import NOW, Body
from resources.base import labels
from resources.lifecycle.availability import (
    BREACHED,
    SCHEDULED,
    breach_state,
    has_minimum_ready,
    is_provisional,
)
from resources.lifecycle.rollout import is_outdated
from resources.model.pod_facts import PodFacts
from resources.model.view import CliqueView, View
from resources.status import update


def of(view: View, clique: CliqueView) -> Body | None:
    """The desired status of a clique; None until the clique exists."""
    if clique.live is None:
        return None
    old: Mapping[str, Any] = clique.live.body.get("status") or {}
    progress = update.of_clique(view, clique, old.get("updateProgress"))
    target = progress["podTemplateHash"] if progress else clique.hash
    body: dict[str, Any] = {
        "replicas": sum(not pod.terminating for pod in clique.pods),
        "readyReplicas": clique.ready,
        "scheduledReplicas": clique.scheduled,
        "scheduleGatedReplicas": sum(pod.scheduling_gated for pod in clique.pods),
        "updatedReplicas": count_of_template(clique, target),
    }
    if clique.group is None:
        body["hpaPodSelector"] = labels.selector({**labels.default(view.root), labels.PODCLIQUE: clique.name})
    if progress:
        body["updateProgress"] = progress
    in_progress = update.is_in_progress(progress)
    if not in_progress and target == clique.clique.hash and body["updatedReplicas"] == body["replicas"]:
        body["currentPodTemplateHash"] = target
        body["currentPodCliqueSetGenerationHash"] = progress["podCliqueSetGenerationHash"] if progress else view.template.hash
    if is_settled(clique):
        body["observedGeneration"] = clique.live.generation
    if is_settled(clique) or "observedGeneration" in old:
        body["conditions"] = _conditions(view, clique, old.get("conditions") or (), in_progress)
    return body


def is_coming_up(clique: CliqueView, body: Body | None) -> bool:
    """Whether this is the status of a clique of which fewer pods are ready than it should have, and none has been lost."""
    if clique.live is None or body is None:
        return False
    return is_provisional(clique.live.body.get("status") or {}, body, clique.replicas, ("replicas", "scheduledReplicas", "readyReplicas"))


def summary_text(body: Body | None) -> str:
    """What a status says, for people: `2 of 3 pods updated, 3 ready`."""
    counts = body or {"updatedReplicas": 0, "replicas": 0, "readyReplicas": 0}
    return f"{counts['updatedReplicas']} of {counts['replicas']} pods updated, {counts['readyReplicas']} ready"


def _conditions(view: View, clique: CliqueView, old: Sequence[Mapping[str, Any]], in_progress: bool) -> Sequence[Mapping[str, Any]]:
    """The first conditions bear the time of the clique's creation: they describe the initial state, not a later change (Q16)."""
    at = NOW if old or clique.live is None else timestamp(clique.live.created_at)
    conditions = [_scheduled(clique, at), update.unknown(BREACHED) if in_progress else _breached(clique, at)]
    if clique.group is None and update.is_shown(old, in_progress=in_progress):
        stalled = update.stalled_text(view, clique.name, clique.clique.budget)
        conditions.append(update.in_progress_condition(in_progress=in_progress, stalled=stalled, at=at))
    return merge(old, conditions, owned=(SCHEDULED, BREACHED))


def count_of_template(clique: CliqueView, hash: str) -> int:
    """The number of the clique's pods that were created from the template with that hash, including terminating ones.

    A pod of the current template counts whichever operator wrote its hash.
    """
    current = clique.clique.hash
    return sum(pod.hash == hash or (hash == current and clique.is_current(pod)) for pod in clique.pods)


def is_settled(clique: CliqueView) -> bool:
    """Whether no pod has to be created, deleted or released from our scheduling gate."""
    assignment = clique.assignment
    return not (assignment.new or assignment.surplus or assignment.ended or any(pod.gated for pod in assignment.kept))


def is_updated(clique: CliqueView) -> bool:
    """Whether the clique has its minimum ready, no outdated pod serves, and its minimum was created from the current template."""
    has_minimum_updated = count_of_template(clique, clique.clique.hash) >= clique.clique.min_available
    return has_minimum_ready(clique) and not is_outdated(clique) and has_minimum_updated


def _scheduled(clique: CliqueView, at: Any) -> dict[str, Any]:
    minimum, scheduled = clique.clique.min_available, clique.scheduled
    counts = f"expected at least: {minimum}, found: {scheduled}"
    if scheduled >= minimum:
        return condition(SCHEDULED, True, "SufficientScheduledPods", f"Sufficient scheduled pods found. {counts}", at=at)
    return condition(SCHEDULED, False, "InsufficientScheduledPods", f"Insufficient scheduled pods. {counts}", at=at)


def _breached(clique: CliqueView, at: Any) -> dict[str, Any]:
    state = breach_state(clique)
    return condition(BREACHED, state.breached, state.reason, state.message, at=at)


def why_not_ready(pods: Sequence[PodFacts]) -> str:
    """`<pod>: <reason>` of the first pod, by name, that is not ready and whose status gives a reason; empty if there is none."""
    return next((f"{pod.name}: {pod.reason}" for pod in sorted(pods, key=lambda pod: pod.name) if not pod.ready and pod.reason), "")
