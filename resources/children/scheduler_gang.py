"""Scheduler gangs: the objects by which a scheduler back end places the pods of a PodGang together, e.g. a PodGroup.

The PodGang owns them. The pods of the gang are created after them and deleted before them.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final

from msgspec import Struct

from engine.ids import Owner, ResourceId
from engine.observed import Live
from engine.plan import Alarm
from engine.reason import Verdict, earliest
from engine.resource import PLAIN, Hold, Policy, Want
from engine.resource_plan import keepers
from resources.base import kinds
from resources.base.fields import annotations_of, manifest
from resources.children import absence, podgang
from resources.children.child_kind import DeletionGroup, unexpected
from resources.model.gang_scheduling import (
    Blocker,
    gang_kinds,
    gang_objects,
    gang_of,
    is_needed_by_pods,
    scheduler_name,
    set_metadata,
)
from resources.model.pod_facts import PodFacts
from resources.model.view import CliqueView, GangView, View
from resources.ports.scheduler import CliquePlacement, GangObject, GangObjects, GangPlan, SetMetadata

UNCONNECTED: Final = CliquePlacement()
"""The placement of pods whose scheduler has no objects for gangs."""
PATIENCE: Final = timedelta(minutes=1)
"""How long the scheduler is given to say something of a gang all of whose members exist."""
UNANSWERED: Final = "GangSchedulingUnanswered"
"""The reason of the Event about a gang of which the scheduler has said nothing for that long."""
UNTOUCHED: Final = Policy(until_gone=True)
ANSWERED: Final[Verdict[frozenset[str]]] = Verdict(frozenset())


class SchedulerGang(Struct, frozen=True, eq=False):
    """The scheduler's objects for one PodGang."""

    resources: tuple[Want | Hold, ...]
    """In the order in which they are created."""
    pod_blocker: Blocker | None
    """Why no new pod of the gang is created now; None if it is."""
    plan: GangPlan
    """How the back end expresses the PodGang."""

    @property
    def problem(self) -> str:
        """Why the PodGang cannot be expressed for the scheduler; empty if it can."""
        return next((each.problem for each in self.plan.objects if each.problem), "")

    @property
    def ids(self) -> frozenset[ResourceId]:
        """The identities of the objects."""
        return frozenset(resource.id for resource in self.resources)


def render(view: View) -> Iterator[Want | Hold]:
    """The objects for the gangs of a replica, and those of another scheduler that has placed some of its pods."""
    yield from (resource for gang in scheduler_gangs(view).values() for resource in gang.resources)
    yield from _kept(view)


def _kept(view: View) -> Iterator[Want]:
    """The objects that the set's earlier scheduler has for gangs, as they are, while pods need them."""
    gangs, names = gang_objects(view.template, view.configuration), {gang.id.name: gang for gang in view.gangs}
    used = gangs.kinds if gangs is not None else ()
    for kind in gang_kinds(view.configuration):
        lives = view.lives.of(kind.name) if kind not in used else ()
        for live in (live for live in lives if live.id.group == kind.group and gang_of(live) in names):
            if is_needed_by_pods(live, view.lives, view.configuration):
                body = manifest(kind, live.id.namespace, live.id.name, live.labels, annotations=annotations_of(live.body))
                owner = Owner(names[gang_of(live)].id, kinds.PODGANG.api_version)
                yield Want(live.id, f"pods of {owner.id.name} still need it", (owner,), body=body, policy=UNTOUCHED)


def alarms(view: View) -> Iterator[Alarm]:
    """One alarm for each PodGang of a replica that cannot be expressed for the scheduler of the set, or of which that says nothing."""
    gangs = gang_objects(view.template, view.configuration)
    for name, gang in scheduler_gangs(view).items():
        if gangs is not None and gang.problem:
            kind = gangs.kinds[-1]
            text = f"PodGang {view.namespace}/{name} cannot be mapped to a {kind.name} of {kind.api_version}: {gang.problem}"
            yield Alarm(gangs.mapping_failed, text, blocking=True, about=kinds.PODGANG.id(view.namespace, name))
        if gang.plan.unanswered:
            yield Alarm(UNANSWERED, gang.plan.unanswered, about=kinds.PODGANG.id(view.namespace, name))


def notes(view: View) -> tuple[str, ...]:
    """The parts of a replica's PodGangs that have no effect with the scheduler of the set, each once."""
    return tuple(dict.fromkeys(note for gang in scheduler_gangs(view).values() for note in gang.plan.notes))


@lru_cache(maxsize=1)
def scheduler_gangs(view: View) -> Mapping[str, SchedulerGang]:
    """PodGang name -> the scheduler's objects for it; empty if the scheduler of the set has no objects for gangs.

    Cached because rendering one replica asks four times.
    """
    gangs = gang_objects(view.template, view.configuration)
    if gangs is None:
        return {}
    metadata = set_metadata(view.template)
    return {gang.id.name: _scheduler_gang(view, gang, gangs, metadata) for gang in view.gangs}


