"""Replica: the desired objects of one replica of a set, and its contribution to the set's status and plan."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from engine.answer import FailedCall
from engine.duration import spell
from engine.graph import Part, Resources, part
from engine.ids import ResourceId
from engine.observed import Slice, timestamp
from engine.plan import Alarm, Wait
from engine.reason import Because, Reason, Verdict, earliest
from engine.report.printable import clipped
from engine.resource import Drop, Resource, Want
from resources.base.fields import annotations_of
from resources.blueprints.deletion import obsolete_objects, pending_deletions
from resources.children import absence, podgang, resource_claim, scheduler_gang
from resources.children.child_kind import ChildTable
from resources.domains import replica_domains
from resources.domains.replica_domains import ReplicaDomains
from resources.lifecycle.availability import breached_since
from resources.lifecycle.deadline import stalled_updates
from resources.lifecycle.rollout import POSTPONED, UNACCEPTED, UpdateAllowance, UpdateStage, needs_update, removals, stage
from resources.lifecycle.termination import Termination, terminations
from resources.lifecycle.vacating import with_vacated
from resources.model.gang_scheduling import GangBlockers
from resources.model.growth_limit import GrowthLimit, desired_replicas
from resources.model.template import Template
from resources.model.view import NO_REMOVALS, CliqueView, GroupView, Removals, View, is_scheduled, view_of
from resources.ports.configuration import Configuration
from resources.status import errors
from resources.status.podclique import why_not_ready
from resources.status.podcliqueset import ReplicaSummary, summary
from resources.status.update import stalled_text

LONGEST_ANSWER: Final = 300
"""Characters that are shown of what a scheduler says of a gang."""


class Replica(Struct, frozen=True, eq=False):
    """The desired objects of a replica."""

    part: Part
    summary: ReplicaSummary
    pending: tuple[Wait, ...]
    """What is the cluster's turn: pods that are not ready or terminating, breaches, postponed updates, domains."""
    deferred: tuple[Wait, ...]
    """Errors of an earlier run that a later pass confirms or removes."""
    alarms: tuple[Alarm, ...]
    """The gangs that are too large for the API server, or cannot be expressed for the scheduler of the set; annotations for domains that a
    user has added to its objects."""
    notes: tuple[str, ...]
    """The parts of its gangs that have no effect with the scheduler of the set."""
    of_templates: tuple[Alarm, ...]
    """The templates that claims may not be made from, or that do not exist."""


class ReplicaState(Struct, frozen=True, eq=False):
    """The observed state of a replica, before anything is decided about it."""

    view: View
    stage: UpdateStage
    terminations: Verdict[tuple[Termination, ...]]
    pods: int
    """The desired number of its pods."""
    limited: tuple[str, ...]
    """What is said about each of its objects that asks for more than the limits allow."""
    unanswered: Verdict[frozenset[str]]
    """The PodGangs of which the scheduler has said nothing for too long."""
    until: datetime | None
    """When it is another state although nothing is observed; None: never."""


class ReplicaTurn(Struct, frozen=True):
    """What the rolling update of the set allows in one replica."""

    allowance: UpdateAllowance
    is_current: bool
    """Whether it is the replica that is being updated."""
    vacated: Mapping[ResourceId, str] = field(default_factory=dict)
    """Fabric domain that is being deleted -> why the pods of the set leave it now (`vacated_domains`)."""


class ReplicaFacts(NamedTuple):
    """Everything that the resources of a replica are computed from."""

    state: ReplicaState
    turn: ReplicaTurn
    has_token: bool
    """Whether its pods can watch the pods that they start after."""
    domains: ReplicaDomains
    gang_blockers: GangBlockers
    holds: Mapping[str, str]
    refused: Mapping[str, str]
    failed_calls: tuple[FailedCall, ...] | None
    table: ChildTable


