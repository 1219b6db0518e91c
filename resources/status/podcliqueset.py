"""The status of a PodCliqueSet: the sum of its replicas, and the progress of its update."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from engine.conditions import Condition, applied, completed_generation, condition, find, merge
from engine.health import Readiness
from engine.observed import Live
from engine.plan import Alarm
from engine.reason import Reason
from engine.report.printable import clipped
from engine.resource import NOW, Body
from resources.base import labels
from resources.lifecycle.availability import has_minimum_ready
from resources.lifecycle.update_gate import REFUSED, refusal_conditions
from resources.model import membership, topology
from resources.model.gang_scheduling import UNSCHEDULED
from resources.model.growth_limit import LIMITED
from resources.model.membership import MAX_MESSAGE
from resources.model.template import Template, is_our_hash
from resources.model.view import View
from resources.status import podclique, podgang, readiness, scaling_group
from resources.status.readiness import Shortfall
from resources.status.update import IN_PROGRESS, LATE, in_progress_condition, is_in_progress, is_shown


class ReplicaSummary(Struct, frozen=True):
    """The contribution of one replica to the status of its set."""

    complete: bool
    """Whether all its objects exist, and none is left that must be deleted."""
    available: bool
    """Whether its standalone cliques have their minimum of ready pods, and its groups their minimum of available replicas."""
    updated: bool
    """Whether it is available, and all its cliques and groups are updated."""
    gangs: tuple[Mapping[str, str], ...]
    """Name and phase of each gang, as the status has them."""
    cliques: tuple[int, int]
    """The numbers of updated and of all standalone cliques."""
    groups: tuple[int, int]
    """The numbers of updated and of all scaling groups."""
    stalled: tuple[int, int] = (0, 0)
    """The numbers of standalone cliques and of scaling groups whose update makes no progress."""
    shortfall: Shortfall | None = None
    """What it waits for, first of all; None if it serves."""
    completed: bool = False
    """Whether it has pods, and all of them have completed."""
    outdated: bool = False
    """Whether it has pods of an earlier template."""


def summary(view: View, complete: bool) -> ReplicaSummary:
    """The summary of one replica."""
    standalone = [clique for clique in view.cliques if clique.group is None]
    groups = [(group, view.members_by_replica(group)) for group in view.groups]
    available = all(map(has_minimum_ready, standalone)) and all(
        group.live is not None and not group.terminating and sum(map(scaling_group.is_available, replicas)) >= group.group.min_available
        for group, replicas in groups
    )
    updated_cliques = sum(map(podclique.is_updated, standalone))
    updated_groups = sum(scaling_group.is_current(replicas) for _, replicas in groups)
    is_updated = updated_cliques == len(standalone) and updated_groups == len(groups)
    return ReplicaSummary(
        complete=complete,
        available=available,
        updated=available and is_updated,
        gangs=tuple({"name": gang.id.name, "phase": podgang.phase(gang)} for gang in view.gangs),
        cliques=(updated_cliques, len(standalone)),
        groups=(updated_groups, len(groups)),
        stalled=(sum(clique.name in view.stalled for clique in standalone), sum(group.name in view.stalled for group, _ in groups)),
        shortfall=readiness.shortfall(view),
        completed=_has_completed(view),
        outdated=view.template.on_delete and not is_updated,
    )


def _has_completed(view: View) -> bool:
    counts = [(len(clique.pods), clique.completed) for clique in view.cliques]
    return any(count for count, _ in counts) and all(count == completed for count, completed in counts)


ACCOUNT_CONFLICT: Final = "ServiceAccountConflict"
"""The condition, and the reason of the Event, of a set whose ServiceAccount has the name of one that the set does not control."""


DEPENDENCY_MISSING: Final = "DependencyMissing"
"""The reason of the Event of a set or a graph some of whose pods are not created because what they use does not exist."""
NOT_SHARED: Final = "ClaimTemplateNotShared"
"""The condition, and the reason of the Event, of a set with claims that would be made from a template that is not shared with its
namespace."""
OWNED: Final = (topology.UNAVAILABLE, membership.CONDITION, REFUSED, ACCOUNT_CONFLICT, LIMITED, UNSCHEDULED)
"""The types of conditions that go when they do not apply any more, besides `NOT_SHARED`. All others are of other controllers."""


class UpdateState(Struct, frozen=True):
    """How far the update of the set has proceeded."""

    current: int | None
    """The index of the replica that is being updated; None if nothing is outdated, and every replaced unit is ready again."""
    outdated: bool
    """Whether something was created from another template, and is ours to replace: never with the update strategy OnDelete."""

    @property
    def done(self) -> bool:
        """Whether no replica is being updated."""
        return self.current is None


def of(
    template: Template,
    replicas: int,
    root: Live,
    summaries: Sequence[ReplicaSummary],
    update: UpdateState,
    faults: Sequence[Alarm] = (),
    refusal: str = "",
    conflict: str = "",
    limited: Sequence[Alarm] = (),
    unshared: Sequence[Alarm] = (),
    unscheduled: Sequence[Condition] = (),
    is_applied: bool = False,
) -> Body:
    """The desired status of the set, without the conditions of its health and without `lastErrors`.

    `faults` are those of `EffectiveSet`; `refusal` says why the API server holds its update back, `conflict` why
    nothing is given to the ServiceAccount that has the name of its own, `limited` what is not created because the set would be too large,
    `unshared` what is not created because templates are not shared with its namespace, `unscheduled` that its scheduler does not
    schedule its gangs; `is_applied` whether every object of its generation exists, and nothing older is left.
    """
    old: Mapping[str, Any] = root.body.get("status") or {}
    body: dict[str, Any] = {
        "observedGeneration": root.generation,
        "replicas": replicas,
        "availableReplicas": sum([summary.available for summary in summaries]),
        "updatedReplicas": sum([summary.updated for summary in summaries]),
        "hpaPodSelector": labels.selector(labels.default(template.id.name)),
        "currentGenerationHash": template.hash,
        "podGangStatuses": [gang for summary in summaries for gang in summary.gangs],
    }
    known = old.get("conditions") or []
    progress = _progress(template, old, summaries, update)
    desired = (
        *applied_conditions(root, is_applied=is_applied),
        *_update_conditions(old, progress, summaries),
        *topology.conditions(template.topology, root.generation),
        *membership.conditions(faults, root.generation),
        *refusal_conditions(refusal, root.generation),
        *([condition(ACCOUNT_CONFLICT, True, "NotControlled", conflict, generation=root.generation)] if conflict else ()),
        *(condition(LIMITED, True, alarm.reason, clipped(alarm.text, MAX_MESSAGE), generation=root.generation) for alarm in limited),
        *_unshared_conditions(unshared, root.generation),
        *unscheduled,
    )
    # A pass that observes some namespaces only does not take back what one that observes all says about templates of others.
    of_templates = (NOT_SHARED,) if unshared or not template.sharing.has_unobserved else ()
    conditions = merge(known, desired, owned=(*OWNED, *of_templates))
    if conditions or known:
        body["conditions"] = conditions
    return {**body, "updateProgress": progress} if progress else body


def of_invalid(root: Live) -> Body:
    """The desired status of a set with mistakes in its specification: what it counts stays."""
    known = (root.body.get("status") or {}).get("conditions") or []
    conditions = merge(known, tuple(applied_conditions(root, is_applied=False)), owned=())
    return {"observedGeneration": root.generation, **({"conditions": conditions} if conditions else {})}


def applied_conditions(root: Live, *, is_applied: bool) -> Iterator[Condition]:
    """The condition with the last generation that was carried out completely; none of a set that never was."""
    generation = root.generation if is_applied else completed_generation(root.body)
    if generation is not None:
        yield applied(generation)


def readiness_of(
    body: Body, root: Live, summaries: Sequence[ReplicaSummary], *, is_applied: bool, has_excess: bool, cut_off: Alarm | None
) -> Readiness:
    """How far the set of this desired status is. `cut_off`: what is wrong with a domain that pods are cut off from."""
    stalled = find(body.get("conditions") or (), IN_PROGRESS) or {}
    known = readiness.SetReadiness(
        shortfalls=[summary.shortfall for summary in summaries],
        is_applied=is_applied,
        was_applied=completed_generation(root.body) == root.generation,
        has_excess=has_excess,
        updating=is_in_progress(body.get("updateProgress")),
        updated=body["updatedReplicas"],
        is_outdated=any(summary.outdated for summary in summaries),
        stalled=stalled.get("message", "") if stalled.get("reason") == LATE else "",
        completed=bool(summaries) and all(summary.completed for summary in summaries),
        cut_off=cut_off,
    )
    return readiness.of(known)


def _update_conditions(
    old: Mapping[str, Any], progress: Mapping[str, Any] | None, summaries: Sequence[ReplicaSummary]
) -> Iterator[Mapping[str, Any]]:
    """Whether an update runs, and how much of it makes no progress. A set of an earlier version gets it with its next update."""
    in_progress = is_in_progress(progress)
    known: Sequence[Mapping[str, Any]] = old.get("conditions") or (({},) if "observedGeneration" in old else ())
    if is_shown(known, in_progress=in_progress):
        yield in_progress_condition(in_progress=in_progress, stalled=_stalled(summaries) if in_progress else "")


def _stalled(summaries: Sequence[ReplicaSummary]) -> str:
    """How much of an update makes no progress; empty if nothing is stuck."""
    cliques, groups = (sum([summary.stalled[part] for summary in summaries]) for part in (0, 1))
    if not cliques and not groups:
        return ""
    all_cliques, all_groups = (sum(counts) for counts in zip(*((each.cliques[1], each.groups[1]) for each in summaries), strict=True))
    return f"{cliques}/{all_cliques} PodCliques stuck, {groups}/{all_groups} PodCliqueScalingGroups stuck"


def _unshared_conditions(unshared: Sequence[Alarm], generation: int) -> Iterator[Mapping[str, Any]]:
    if unshared:
        message = "; ".join(alarm.text for alarm in unshared)
        yield condition(NOT_SHARED, True, Reason.NOT_SHARED, clipped(message, MAX_MESSAGE), generation=generation)


def last_updated_replica(root: Live) -> int | None:
    """The index of the replica that the live status names as the one being updated; None if it names none."""
    entries = ((root.body.get("status") or {}).get("updateProgress") or {}).get("currentlyUpdating") or ()
    return next((entry["replicaIndex"] for entry in entries), None)


def _progress(
    template: Template, old: Mapping[str, Any], summaries: Sequence[ReplicaSummary], update: UpdateState
) -> Mapping[str, Any] | None:
    """The progress of an update: it ends when every replica is updated.

    It begins when the hash of the template changes, and again when something is outdated although it has ended: after a change of the
    update strategy from OnDelete. The hash of another operator differs for an equal template: then it begins only if something is outdated.
    """
    known = old.get("updateProgress") or {}
    before = old.get("currentGenerationHash")
    has_new_hash = bool(before) and before != template.hash and (is_our_hash(before) or update.outdated)
    begins = has_new_hash or (bool(known.get("updateEndedAt")) and update.outdated)
    if begins:
        known = {}
    elif not known:
        return None
    ended = known.get("updateEndedAt")
    if template.on_delete or (not begins and not ended and update.done):
        ended = ended or NOW
    return {
        "updateStartedAt": known.get("updateStartedAt") or NOW,
        "updateEndedAt": ended,
        "updatedPodCliquesCount": sum(summary.cliques[0] for summary in summaries),
        "totalPodCliquesCount": sum(summary.cliques[1] for summary in summaries),
        "updatedPodCliqueScalingGroupsCount": sum(summary.groups[0] for summary in summaries),
        "totalPodCliqueScalingGroupsCount": sum(summary.groups[1] for summary in summaries),
        "currentlyUpdating": None if ended or update.current is None else [_currently_updating(known, update.current)],
    }


def _currently_updating(known: Mapping[str, Any], index: int) -> Mapping[str, Any]:
    """The entry of the replica with that index. It keeps its time while the same update is at the same replica."""
    same = [entry for entry in known.get("currentlyUpdating") or () if entry.get("replicaIndex") == index]
    return {"replicaIndex": index, "updateStartedAt": same[0].get("updateStartedAt") if same else NOW}
