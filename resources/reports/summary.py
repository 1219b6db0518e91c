"""Summary: the state of a workload: its pods and gangs, and what is deferred or pending, since when and why."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Final

from msgspec import Struct

from engine.conditions import find
from engine.ids import ResourceId
from engine.observed import Live, Observed, moment
from engine.plan import Alarm, Plan, Wait, blocked_by, changed
from engine.reason import Reason
from engine.report.meaning import needed
from engine.report.model import error_text
from resources.base import labels
from resources.base.kinds import DYNAMO_GRAPH, PODCLIQUE
from resources.domains.status import DomainStatus
from resources.model.pod_facts import PodFacts, facts_of

STATES: Final = (
    *("faulty", "denied", "deleting", "changing", "blocked", "later", "pending"),
    *("degraded", "unplanned", "completed", "settled"),
)
"""The states of a root, the most severe first.

`faulty`: a user has to correct it, or an internal error prevents a plan; `denied`: a guard refuses its plan; `deleting`: it is being
deleted; `changing`: the next pass changes objects; `blocked`: an operation is due and a user or another controller has to act first;
`later`: an operation is due and a later pass does it; `pending`: the cluster has something to do; `degraded`: nothing is left to do, and an
alarm says what is wrong all the same, or it only waits while pods are cut off from their domain; `unplanned`: the process has not planned
it yet, so it is not known what is left to do; `completed`: nothing is left to do, for all its pods have completed; `settled`: nothing is
left to do.
"""

WAITING: Final = ("later", "pending")
"""The states in which a root waits for a later pass, or for the cluster."""
ALL_READY: Final[Mapping[str, datetime]] = {}
"""Owner's uid -> since when one of its pods is not ready: empty, because all are."""


class GangSummary(Struct, frozen=True):
    """The state of one gang."""

    name: str
    phase: str
    """The phase in its status; `Pending` if it has none yet."""
    pods: int
    """The number of its pods."""
    ready: int
    """The number of its pods that are ready."""
    completed: int = 0
    """The number of its pods that have completed."""
    waiting: str = ""
    """Which room it waits for; empty if it does not, or if that was not asked for."""
    advice: str = ""
    """What a user can do about that."""

    @property
    def is_complete(self) -> bool:
        """Whether the gang runs or has succeeded, has pods, and all of them are ready or have completed."""
        return self.phase in ("Running", "Succeeded") and 0 < self.pods == self.ready + self.completed


class WaitSince(Struct, frozen=True):
    """A deferred operation or a pending object: why, since when, and until when if that is known."""

    id: ResourceId
    why: str
    since: datetime | None
    until: datetime | None
    advice: str = ""
    """What a user has to do; empty if there is nothing to add to `why`."""
    reason: Reason | None = None
    """What it waits for, as one word; None if there is no word for it."""


class WorkloadSummary(Struct, frozen=True):
    """The summary of one root at one moment."""

    id: ResourceId
    state: str
    """One of `STATES`."""
    created_at: datetime | None
    """None if it does not exist yet: the root that it is a part of is about to create it."""
    replicas: int
    """The desired number of replicas."""
    available: int
    """The number of available replicas, according to its status."""
    updated: int
    """The number of updated replicas, according to its status."""
    pods: int
    """The number of its pods, of which `ready` are ready and `scheduled` are scheduled."""
    ready: int
    scheduled: int
    gangs: tuple[GangSummary, ...]
    waits: tuple[WaitSince, ...]
    problems: tuple[str, ...]
    notes: tuple[str, ...]
    """Which parts of the spec have no effect, and why."""
    alarms: tuple[Alarm, ...] = ()
    """What is wrong although nothing is left to do."""
    domains: tuple[DomainStatus, ...] = ()
    parent: ResourceId | None = None
    """The root that it is a part of, such as a graph."""
    completed: int = 0
    """The number of its pods that have completed."""


def summary(observed: Observed, plan: Plan, domains: tuple[DomainStatus, ...] = ()) -> WorkloadSummary:
    """The summary of a root, given the plan of the next pass and the status of its domains."""
    body = observed.root.body
    status = body.get("status") or {}
    pods = [facts_of(live) for live in lives_of(observed, "Pod")]
    return WorkloadSummary(
        observed.root.id,
        state_of(observed, plan, domains),
        observed.root.created_at if observed.root.uid else None,
        int((body.get("spec") or {}).get("replicas", 0)),
        int(status.get("availableReplicas", 0)),
        int(status.get("updatedReplicas", 0)),
        len(pods),
        sum(pod.ready for pod in pods),
        sum(pod.scheduled for pod in pods),
        tuple(gangs(lives_of(observed, "PodGang"), pods)),
        waits_of(observed, plan),
        problems_of(plan),
        plan.notes,
        alarms_of(plan),
        domains,
        parent_of(observed, plan),
        sum(pod.completed for pod in pods),
    )