def observe_replica(
    template: Template,
    index: int,
    lives: Slice,
    taken: Collection[str],
    configuration: Configuration,
    now: datetime,
    limit: GrowthLimit | None = None,
    before: ReplicaState | None = None,
) -> ReplicaState:
    """The state of the replica with that index, valid until `until`. `taken` are pod names of foreign objects.

    `limit`: as for `view_of`. `before`: its state in an earlier pass; None if there was none.
    """
    view = view_of(template, index, lives, taken, configuration, limit, before.view if before is not None else None)
    pods = sum(clique.replicas for clique in view.cliques)
    limited = () if limit is not None else tuple(_limited(view))
    unanswered = scheduler_gang.unanswered(view, now)
    due, stalled = terminations(view, template.termination_delay, now), stalled_updates(view, now)
    view = replace(view, stalled=stalled.value) if stalled.value else view
    return ReplicaState(view, stage(view), due, pods, limited, unanswered, earliest((due.until, unanswered.until, stalled.until)))


def _limited(view: View) -> Iterator[str]:
    """What is said about each clique and scaling group that asks for more replicas than it gets."""
    counts = (
        *((group.live, group.group.replicas, group.replicas) for group in view.groups),
        *((clique.live, clique.clique.replicas, clique.replicas) for clique in view.cliques),
    )
    for live, initial, count in counts:
        if live is not None and (wanted := desired_replicas(live, initial)) > count:
            yield f"{live.id.kind} {live.id.name} asks for {wanted} replicas and gets {count}"


def desired_replica(facts: ReplicaFacts) -> tuple[Replica, Resources]:
    """A replica, and its resources."""
    view, desired, removed = _resources(facts)
    complete = not removed and all(resource.id in view.lives.objects for resource in desired if not isinstance(resource, Drop))
    own_domains = (domain for domain in facts.domains.requested if not domain.request.shared)
    leaving = pending_deletions(view.lives.objects[resource.id] for resource in removed if resource.id in view.lives.objects)
    pending = (*replica_domains.pending(own_domains), *_pending(view, facts.state.terminations.until), *leaving)
    own = part(str(view.index), [*desired, *removed])
    replica = Replica(
        replace(own, ids=dict.fromkeys(own.ids), compute=lambda: _resources_by_id(facts)),
        summary(view, complete),
        pending,
        tuple(_unconfirmed_errors(view)) if facts.failed_calls is None else (),
        (*podgang.alarms(view), *scheduler_gang.alarms(view), *_added_annotations(view)),
        scheduler_gang.notes(view),
        tuple(resource_claim.template_alarms(desired, view.template)),
    )
    return replica, own.resources


def _added_annotations(view: View) -> Iterator[Alarm]:
    """The annotations for domains that a user has added to objects of the replica."""
    keys = frozenset(annotation.key for fabric in view.configuration.fabrics for annotation in fabric.annotations)
    lives = (*(clique.live for clique in view.cliques), *(group.live for group in view.groups))
    if any(live is not None and not keys.isdisjoint(annotations_of(live.body)) for live in lives):
        from resources.domains.added_annotations import alarms  # Few objects have any.

        yield from alarms(view)


def _resources_by_id(facts: ReplicaFacts) -> Resources:
    """The resources of the replica, as often as they are needed."""
    view, desired, removed = _resources(facts)
    return part(str(view.index), [*desired, *removed]).resources


def _resources(facts: ReplicaFacts) -> tuple[View, list[Resource], list[Resource]]:
    """The replica with everything that is decided about it, the resources that it should have, and those that are removed."""
    state, turn, has_token, domains, gang_blockers, holds, refused, failed_calls, table = facts
    view = replace(state.view, has_token=has_token, domains=domains.by_key, gang_blockers=gang_blockers)
    view = replace(view, holds=holds, refused=refused, unanswered=state.unanswered.value, failed_calls=failed_calls or ())
    view = replace(view, removals=with_vacated(view, _removals(view, state, turn), turn.vacated))
    reasons = _Reasons(view)
    rendered = (resource for row in table.rows for resource in row.of_replica(view))
    if turn.vacated:
        rendered = (replica_domains.while_vacated(resource, turn.vacated) for resource in rendered)
    desired = [_with_errors(reasons.explained(resource), view, failed_calls, table) for resource in rendered]
    kept_because = POSTPONED[turn.allowance] if turn.allowance in UNACCEPTED else ""
    obsolete = obsolete_objects(view, {resource.id for resource in desired}, table, kept_because)
    return view, desired, [*obsolete, *domains.release.resources]


