"""Summary: how a workload is doing, for people: what it has, what of it works, what waits for what and since when."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from engine.conditions import find
from engine.ids import ResourceId
from engine.observed import Live, Observed, moment
from engine.plan import Plan, Wait, changed
from resources.base import labels
from resources.base.kinds import PODCLIQUE
from resources.domains.status import DomainStatus
from resources.model.pod_facts import PodFacts, facts_of

NOBODY: Mapping[str, datetime] = {}


@dataclass(frozen=True, slots=True)
class Gang:
    """A gang and its pods."""

    name: str
    phase: str
    pods: int
    ready: int

    @property
    def whole(self) -> bool:
        """Whether it has all that it must have, and everything that it has is ready."""
        return self.phase == "Running" and 0 < self.pods == self.ready


@dataclass(frozen=True, slots=True)
class Waiting:
    """Something that is not as it should be yet: why, since when, and until when if that is known."""

    id: ResourceId
    why: str
    since: datetime | None
    until: datetime | None


@dataclass(frozen=True, slots=True)
class Workload:
    """One root at one moment."""

    id: ResourceId
    state: str
    """`settled`, `changing`, `waiting`, `held`, `deleting`, `denied` or `faulty`."""
    created_at: datetime
    replicas: int
    available: int
    updated: int
    pods: int
    ready: int
    scheduled: int
    gangs: tuple[Gang, ...]
    waits: tuple[Waiting, ...]
    problems: tuple[str, ...]
    notes: tuple[str, ...]
    """What was asked for and has no effect."""
    domains: tuple[DomainStatus, ...] = ()


def summary(observed: Observed, plan: Plan, domains: tuple[DomainStatus, ...] = ()) -> Workload:
    """How a root is doing, given what a pass would still do about it."""
    body = observed.root.body
    status = body.get("status") or {}
    pods = [facts_of(live) for live in lives_of(observed, "Pod")]
    unready = _unready(pods)
    held = [wait(observed, one, unready) for one in (*plan.deferred, *plan.pending)]
    return Workload(
        observed.root.id,
        state(observed, plan),
        observed.root.created_at,
        int((body.get("spec") or {}).get("replicas", 0)),
        int(status.get("availableReplicas", 0)),
        int(status.get("updatedReplicas", 0)),
        len(pods),
        sum(pod.ready for pod in pods),
        sum(pod.scheduled for pod in pods),
        tuple(gangs(lives_of(observed, "PodGang"), pods)),
        tuple(sorted(held, key=lambda one: one.id)),
        (*plan.problems, *(objection.message for objection in plan.objections)),
        plan.notes,
        domains,
    )


def state(observed: Observed, plan: Plan) -> str:
    """One word for it, the gravest that applies."""
    words = (
        ("faulty", bool(plan.problems)),
        ("denied", bool(plan.objections)),
        ("deleting", observed.root.deleting_since is not None),
        ("changing", changed(plan)),
        ("held", bool(plan.deferred)),
        ("waiting", bool(plan.pending)),
    )
    return next((word for word, applies in words if applies), "settled")


def gangs(found: Iterable[Live], pods: Iterable[PodFacts]) -> Iterator[Gang]:
    """Each gang with its share of the pods."""
    members: dict[str, list[PodFacts]] = {}
    for pod in pods:
        members.setdefault(pod.live.labels.get(labels.PODGANG, ""), []).append(pod)
    for live in found:
        own = members.get(live.id.name, [])
        phase = str((live.body.get("status") or {}).get("phase", "Pending"))
        yield Gang(live.id.name, phase, len(own), sum(pod.ready for pod in own))


def lives_of(observed: Observed, kind: str) -> list[Live]:
    """The root's objects of that kind, in all its parts, by name."""
    return sorted((live for part in observed.slices.values() for live in part.of(kind)), key=lambda live: live.id)


def wait(observed: Observed, held: Wait, unready: Mapping[str, datetime] = NOBODY) -> Waiting:
    """What waits, since it came to be or since it was last well. `unready`: owner's uid -> since when a pod of its is not ready."""
    live = observed.find(held.id)
    return Waiting(held.id, held.why, _onset(observed, live, unready) if live else None, held.until)


def _onset(observed: Observed, live: Live, unready: Mapping[str, datetime]) -> datetime:
    """A clique has been as it is since the first of its pods went, or since an update has begun that it waits for."""
    if live.id.kind != PODCLIQUE.name or live.deleting_since:
        return since(live)
    progress = (observed.root.body.get("status") or {}).get("updateProgress") or {}
    began = None if progress.get("updateEndedAt") else progress.get("updateStartedAt")
    return unready.get(live.uid) or max(live.created_at, moment(began) if began else live.created_at)


def _unready(pods: Iterable[PodFacts]) -> dict[str, datetime]:
    found: dict[str, datetime] = {}
    for pod in pods:
        owner = pod.live.controller
        if owner is not None and not pod.ready:
            found[owner.uid] = min(found.get(owner.uid, since(pod.live)), since(pod.live))
    return found


def since(live: Live) -> datetime:
    """Since when an object has been as it is: going, unready, or simply there."""
    if live.deleting_since:
        return live.deleting_since
    ready = find((live.body.get("status") or {}).get("conditions") or (), "Ready") or {}
    told = ready.get("lastTransitionTime") if ready.get("status") != "True" else None
    return moment(told) if told else live.created_at
