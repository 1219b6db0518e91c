"""The field `updateProgress` of cliques and scaling groups.

The update itself does not read it. Gang termination depends on it: while an update is in progress, MinAvailableBreached is Unknown.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from engine.conditions import condition, find
from engine.duration import spell
from engine.observed import timestamp
from engine.resource import NOW
from resources.lifecycle.availability import has_minimum_ready
from resources.lifecycle.rollout import is_fully_ready, is_outdated, is_outdated_pod, needs_update
from resources.model.template import UpdateBudget
from resources.model.view import CliqueView, GroupView, View

Progress = dict[str, Any]
IN_PROGRESS: Final = "UpdateInProgress"
"""The condition. The same word is the reason of conditions that are not evaluated during an update."""

LATE: Final = "ProgressDeadlineExceeded"
"""The reason of an update that makes no progress."""


def unknown(type: str) -> dict[str, Any]:
    """The condition of that type during an update, in which it is not evaluated: its status is Unknown."""
    return condition(type, None, IN_PROGRESS, "Update is in progress")


def in_progress_condition(*, in_progress: bool, stalled: str, at: Any = NOW) -> dict[str, Any]:
    """The condition that says whether an update runs. `stalled`: that it makes no progress, as text; empty if it does."""
    if stalled:
        return condition(IN_PROGRESS, None, LATE, stalled, at=at)
    if in_progress:
        return condition(IN_PROGRESS, True, "Progressing", "An update is in progress", at=at)
    return condition(IN_PROGRESS, False, "NoActiveUpdate", "No update is in progress", at=at)


def is_shown(old: Sequence[Mapping[str, Any]], *, in_progress: bool) -> bool:
    """Whether the status has the condition: not that of an object of an earlier version until an update begins."""
    return in_progress or not old or find(old, IN_PROGRESS) is not None


def stalled_text(view: View, name: str, budget: UpdateBudget) -> str:
    """That the update of a clique or a scaling group makes no progress; empty if it does, or none runs."""
    since = view.stalled.get(name)
    if since is None or budget.progress_deadline is None:
        return ""
    return f"no progress since {timestamp(since)}, longer than progressDeadline ({spell(budget.progress_deadline)})"


def summary_text(status: Mapping[str, Any] | None) -> str:
    """What the status of a set or a group says, for people: `1 of 2 replicas updated, 2 available`."""
    counts = {"updatedReplicas": 0, "replicas": 0, "availableReplicas": 0, **(status or {})}
    return f"{counts['updatedReplicas']} of {counts['replicas']} replicas updated, {counts['availableReplicas']} available"


def is_in_progress(progress: Mapping[str, Any] | None) -> bool:
    """Whether an update has begun and not ended."""
    return bool(progress) and not (progress or {}).get("updateEndedAt")


def begins(status: Mapping[str, Any] | None) -> bool:
    """Whether this desired status records that an update, or the update of one replica, begins now."""
    progress = (status or {}).get("updateProgress") or {}
    entries = (progress, *(progress.get("currentlyUpdating") or ()))
    return is_in_progress(progress) and any(entry.get("updateStartedAt") is NOW for entry in entries)


def of_clique(view: View, clique: CliqueView, known: Mapping[str, Any] | None) -> Progress | None:
    """The progress of a clique; None for members of a group, which are replaced with their group, unless the strategy is OnDelete.

    `known` is the live progress. A clique that was never updated has an update that ended when it began (Q25). The status that says that an
    update begins may not have been written: an outdated pod that is being deleted shows that it has begun, too.
    """
    if clique.group is not None and not clique.on_delete:
        return None
    generation = view.template.hash
    if not known or known.get("podCliqueSetGenerationHash") != generation:
        if known and not view.removals.updating and any(map(needs_update, view.cliques)):
            return dict(known)
        is_leaving = any(is_outdated_pod(clique, pod) for pod in clique.assignment.terminating)
        known = {"updateStartedAt": NOW} if known and is_leaving else None
    started = (known or {}).get("updateStartedAt") or NOW
    progress: Progress = {"updateStartedAt": started, "podCliqueSetGenerationHash": generation, "podTemplateHash": clique.clique.hash}
    if not needs_update(clique) and (not is_in_progress(known) or is_fully_ready(clique)):
        ended = (known or {}).get("updateEndedAt") or NOW
        return {**progress, "updateEndedAt": ended, "readyPodsSelectedToUpdate": None}
    return {**progress, "updateEndedAt": None, "readyPodsSelectedToUpdate": _selected_pods(view, clique, known)}


def _selected_pods(view: View, clique: CliqueView, known: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """The ready pod that is being replaced and those replaced before. A pod is named when it is selected or while it terminates."""
    selected = [pod.name for pod in clique.outdated_pods if pod.ready and pod.name in view.removals.pods]
    terminating = [pod.name for pod in clique.assignment.terminating if is_outdated_pod(clique, pod)]
    return _selection((known or {}).get("readyPodsSelectedToUpdate"), [*selected, *terminating])


def _selection(before: Mapping[str, Any] | None, selected: Sequence[Any]) -> Mapping[str, Any] | None:
    """The selection `{"current": ..., "completed": [...]}` after `before`; unchanged if nothing is `selected`, or its current one still is.

    Of several that are replaced at a time it names one.
    """
    if not selected or (before and before.get("current") in selected):
        return before
    current = selected[0]
    completed = [*before.get("completed", ()), before["current"]] if before else []
    return {"current": current, "completed": completed} if completed else {"current": current}


def of_group(view: View, group: GroupView, replicas: Sequence[Sequence[CliqueView]], known: Mapping[str, Any] | None) -> Progress | None:
    """The progress of a scaling group; None before its first update. It begins when its replica of the set is the one being updated.

    `replicas` are the cliques of each replica of the group, `known` is the live progress. With OnDelete an update ends when it begins.
    """
    generation = view.template.hash
    outdated = any(needs_update(clique) for members in replicas for clique in members)
    if not known or known.get("podCliqueSetGenerationHash") != generation:
        if not view.removals.updating and not view.template.on_delete and not (known and not outdated):
            return dict(known) if known else None
        known = None
    updated = sum(
        not is_outdated(clique) and clique.live is not None and not clique.terminating for members in replicas for clique in members
    )
    progress: Progress = {
        "updateStartedAt": (known or {}).get("updateStartedAt") or NOW,
        "podCliqueSetGenerationHash": generation,
        "updatedPodCliquesCount": updated,
        "totalPodCliquesCount": sum(map(len, replicas)),
    }
    all_updated = not outdated and updated == progress["totalPodCliquesCount"]
    if view.template.on_delete or (all_updated and (not is_in_progress(known) or all(map(_is_ready, replicas)))):
        ended = (known or {}).get("updateEndedAt") or NOW
        return {**progress, "updateEndedAt": ended, "readyReplicaIndicesSelectedToUpdate": None}
    return {**progress, "updateEndedAt": None, "readyReplicaIndicesSelectedToUpdate": _selected_replica(view, replicas, known)}


def _selected_replica(view: View, replicas: Sequence[Sequence[CliqueView]], known: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """The replica that is being replaced, or whose successor is not ready yet, and those replaced before."""
    selected = [index for index, members in enumerate(replicas) if any(clique.name in view.removals.cliques for clique in members)]
    successors = [index for index, members in enumerate(replicas) if not _is_ready(members) and not any(map(needs_update, members))]
    return _selection((known or {}).get("readyReplicaIndicesSelectedToUpdate"), [*selected, *successors])


def _is_ready(members: Sequence[CliqueView]) -> bool:
    return all(map(has_minimum_ready, members))