class _Reasons:
    """Why objects of a replica do not exist, where their own kind does not say it."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._is_new = absence.is_new_replica(view)
        self._domains = {domain.id: domain for domain in view.domains.values() if not domain.request.shared}

    def explained(self, resource: Resource) -> Resource:
        """The resource; a replica that has never had all its pods is one that the set is scaled to."""
        if resource.reason or resource.id in self._view.lives.objects:
            return resource
        if self._is_new:
            return replace(resource, reason=Reason.SCALED_OUT)
        domain = self._domains.get(resource.id)
        return replace(resource, reason=absence.of_domain(self._view, domain)) if domain is not None else resource


def _removals(view: View, state: ReplicaState, turn: ReplicaTurn) -> Removals:
    """The pods and cliques to delete. Terminations take precedence over the update."""
    due = state.terminations.value
    if due:
        return Removals(
            cliques={clique: Because(Reason.GANG_TERMINATED, termination.why) for termination in due for clique in termination.cliques},
            deleted_last=frozenset(termination.deleted_last for termination in due),
            recycled=any(termination.whole for termination in due),
        )
    return removals(view, turn.allowance, is_current=turn.is_current) if state.stage.outdated else NO_REMOVALS


def _with_errors(resource: Resource, view: View, failed_calls: Sequence[FailedCall] | None, table: ChildTable) -> Resource:
    """The resource; if it is a parent, its status lists the failed calls for its children."""
    if not isinstance(resource, Want) or resource.status is None or resource.id.kind not in table.parents:
        return resource
    old = view.lives.objects[resource.id].body.get("status") or {}
    return replace(resource, status={**resource.status, **errors.of(resource.id, failed_calls, old, table.codes)})


def _unconfirmed_errors(view: View) -> Iterator[Wait]:
    members: tuple[GroupView | CliqueView, ...] = (*view.groups, *view.cliques)
    return errors.unconfirmed(member.live for member in members if member.live is not None and not member.terminating)


def _pending(view: View, until: datetime | None) -> Iterator[Wait]:
    yield from _gangs_pending(view)
    for clique in view.cliques:
        yield from _pods_pending(clique)
        if until is not None and (since := breached_since(clique)) is not None:
            delay = spell(view.template.termination_delay)
            yield Wait(clique.id, f"below minAvailable since {timestamp(since)}; its gang is recycled if that lasts {delay}", until)
        if needs_update(clique) and clique.name not in view.removals.cliques:
            yield from _update_pending(clique, view.removals)
        if clique.group is None and (why := stalled_text(view, clique.name, clique.clique.budget)):
            yield Wait(clique.id, f"its update makes {why}")
    for group in view.groups:
        if why := stalled_text(view, group.name, group.group.budget):
            yield Wait(group.id, f"its update makes {why}")


def _gangs_pending(view: View) -> Iterator[Wait]:
    """The gangs that their scheduler cannot place now, with its words."""
    for gang in view.gangs:
        answer = podgang.answer_on(view, gang) if not is_scheduled(gang) else None
        if answer is not None and not answer.is_scheduled:
            yield Wait(gang.id, clipped(f"{answer.reason}: {answer.message}", LONGEST_ANSWER))


def _pods_pending(clique: CliqueView) -> Iterator[Wait]:
    ready, completed = clique.ready, clique.completed
    if ready + completed < clique.replicas:
        reason = why_not_ready(clique.assignment.kept)
        counts = f"{ready} of {clique.replicas} pods ready" + (f", {completed} completed" if completed else "")
        yield Wait(clique.id, counts + (f"; {reason}" if reason else ""))
    yield from pending_deletions(pod.live for pod in clique.assignment.terminating)


def _update_pending(clique: CliqueView, removals: Removals) -> Iterator[Wait]:
    outdated = [pod for pod in clique.outdated_pods if pod.name not in removals.pods]
    if outdated or clique.outdated:
        why = f"{len(outdated)} of {clique.replicas} pods are outdated: {removals.postponed_because}"
        yield Wait(clique.id, why, reason=removals.postponed_by)