def placement_of(clique: CliqueView, gang: SchedulerGang | None) -> CliquePlacement:
    """How the pods of a clique are connected with their gang; `gang`: the scheduler's objects for it."""
    return gang.plan.placements.get(clique.name, UNCONNECTED) if gang is not None else UNCONNECTED


def has_waiting_members(view: View, gang: str) -> bool:
    """Whether a pod of a PodGang is in a group of kube-scheduler and has no node."""
    cliques = (clique for clique in view.cliques if clique.gang == gang)
    return any(pod.grouped and pod.serving and not pod.node for clique in cliques for pod in clique.pods)


def is_placed_by_its_scheduler(view: View, pod: PodFacts) -> bool:
    """Whether an existing pod has the scheduler that the set has now."""
    return pod.scheduler == scheduler_name(view.template, view.configuration)


def unanswered(view: View, now: datetime) -> Verdict[frozenset[str]]:
    """The PodGangs of which the scheduler has said nothing for `PATIENCE`. The verdict is valid until there is another one."""
    gangs = gang_objects(view.template, view.configuration)
    if gangs is None or not gangs.answers:
        return ANSWERED
    since = {gang.id.name: moment for gang in view.gangs if (moment := gangs.unanswered_since(podgang.gang_facts(view, gang))) is not None}
    due = frozenset(name for name, moment in since.items() if now - moment >= PATIENCE)
    return Verdict(due, until=earliest(moment + PATIENCE for name, moment in since.items() if name not in due))


def _scheduler_gang(view: View, gang: GangView, gangs: GangObjects, metadata: SetMetadata) -> SchedulerGang:
    plan = gangs.plan_for(podgang.bodies(view)[gang.id.name], podgang.gang_facts(view, gang), metadata)
    resources: list[Want | Hold] = []
    for each in plan.objects:
        resources.append(_resource(view, gang, each, frozenset(resource.id for resource in resources)))
    blockers = (
        blocker
        for each, resource in zip(plan.objects, resources, strict=True)
        if (blocker := _pod_blocker(view, each, resource)) is not None
    )
    return SchedulerGang(tuple(resources), next(blockers, None), plan)


def _resource(view: View, gang: GangView, each: GangObject, after: frozenset[ResourceId]) -> Want | Hold:
    """One object of a gang, created after others of it."""
    id, owner = each.id or gang.id, Owner(gang.id, kinds.PODGANG.api_version)
    blocker = _blocker(view, gang, id, each.policy) or (Blocker(each.problem) if each.problem else None)
    if blocker is not None:
        return Hold(id, blocker.why, (owner,), after, blocked=blocker.blocked)
    why, reason = f"{id.kind} of PodGang {gang.id.name}", absence.of_gang(view, gang)
    return Want(id, why, (owner,), after, body=each.body, policy=each.policy, own_reasons=each.own_reasons, reason=reason)


def _pod_blocker(view: View, each: GangObject, resource: Want | Hold) -> Blocker | None:
    """Why no new pod of a gang is created now, as far as this object of it is concerned; None if it is."""
    id, live = resource.id, view.lives.objects.get(resource.id)
    if live is None and isinstance(resource, Hold):
        return Blocker(f"{id.kind} {id.name} cannot be created: {resource.why}", resource.blocked)
    if live is None and each.provisional and view.gang_blockers.set_exists:
        return Blocker(f"{id.kind} {id.name} waits for its first read", blocked=False)
    if live is not None and live.deleting_since is not None and not each.policy.until_gone:
        return Blocker(f"{id.kind} {id.name} is being deleted; it is created again once it is gone", blocked=False)
    return None


def _blocker(view: View, gang: GangView, id: ResourceId, policy: Policy) -> Blocker | None:
    """Why an object of a gang is neither created nor changed now, whatever its contents."""
    if (blocker := view.gang_blockers.of(id, gang.id)) and not (policy.until_gone and view.gang_blockers.is_of_predecessor(id, gang.id)):
        return blocker
    if gang.live is None or gang.live.deleting_since is None:
        return None
    return Blocker(f"PodGang {gang.id.name} is being deleted", blocked=bool(keepers(gang.live, PLAIN)))


def obsolete(view: View, live: Live) -> DeletionGroup | str:
    """A scheduler's object for a gang is deleted with the gang, or when the set has another scheduler and no pod needs it any more."""
    gang = gang_of(live)
    if not any(each.id.name == gang for each in view.gangs):
        return podgang.obsolete(view, live)
    return unexpected(f"the scheduler of {view.root} needs no {live.id.kind} {live.id.name}")
