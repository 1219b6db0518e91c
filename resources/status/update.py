"""The progress of an update, as sets, groups and cliques tell it. It is told, never asked: nothing is decided by it."""

from collections.abc import Mapping, Sequence
from typing import Any

from engine.conditions import condition
from engine.resource import NOW
from resources.model.view import CliqueView, GroupView, View
from resources.policies.availability import ready
from resources.policies.rollout import has_old, is_old, is_stale, is_whole

Progress = dict[str, Any]


def unknown(type: str) -> dict[str, Any]:
    """A condition that cannot be judged while an update is under way."""
    return condition(type, None, "UpdateInProgress", "Update is in progress")


def is_in_progress(progress: Mapping[str, Any] | None) -> bool:
    """Whether an update has begun and not ended."""
    return bool(progress) and not (progress or {}).get("updateEndedAt")


def begins(status: Mapping[str, Any] | None) -> bool:
    """Whether a status to be written says that an update, or the turn of a replica in it, begins now."""
    progress = (status or {}).get("updateProgress") or {}
    told = (progress, *(progress.get("currentlyUpdating") or ()))
    return is_in_progress(progress) and any(one.get("updateStartedAt") is NOW for one in told)


def of_clique(view: View, clique: CliqueView, known: Mapping[str, Any] | None) -> Progress | None:
    """The progress of a clique that stands alone; members of a group are replaced with their group, and tell none unless asked for.

    A clique that has never been updated shows an update that ended as it began (Q25).
    """
    if clique.group is not None and not clique.on_delete:
        return None
    generation = view.template.hash
    if not known or known.get("podCliqueSetGenerationHash") != generation:
        if known and not view.moves.updating and any(map(is_stale, view.cliques)):
            return dict(known)
        known = None
    started = (known or {}).get("updateStartedAt") or NOW
    progress: Progress = {"updateStartedAt": started, "podCliqueSetGenerationHash": generation, "podTemplateHash": clique.clique.hash}
    if not is_stale(clique) and (not is_in_progress(known) or is_whole(clique)):
        ended = (known or {}).get("updateEndedAt") or NOW
        return {**progress, "updateEndedAt": ended, "readyPodsSelectedToUpdate": None}
    return {**progress, "updateEndedAt": None, "readyPodsSelectedToUpdate": _selected_pods(view, clique, known)}


def _selected_pods(view: View, clique: CliqueView, known: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """The pod whose turn it is, and those who have had theirs: told while it is chosen or leaves, for then it can be seen."""
    before = (known or {}).get("readyPodsSelectedToUpdate")
    chosen = [pod.name for pod in clique.assignment.kept if pod.ready and is_old(clique, pod) and pod.name in view.moves.pods]
    leaving = [pod.name for pod in clique.assignment.going if is_old(clique, pod)]
    return _next(before, next(iter([*chosen, *leaving]), None))


def _next(before: Mapping[str, Any] | None, chosen: Any) -> Mapping[str, Any] | None:
    if chosen is None or (before and before.get("current") == chosen):
        return before
    completed = [*before.get("completed", ()), before["current"]] if before else []
    return {"current": chosen, "completed": completed} if completed else {"current": chosen}


def of_group(view: View, group: GroupView, replicas: Sequence[Sequence[CliqueView]], known: Mapping[str, Any] | None) -> Progress | None:
    """The progress of a scaling group: it begins when the turn comes to its replica of the set.

    Where people replace what is old, it has ended as it begins.
    """
    generation = view.template.hash
    stale = any(is_stale(clique) for members in replicas for clique in members)
    if not known or known.get("podCliqueSetGenerationHash") != generation:
        if not view.moves.updating and not view.template.on_delete and not (known and not stale):
            return dict(known) if known else None
        known = None
    updated = sum(not has_old(clique) and clique.live is not None and not clique.going for members in replicas for clique in members)
    progress: Progress = {
        "updateStartedAt": (known or {}).get("updateStartedAt") or NOW,
        "podCliqueSetGenerationHash": generation,
        "updatedPodCliquesCount": updated,
        "totalPodCliquesCount": sum(map(len, replicas)),
    }
    all_new = not stale and updated == progress["totalPodCliquesCount"]
    if view.template.on_delete or (all_new and (not is_in_progress(known) or all(map(_serve, replicas)))):
        ended = (known or {}).get("updateEndedAt") or NOW
        return {**progress, "updateEndedAt": ended, "readyReplicaIndicesSelectedToUpdate": None}
    return {**progress, "updateEndedAt": None, "readyReplicaIndicesSelectedToUpdate": _selected_replica(view, replicas, known)}


def _selected_replica(view: View, replicas: Sequence[Sequence[CliqueView]], known: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """The replica whose turn it is, the one that is replaced or not there again, and those that have had theirs."""
    chosen = [index for index, members in enumerate(replicas) if any(clique.name in view.moves.cliques for clique in members)]
    coming = [index for index, members in enumerate(replicas) if not _serve(members) and not any(map(is_stale, members))]
    return _next((known or {}).get("readyReplicaIndicesSelectedToUpdate"), next(iter([*chosen, *coming]), None))


def _serve(members: Sequence[CliqueView]) -> bool:
    return all(clique.live is not None and not clique.going and ready(clique) >= clique.clique.min_available for clique in members)
