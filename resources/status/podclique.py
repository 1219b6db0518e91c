"""The status of a PodClique: its pods counted, and whether enough of them serve."""

from collections.abc import Mapping, Sequence
from typing import Any

from engine.conditions import condition, keep
from engine.resource import NOW, Body
from resources.base import labels
from resources.model.pod_facts import PodFacts
from resources.model.view import CliqueView, View
from resources.policies.availability import BREACHED, SCHEDULED, breach, ready, scheduled
from resources.policies.rollout import has_old
from resources.status import errors, update


def of(view: View, clique: CliqueView) -> Body | None:
    """What the clique says of itself, once it is there to say it."""
    if clique.live is None:
        return None
    old: Mapping[str, Any] = clique.live.body.get("status") or {}
    progress = update.of_clique(view, clique, old.get("updateProgress"))
    target = progress["podTemplateHash"] if progress else clique.hash
    body: dict[str, Any] = {
        "replicas": sum(not pod.going for pod in clique.pods),
        "readyReplicas": ready(clique),
        "scheduledReplicas": scheduled(clique),
        "scheduleGatedReplicas": sum(pod.held_at_gate for pod in clique.pods),
        "updatedReplicas": made_from(clique, target),
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
        body["conditions"] = _conditions(clique, old.get("conditions") or (), in_progress)
    return {**body, **errors.of(clique.id, view.failed_calls, old)}


def _conditions(clique: CliqueView, old: Sequence[Mapping[str, Any]], in_progress: bool) -> Sequence[Mapping[str, Any]]:
    """How a clique began is told as of its creation, so that it is not taken for something that happened to it (Q16)."""
    at = NOW if old or clique.live is None else clique.live.created_at.strftime("%Y-%m-%dT%H:%M:%SZ")
    conditions = [_scheduled(clique, at), update.unknown(BREACHED) if in_progress else _breached(clique, at)]
    return keep(old, conditions, owned=(SCHEDULED, BREACHED))


def made_from(clique: CliqueView, hash: str) -> int:
    """Pods made from a certain template, those on their way out included."""
    return sum(pod.hash == hash for pod in clique.pods)


def is_settled(clique: CliqueView) -> bool:
    """Whether all its pods exist, none is too many, and none waits at our gate."""
    assignment = clique.assignment
    return not (assignment.fresh or assignment.surplus or assignment.spent or any(pod.gated for pod in assignment.kept))


def is_available(clique: CliqueView) -> bool:
    """Whether it is there to stay and its minimum is ready."""
    return clique.live is not None and not clique.going and ready(clique) >= clique.clique.min_available


def is_updated(clique: CliqueView) -> bool:
    """Whether it is available and all that serves in it comes from the template of today, its minimum at least."""
    return is_available(clique) and not has_old(clique) and made_from(clique, clique.clique.hash) >= clique.clique.min_available


def _scheduled(clique: CliqueView, at: Any) -> dict[str, Any]:
    minimum, found = clique.clique.min_available, scheduled(clique)
    told = f"expected at least: {minimum}, found: {found}"
    if found >= minimum:
        return condition(SCHEDULED, True, "SufficientScheduledPods", f"Sufficient scheduled pods found. {told}", at=at)
    return condition(SCHEDULED, False, "InsufficientScheduledPods", f"Insufficient scheduled pods. {told}", at=at)


def _breached(clique: CliqueView, at: Any) -> dict[str, Any]:
    found = breach(clique)
    return condition(BREACHED, found.broken, found.reason, found.message, at=at)


def trouble(pods: Sequence[PodFacts]) -> str:
    """What keeps the first pod that is not ready, in the cluster's words."""
    return next((f"{pod.name}: {pod.trouble}" for pod in sorted(pods, key=lambda pod: pod.name) if not pod.ready and pod.trouble), "")
