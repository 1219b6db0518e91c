"""Unanswered groups: PodGroups that show that a component of Kubernetes has its feature gate for gangs off.

No API tells the feature gates of a component. With the gate kube-scheduler writes a condition on a PodGroup when it places or refuses its
pods, and the condition stays. A group that lacks one although its pods were placed or refused a while ago shows that the gate is off. And
with the gate kube-controller-manager releases a deleted group once it has no pods.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from engine.conditions import find
from engine.observed import Live, moment
from engine.paths import get
from providers.schedulers.pod_group_tree import PARENT, group_of
from providers.schedulers.pod_groups import minimum_of
from resources.base import labels
from resources.base.fields import mapping, mappings
from resources.base.kinds import POD, POD_GROUP, PODGANG
from resources.ports.checks import Query, QueryResults
from resources.ports.scheduler import INITIALLY_SCHEDULED

PATIENCE: Final = timedelta(minutes=1)
"""How long the scheduler is given to write the condition of a group after it has judged its pods."""
GROUPS: Final = Query(POD_GROUP)
MEMBERS: Final = Query(POD, labels=labels.PODGANG)
"""The pods of PodGangs, among them the members of the engine's PodGroups."""


def unanswered_groups(results: QueryResults, scheduler: str, now: datetime) -> list[Live]:
    """The PodGroups without a condition of this scheduler although it has judged their pods, by namespace and name.

    Those whose pods it judged before it last answered for another group are left out: it may have been started anew with the gate since.
    Objects that could not be read are missing in both; results are those of `GROUPS` and `MEMBERS`.
    """
    groups, pods = results.of(GROUPS).objects, results.of(MEMBERS).objects
    members: dict[tuple[str, str], list[Live]] = {}
    for pod in pods:
        if (name := group_of(pod)) and pod.deleting_since is None and get(pod.body, ("spec", "schedulerName")) == scheduler:
            members.setdefault((pod.id.namespace, name), []).append(pod)
    answers = [changed_at for group in groups if (changed_at := _changed_at(_conditions(group), INITIALLY_SCHEDULED)) is not None]
    judged = ((group, _judged_at(group, members.get((group.id.namespace, group.id.name), ()))) for group in groups)
    last = max(answers, default=None)
    return sorted(
        (group for group, at in judged if at is not None and now - at >= PATIENCE and (last is None or at > last)),
        key=lambda group: group.id,
    )


def unreleased_groups(results: QueryResults, now: datetime) -> list[Live]:
    """The PodGroups of PodGangs that were deleted a while ago, have no pods, and that Kubernetes' finalizer still keeps.

    By namespace and name; none if something could not be read. Results are those of `GROUPS` and `MEMBERS`.
    """
    groups, pods = results.of(GROUPS), results.of(MEMBERS)
    if not groups.known or not pods.known:
        return []
    used = {(pod.id.namespace, group_of(pod)) for pod in pods.objects}
    return sorted(
        (group for group in groups.objects if _is_kept(group, now) and (group.id.namespace, group.id.name) not in used),
        key=lambda group: group.id,
    )


def _is_kept(group: Live, now: datetime) -> bool:
    """Whether a PodGang's group was deleted a while ago and has the finalizer."""
    is_of_podgang = group.controller is not None and group.controller.kind == PODGANG.name
    since = group.deleting_since
    return is_of_podgang and since is not None and now - since >= PATIENCE and labels.GROUP_PROTECTION in group.finalizers


def _judged_at(group: Live, members: Sequence[Live]) -> datetime | None:
    """When the scheduler last placed or refused a member of a group that has no condition; None if it has one, or has judged too few.

    One member on a node is enough: with the gate a group has its condition by then. Refused ones count only if the minimum is there, and if
    the group is alone: those of a hierarchy may wait for another group.
    """
    if group.deleting_since is not None or find(_conditions(group), INITIALLY_SCHEDULED) is not None:
        return None
    placed = [pod for pod in members if get(pod.body, ("spec", "nodeName"))]
    refused = [pod for pod in members if _is_refused(pod)]
    if not placed and (len(refused) < max(1, minimum_of(group)) or get(group.body, PARENT)):
        return None
    moments = [_changed_at(_conditions(pod), "PodScheduled") for pod in placed or refused]
    return max((each for each in moments if each is not None), default=None)


def _is_refused(pod: Live) -> bool:
    condition = find(_conditions(pod), "PodScheduled") or {}
    return condition.get("status") == "False" and condition.get("reason") == "Unschedulable"


def _conditions(live: Live) -> Iterable[Mapping[str, Any]]:
    return mappings(mapping(live.body.get("status")).get("conditions"))


def _changed_at(conditions: Iterable[Mapping[str, Any]], type: str) -> datetime | None:
    """When a condition last changed; None without it, or if it does not say so."""
    text = (find(conditions, type) or {}).get("lastTransitionTime")
    try:
        at = moment(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return at if at is not None and at.tzinfo is not None else None
