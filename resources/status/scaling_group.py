"""The status of a PodCliqueScalingGroup: its replicas by state, its update, and whether it has its minimum."""

from collections.abc import Mapping, Sequence
from typing import Any

from engine.conditions import condition, merge
from engine.observed import timestamp
from engine.resource import NOW, Body
from resources.base import labels
from resources.lifecycle.availability import BREACHED, has_minimum_ready, has_minimum_scheduled, is_provisional, is_sound
from resources.model.view import CliqueView, GroupView, View
from resources.status import podclique, update

TERMINATING = "GangTerminationInProgress"
"""A condition for users, as Grove has it: no decision of the engine reads it."""


def of(view: View, group: GroupView) -> Body | None:
    """The desired status of a group; None until the group exists."""
    if group.live is None:
        return None
    old: Mapping[str, Any] = group.live.body.get("status") or {}
    replicas = view.members_by_replica(group)
    progress = update.of_group(view, group, replicas, old.get("updateProgress"))
    in_progress = update.is_in_progress(progress)
    breached = update.unknown(BREACHED) if in_progress else _breached(group, replicas)
    body: dict[str, Any] = {
        "replicas": group.replicas,
        "scheduledReplicas": sum(map(is_scheduled, replicas)),
        "availableReplicas": sum(map(is_available, replicas)),
        "updatedReplicas": sum(map(is_updated, replicas)),
        "selector": labels.selector({**labels.default(view.root), labels.SCALING_GROUP: group.name}),
        "conditions": _conditions(view, group, old.get("conditions") or (), breached, in_progress),
    }
    if progress:
        body["updateProgress"] = progress
    if not in_progress and is_current(replicas):
        body["currentPodCliqueSetGenerationHash"] = view.template.hash
    if all(map(_exists, replicas)) and not _has_excess(view, group):
        body["observedGeneration"] = group.live.generation
    return body


def is_coming_up(group: GroupView, body: Body | None) -> bool:
    """Whether this is the status of a group of which fewer replicas are available than it should have, and none has been lost."""
    if group.live is None or body is None:
        return False
    return is_provisional(group.live.body.get("status") or {}, body, group.replicas, ("scheduledReplicas", "availableReplicas"))


def _has_excess(view: View, group: GroupView) -> bool:
    """Whether the group has cliques that it should no longer have."""
    expected = {clique.id for clique in view.cliques}
    return any(live.labels.get(labels.SCALING_GROUP) == group.name and live.id not in expected for live in view.lives.of("PodClique"))


def _conditions(
    view: View, group: GroupView, old: Sequence[Mapping[str, Any]], breached: Mapping[str, Any], in_progress: bool
) -> Sequence[Mapping[str, Any]]:
    """The conditions of the group.

    The first ones bear the time of the group's creation: they describe the initial state, not a later change (Q16). The condition that a
    gang termination is in progress stays until the group is no longer breached.
    """
    at = NOW if old or group.live is None else timestamp(group.live.created_at)
    desired = [{**breached, "lastTransitionTime": at}]
    if update.is_shown(old, in_progress=in_progress):
        stalled = update.stalled_text(view, group.name, group.group.budget)
        desired.append(update.in_progress_condition(in_progress=in_progress, stalled=stalled, at=at))
    if view.removals.recycled:
        message = (
            f"Gang termination fired at PCS-replica scope for PCS replica {view.index}; "
            "this PCSG's PodCliques were deleted as part of the recycle"
        )
        terminating = condition(TERMINATING, True, "GangTerminationActive", message)
        return merge(old, [*desired, terminating], owned=(BREACHED, TERMINATING))
    return merge(old, desired, owned=(BREACHED, TERMINATING) if breached["status"] == "False" else (BREACHED,))


def _exists(members: Sequence[CliqueView]) -> bool:
    return all(clique.live is not None and not clique.terminating for clique in members)


def is_scheduled(members: Sequence[CliqueView]) -> bool:
    """Whether a replica has all its cliques, each with its minimum scheduled."""
    return _exists(members) and all(map(has_minimum_scheduled, members))


def is_available(members: Sequence[CliqueView]) -> bool:
    """Whether a replica has all its cliques, each with its minimum scheduled and ready."""
    return is_scheduled(members) and all(map(has_minimum_ready, members))


def is_updated(members: Sequence[CliqueView]) -> bool:
    """Whether a replica is available, and all its cliques were created from the current template."""
    return is_available(members) and all(map(podclique.is_updated, members))


def is_current(replicas: Sequence[Sequence[CliqueView]]) -> bool:
    """Whether every clique of these replicas exists and, with its serving pods, was created from the current template, ready or not."""
    return all(
        clique.live is not None and not clique.terminating and clique.hash == clique.clique.hash and not clique.outdated_pods
        for members in replicas
        for clique in members
    )


def _breached(group: GroupView, replicas: Sequence[Sequence[CliqueView]]) -> dict[str, Any]:
    minimum = group.group.min_available
    sound = sum(map(is_sound, replicas))
    count = f"PCSG replicas not in breach ({sound})"
    if sound < minimum:
        reason = "InsufficientAvailablePodCliqueScalingGroupReplicas"
        return condition(BREACHED, True, reason, f"{count} below MinAvailable ({minimum})")
    return condition(BREACHED, False, "SufficientAvailablePodCliqueScalingGroupReplicas", f"{count} meets MinAvailable ({minimum})")