def parent_of(observed: Observed, plan: Plan) -> ResourceId | None:
    """The root that this root is a part of: the one that proposes it, else the graph that controls it; None if a user has made it."""
    controller = observed.root.controller
    if plan.parent is None and controller is not None and controller.kind == DYNAMO_GRAPH.name:
        return DYNAMO_GRAPH.id(observed.root.id.namespace, controller.name)
    return plan.parent


def problems_of(plan: Plan) -> tuple[str, ...]:
    """The mistakes in a root, an internal error of the engine, and the objections of guards."""
    errors = [error_text(plan.error)] if plan.error else []
    return (*plan.problems, *plan.faults, *errors, *(objection.message for objection in plan.objections))


def alarms_of(plan: Plan) -> tuple[Alarm, ...]:
    """What is wrong with a root although nothing is left to do."""
    return tuple(alarm for alarm in plan.alarms if not (alarm.blocking or alarm.remark))


def state_of(observed: Observed, plan: Plan, domains: Iterable[DomainStatus] = ()) -> str:
    """The most severe of `STATES` that applies to a root, which uses these domains."""
    applies = {
        "faulty": bool(plan.problems or plan.faults) or plan.error is not None,
        "denied": bool(plan.objections),
        "deleting": observed.root.deleting_since is not None,
        "changing": changed(plan),
        "blocked": bool(blocked_by(plan)),
        "later": bool(plan.later),
        "pending": bool(plan.pending),
        "degraded": bool(alarms_of(plan)),
        "unplanned": plan.is_unplanned,
        "settled": True,
    }
    state = next(state for state in STATES if applies.get(state))
    if state in WAITING and any(domain.cut is not None for domain in domains):
        return "degraded"
    return "completed" if state == "settled" and _has_completed(observed) else state


def _has_completed(observed: Observed) -> bool:
    """Whether the root has pods, and all of them have completed."""
    pods = lives_of(observed, "Pod")
    return bool(pods) and all(facts_of(live).completed for live in pods)


def gangs(lives: Iterable[Live], pods: Iterable[PodFacts]) -> Iterator[GangSummary]:
    """The summaries of these PodGangs; each counts those of the pods that have its name in their label."""
    by_gang: dict[str, list[PodFacts]] = {}
    for pod in pods:
        by_gang.setdefault(pod.live.labels.get(labels.PODGANG, ""), []).append(pod)
    for live in lives:
        members = by_gang.get(live.id.name, [])
        phase = str((live.body.get("status") or {}).get("phase", "Pending"))
        ready, completed = sum(pod.ready for pod in members), sum(pod.completed for pod in members)
        yield GangSummary(live.id.name, phase, len(members), ready, completed)


def lives_of(observed: Observed, kind: str) -> list[Live]:
    """The root's objects of that kind, in all its parts, sorted by name."""
    return sorted((live for part in observed.slices.values() for live in part.of(kind)), key=lambda live: live.id)


def waits_of(observed: Observed, plan: Plan) -> tuple[WaitSince, ...]:
    """What is blocked (`blocked_by`), deferred or pending for a root and its objects, sorted by object."""
    unready = _unready_since(facts_of(live) for live in lives_of(observed, "Pod"))
    waits = (wait_since(observed, wait, unready) for wait in (*blocked_by(plan), *plan.later, *plan.pending))
    return tuple(sorted(waits, key=lambda wait: wait.id))


def wait_since(observed: Observed, wait: Wait, unready: Mapping[str, datetime] = ALL_READY) -> WaitSince:
    """The wait with the time when it began; None if its object does not exist. `unready`: the result of `_unready_since`."""
    live = observed.find(wait.id)
    return WaitSince(wait.id, wait.why, _onset(observed, live, unready) if live else None, wait.until, needed(wait), wait.reason)


def _onset(observed: Observed, live: Live, unready: Mapping[str, datetime]) -> datetime:
    """When a wait began. For a clique: when one of its pods stopped being ready, else when the current update began or it was created.

    For every other object `unchanged_since`.
    """
    if live.id.kind != PODCLIQUE.name or live.deleting_since:
        return unchanged_since(live)
    progress = (observed.root.body.get("status") or {}).get("updateProgress") or {}
    began = None if progress.get("updateEndedAt") else progress.get("updateStartedAt")
    return unready.get(live.uid) or max(live.created_at, moment(began) if began else live.created_at)


def _unready_since(pods: Iterable[PodFacts]) -> dict[str, datetime]:
    """Owner's uid -> the earliest time since which one of its pods is not ready. Owners whose pods are all ready are not included."""
    onsets: dict[str, datetime] = {}
    for pod in pods:
        owner = pod.live.controller
        if owner is not None and not pod.ready:
            since = unchanged_since(pod.live)
            onsets[owner.uid] = min(onsets.get(owner.uid, since), since)
    return onsets


def unchanged_since(live: Live) -> datetime:
    """The time since which the object is being deleted, else is not ready, else exists."""
    if live.deleting_since:
        return live.deleting_since
    ready = find((live.body.get("status") or {}).get("conditions") or (), "Ready") or {}
    changed_at = ready.get("lastTransitionTime") if ready.get("status") != "True" else None
    return moment(changed_at) if changed_at else live.created_at
