"""The status of a PodCliqueSet: the sum of its replicas, and the progress of its update."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.conditions import merge
from engine.observed import Live
from engine.resource import NOW, Body
from resources.base import labels
from resources.model import topology
from resources.model.template import HASH_VERSION, Template
from resources.model.view import View
from resources.policies.availability import has_minimum_ready
from resources.status import podclique, podgang, scaling_group


@dataclass(frozen=True, slots=True)
class ReplicaSummary:
    """What one replica adds to the status of its set."""

    complete: bool
    """Whether all its objects exist, and none is left that must be deleted."""
    available: bool
    updated: bool
    gangs: tuple[tuple[str, str], ...]
    """Name and phase of each gang."""
    cliques: tuple[int, int]
    """The numbers of updated and of all standalone cliques."""
    groups: tuple[int, int]
    """The numbers of updated and of all scaling groups."""


def summary(view: View, complete: bool) -> ReplicaSummary:
    """The summary of one replica."""
    standalone = [clique for clique in view.cliques if clique.group is None]
    groups = [(group, scaling_group.replicas_of(view, group)) for group in view.groups]
    available = all(map(has_minimum_ready, standalone)) and all(
        group.live is not None and not group.terminating and sum(map(scaling_group.is_available, replicas)) >= group.group.min_available
        for group, replicas in groups
    )
    updated_cliques = sum(map(podclique.is_updated, standalone))
    updated_groups = sum(scaling_group.is_current(replicas) for _, replicas in groups)
    return ReplicaSummary(
        complete=complete,
        available=available,
        updated=available and updated_cliques == len(standalone) and updated_groups == len(groups),
        gangs=tuple((gang.id.name, podgang.phase(gang)) for gang in view.gangs),
        cliques=(updated_cliques, len(standalone)),
        groups=(updated_groups, len(groups)),
    )


@dataclass(frozen=True, slots=True)
class UpdateState:
    """How far an update of the set is."""

    current: int | None
    """The index of the replica that is being updated."""
    done: bool
    """Whether nothing is outdated, and every replaced unit is ready again."""


def of(template: Template, replicas: int, root: Live, summaries: Sequence[ReplicaSummary], update: UpdateState) -> Body:
    """The desired status of the set, without `observedGeneration` and `lastErrors`."""
    old: Mapping[str, Any] = root.body.get("status") or {}
    body: dict[str, Any] = {
        "replicas": replicas,
        "availableReplicas": sum(summary.available for summary in summaries),
        "updatedReplicas": sum(summary.updated for summary in summaries),
        "hpaPodSelector": labels.selector(labels.default(template.id.name)),
        "currentGenerationHash": template.hash,
        "podGangStatuses": _gangs(summary.gangs for summary in summaries),
    }
    known = old.get("conditions") or []
    conditions = merge(known, topology.conditions(template.topology, root.generation), owned=(topology.UNAVAILABLE,))
    if conditions or known:
        body["conditions"] = conditions
    progress = _progress(template, old, summaries, update)
    return {**body, "updateProgress": progress} if progress else body


def last_updated_replica(root: Live) -> int | None:
    """The index of the replica that the live status names as the one being updated."""
    entries = (root.body.get("status") or {}).get("updateProgress", {}).get("currentlyUpdating") or ()
    return next((entry["replicaIndex"] for entry in entries), None)


def _progress(
    template: Template, old: Mapping[str, Any], summaries: Sequence[ReplicaSummary], update: UpdateState
) -> Mapping[str, Any] | None:
    """The progress of an update: it begins when the hash of the template changes, and ends when every replica is updated."""
    known = old.get("updateProgress") or {}
    before = old.get("currentGenerationHash")
    is_our_hash = str(before or "").startswith(f"{HASH_VERSION}-")
    begins = bool(before) and before != template.hash and (is_our_hash or not update.done)
    if not begins and not known:
        return None
    ended = None if begins else known.get("updateEndedAt")
    if template.on_delete or (not begins and not ended and update.done):
        ended = ended or NOW
    return {
        "updateStartedAt": NOW if begins else known.get("updateStartedAt") or NOW,
        "updateEndedAt": ended,
        "updatedPodCliquesCount": sum(summary.cliques[0] for summary in summaries),
        "totalPodCliquesCount": sum(summary.cliques[1] for summary in summaries),
        "updatedPodCliqueScalingGroupsCount": sum(summary.groups[0] for summary in summaries),
        "totalPodCliqueScalingGroupsCount": sum(summary.groups[1] for summary in summaries),
        "currentlyUpdating": None if ended or update.current is None else [_currently_updating(known, update.current)],
    }


def _currently_updating(known: Mapping[str, Any], index: int) -> Mapping[str, Any]:
    same = [entry for entry in known.get("currentlyUpdating") or () if entry.get("replicaIndex") == index]
    return {"replicaIndex": index, "updateStartedAt": same[0].get("updateStartedAt") if same else NOW}


def _gangs(replicas: Iterable[Iterable[tuple[str, str]]]) -> list[Mapping[str, str]]:
    return [{"name": name, "phase": phase} for gangs in replicas for name, phase in gangs]
