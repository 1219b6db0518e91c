"""The status of a PodCliqueSet: the sum of what its replicas say."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.conditions import keep
from engine.observed import Live
from engine.resource import NOW, Body
from resources.base import labels
from resources.model import topology
from resources.model.template import HASH_VERSION, Template
from resources.model.view import View
from resources.status import podclique, podgang, scaling_group


@dataclass(frozen=True, slots=True)
class ReplicaSummary:
    """What one replica adds to the status of its set."""

    complete: bool
    """Everything that it should have exists."""
    available: bool
    updated: bool
    gangs: tuple[tuple[str, str], ...]
    """Name and phase of each gang."""
    cliques: tuple[int, int]
    """How many of its cliques that stand alone are updated, of how many."""
    groups: tuple[int, int]
    """How many of its scaling groups are, of how many."""


def standing(view: View, complete: bool) -> ReplicaSummary:
    """How one replica stands."""
    alone = [clique for clique in view.cliques if clique.group is None]
    groups = [(group, scaling_group.replicas_of(view, group)) for group in view.groups]
    available = all(map(podclique.is_available, alone)) and all(
        group.live is not None and not group.going and sum(map(scaling_group.is_available, replicas)) >= group.group.min_available
        for group, replicas in groups
    )
    cliques = (sum(map(podclique.is_updated, alone)), len(alone))
    current = (sum(scaling_group.is_current(replicas) for _, replicas in groups), len(groups))
    updated = available and cliques[0] == cliques[1] and current[0] == current[1]
    return ReplicaSummary(complete, available, updated, tuple((gang.id.name, podgang.phase(gang)) for gang in view.gangs), cliques, current)


@dataclass(frozen=True, slots=True)
class Rollout:
    """Where an update of the set stands."""

    current: int | None
    """The replica whose turn it is."""
    done: bool
    """Nothing is of an old template, and nothing that was replaced is missing."""


def of(template: Template, replicas: int, root: Live, standings: Sequence[ReplicaSummary], rollout: Rollout) -> Body:
    """What the set says of itself."""
    old: Mapping[str, Any] = root.body.get("status") or {}
    body: dict[str, Any] = {
        "replicas": replicas,
        "availableReplicas": sum(one.available for one in standings),
        "updatedReplicas": sum(one.updated for one in standings),
        "hpaPodSelector": labels.selector(labels.default(template.id.name)),
        "currentGenerationHash": template.hash,
        "podGangStatuses": _gangs(one.gangs for one in standings),
    }
    known = old.get("conditions") or []
    conditions = keep(known, topology.conditions(template.topology, root.generation), owned=(topology.UNAVAILABLE,))
    if conditions or known:
        body["conditions"] = conditions
    progress = _progress(template, old, standings, rollout)
    return {**body, "updateProgress": progress} if progress else body


def _progress(
    template: Template, old: Mapping[str, Any], standings: Sequence[ReplicaSummary], rollout: Rollout
) -> Mapping[str, Any] | None:
    """The progress of an update: it begins when the template changes, and ends when the last replica is through."""
    known = old.get("updateProgress") or {}
    before = old.get("currentGenerationHash")
    ours = str(before or "").startswith(f"{HASH_VERSION}-")
    begins = bool(before) and before != template.hash and (ours or not rollout.done)
    if not begins and not known:
        return None
    ended = None if begins else known.get("updateEndedAt")
    if template.on_delete or (not begins and not ended and rollout.done):
        ended = ended or NOW
    turn = None if ended or rollout.current is None else [_turn(known, rollout.current)]
    return {
        "updateStartedAt": NOW if begins else known.get("updateStartedAt") or NOW,
        "updateEndedAt": ended,
        "updatedPodCliquesCount": sum(one.cliques[0] for one in standings),
        "totalPodCliquesCount": sum(one.cliques[1] for one in standings),
        "updatedPodCliqueScalingGroupsCount": sum(one.groups[0] for one in standings),
        "totalPodCliqueScalingGroupsCount": sum(one.groups[1] for one in standings),
        "currentlyUpdating": turn,
    }


def _turn(known: Mapping[str, Any], index: int) -> Mapping[str, Any]:
    same = [turn for turn in known.get("currentlyUpdating") or () if turn.get("replicaIndex") == index]
    return {"replicaIndex": index, "updateStartedAt": same[0].get("updateStartedAt") if same else NOW}


def _gangs(replicas: Iterable[Iterable[tuple[str, str]]]) -> list[Mapping[str, str]]:
    return [{"name": name, "phase": phase} for gangs in replicas for name, phase in gangs]
