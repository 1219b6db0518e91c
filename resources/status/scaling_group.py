"""The status of a PodCliqueScalingGroup: its replicas counted, and whether enough of them are whole."""

from collections.abc import Mapping, Sequence
from typing import Any

from engine.conditions import condition, keep
from engine.resource import Body
from resources.base import labels
from resources.model.view import CliqueView, GroupView, View
from resources.policies.availability import BREACHED, breach, is_enough_scheduled
from resources.status import errors, podclique, update

TERMINATING = "GangTerminationInProgress"
"""Told, never asked."""


def of(view: View, group: GroupView) -> Body | None:
    """What the group says of itself, once it is there to say it."""
    if group.live is None:
        return None
    old: Mapping[str, Any] = group.live.body.get("status") or {}
    replicas = replicas_of(view, group)
    progress = update.of_group(view, group, replicas, old.get("updateProgress"))
    in_progress = update.is_in_progress(progress)
    breached = update.unknown(BREACHED) if in_progress else _breached(group, replicas)
    body: dict[str, Any] = {
        "replicas": group.replicas,
        "scheduledReplicas": sum(is_scheduled(members) for members in replicas),
        "availableReplicas": sum(is_available(members) for members in replicas),
        "updatedReplicas": sum(is_updated(members) for members in replicas),
        "selector": labels.selector({**labels.default(view.root), labels.SCALING_GROUP: group.name}),
        "conditions": _conditions(view, group, old.get("conditions") or (), breached),
    }
    if progress:
        body["updateProgress"] = progress
    if not in_progress and is_current(replicas):
        body["currentPodCliqueSetGenerationHash"] = view.template.hash
    if all(map(_is_complete, replicas)) and not _has_excess(view, group):
        body["observedGeneration"] = group.live.generation
    return {**body, **errors.of(group.id, view.failed_calls, old)}


def _has_excess(view: View, group: GroupView) -> bool:
    """Whether cliques of the group are left that it should no longer have."""
    expected = {clique.id for clique in view.cliques}
    return any(live.labels.get(labels.SCALING_GROUP) == group.name and live.id not in expected for live in view.lives.of("PodClique"))


def _conditions(view: View, group: GroupView, old: Sequence[Mapping[str, Any]], breached: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """How a group began is told as of its creation (Q16). That the gang is being recycled is told until it is without breach again."""
    if not old and group.live is not None:
        breached = {**breached, "lastTransitionTime": group.live.created_at.strftime("%Y-%m-%dT%H:%M:%SZ")}
    if view.moves.recycled:
        message = (
            f"Gang termination fired at PCS-replica scope for PCS replica {view.index}; "
            "this PCSG's PodCliques were deleted as part of the recycle"
        )
        recycling = condition(TERMINATING, True, "GangTerminationActive", message)
        return keep(old, [breached, recycling], owned=(BREACHED, TERMINATING))
    return keep(old, [breached], owned=(BREACHED, TERMINATING) if breached["status"] == "False" else (BREACHED,))


def replicas_of(view: View, group: GroupView) -> list[tuple[CliqueView, ...]]:
    """The member cliques, replica by replica."""
    return [tuple(view.members(group, replica)) for replica in range(group.replicas)]


def _is_complete(members: Sequence[CliqueView]) -> bool:
    return all(clique.live is not None and not clique.going for clique in members)


def is_scheduled(members: Sequence[CliqueView]) -> bool:
    """Whether a replica has all its cliques, each with its minimum scheduled."""
    return _is_complete(members) and all(map(is_enough_scheduled, members))


def is_available(members: Sequence[CliqueView]) -> bool:
    """Whether a replica is scheduled, each clique with its minimum ready."""
    return is_scheduled(members) and all(map(podclique.is_available, members))


def is_updated(members: Sequence[CliqueView]) -> bool:
    """Whether a replica is available and made from the template of today."""
    return is_available(members) and all(map(podclique.is_updated, members))


def is_current(replicas: Sequence[Sequence[CliqueView]]) -> bool:
    """Whether every member exists and is made from the template of today, ready or not."""
    return all(
        clique.live is not None
        and not clique.going
        and clique.hash == clique.clique.hash
        and all(clique.is_current(pod) for pod in clique.assignment.kept)
        for members in replicas
        for clique in members
    )


def _breached(group: GroupView, replicas: Sequence[Sequence[CliqueView]]) -> dict[str, Any]:
    minimum = group.group.min_available
    sound = sum(_is_complete(members) and not any(breach(clique).broken for clique in members) for members in replicas)
    told = f"PCSG replicas not in breach ({sound})"
    if sound < minimum:
        reason = "InsufficientAvailablePodCliqueScalingGroupReplicas"
        return condition(BREACHED, True, reason, f"{told} below MinAvailable ({minimum})")
    return condition(BREACHED, False, "SufficientAvailablePodCliqueScalingGroupReplicas", f"{told} meets MinAvailable ({minimum})")
