"""Scheduler gangs: the object by which a scheduler back end places the pods of a PodGang together, e.g. a PodGroup; one for each PodGang.

The PodGang owns it. The pods of the gang are created after it and deleted before it.
"""

from collections.abc import Iterator, Mapping

from msgspec import Struct

from engine.ids import Owner, ResourceId
from engine.observed import Live
from engine.paths import get
from engine.plan import Alarm
from engine.resource import Hold, Want
from resources.base import kinds
from resources.children import absence, podgang
from resources.children.child_kind import DeletionGroup, unexpected
from resources.model.gang_scheduling import Blocker, gang_objects, is_needed_by_pods, scheduler_name, set_metadata
from resources.model.pod_facts import PodFacts
from resources.model.view import CliqueView, GangView, View
from resources.ports.scheduler import GangObjects, LabelsAndAnnotations, SetMetadata

UNCONNECTED = LabelsAndAnnotations()
"""The metadata of a pod whose scheduler has no objects for gangs."""


class SchedulerGang(Struct, frozen=True, eq=False):
    """The scheduler's object for one PodGang."""

    resource: Want | Hold
    live: Live | None
    problem: str
    """Why the PodGang cannot be expressed for the scheduler; empty if it can."""
    provisional: bool
    """Whether it must have been read before pods are created."""

    @property
    def id(self) -> ResourceId:
        """The identity of the object."""
        return self.resource.id

    @property
    def pod_blocker(self) -> Blocker | None:
        """Why no new pod of the gang is created now; None if it is."""
        if self.live is None and isinstance(self.resource, Hold):
            return Blocker(f"{self.id.kind} {self.id.name} cannot be created: {self.resource.why}", self.resource.blocked)
        if self.live is None and self.provisional:
            return Blocker(f"{self.id.kind} {self.id.name} must have been read once: it may have to change", blocked=False)
        if self.live is not None and self.live.deleting_since is not None:
            return Blocker(f"{self.id.kind} {self.id.name} is being deleted; it is created again once it is gone", blocked=False)
        return None


def render(view: View) -> Iterator[Want | Hold]:
    """The objects for the gangs of a replica; none if the scheduler of the set needs none."""
    return (gang.resource for gang in scheduler_gangs(view).values())


def alarms(view: View) -> Iterator[Alarm]:
    """One alarm for each PodGang of a replica that cannot be expressed for the scheduler of the set."""
    gangs = gang_objects(view.template, view.configuration)
    for name, gang in scheduler_gangs(view).items():
        if gangs is not None and gang.problem:
            text = f"PodGang {view.namespace}/{name} cannot be mapped to a {gang.id.kind} of {gangs.kind.api_version}: {gang.problem}"
            yield Alarm(gangs.mapping_failed, text, blocking=True, about=kinds.PODGANG.id(view.namespace, name))


def scheduler_gangs(view: View) -> Mapping[str, SchedulerGang]:
    """PodGang name -> the scheduler's object for it; empty if the scheduler of the set has no objects for gangs."""
    gangs = gang_objects(view.template, view.configuration)
    if gangs is None:
        return {}
    metadata = set_metadata(view.template)
    return {gang.id.name: _scheduler_gang(view, gang, gangs, metadata) for gang in view.gangs}


def pod_metadata(view: View, clique: CliqueView, gang: SchedulerGang | None) -> LabelsAndAnnotations:
    """The labels and annotations by which the scheduler finds the gang of the pods of a clique; `gang` is the scheduler's object for it."""
    gangs = gang_objects(view.template, view.configuration)
    if gangs is None or gang is None:
        return UNCONNECTED
    return gangs.pod_metadata(clique.gang, clique.name, gang.live, set_metadata(view.template))


def is_placed_by_its_scheduler(view: View, pod: PodFacts) -> bool:
    """Whether an existing pod has the scheduler that the set has now."""
    return bool(get(pod.live.body, ("spec", "schedulerName")) == scheduler_name(view.template, view.configuration))


def _scheduler_gang(view: View, gang: GangView, gangs: GangObjects, metadata: SetMetadata) -> SchedulerGang:
    id, owner = gangs.kind.id(view.namespace, gang.id.name), Owner(gang.id, kinds.PODGANG.api_version)
    live = view.lives.objects.get(id)
    mapped = gangs.object_for(podgang.body_of(view, gang), live, metadata)
    blocker = _blocker(view, gang, id) or (Blocker(mapped.problem) if mapped.problem else None)
    if blocker is not None:
        resource: Want | Hold = Hold(id, blocker.why, (owner,), blocked=blocker.blocked)
    else:
        why, reason = f"{id.kind} of PodGang {gang.id.name}", absence.of_gang(view, gang)
        resource = Want(id, why, (owner,), body=mapped.body, policy=mapped.policy, reason=reason)
    return SchedulerGang(resource, live, mapped.problem, mapped.provisional and view.gang_blockers.set_exists)


def _blocker(view: View, gang: GangView, id: ResourceId) -> Blocker | None:
    """Why the object of a gang is neither created nor changed now, whatever its contents."""
    if blocker := view.gang_blockers.of(id):
        return blocker
    is_terminating = gang.live is not None and gang.live.deleting_since is not None
    return Blocker(f"PodGang {gang.id.name} is being deleted", blocked=False) if is_terminating else None


def obsolete(view: View, live: Live) -> DeletionGroup | str:
    """The scheduler's object for a gang is deleted with the gang, or when the set has another scheduler and no pod needs it any more."""
    if not any(gang.id.name == live.id.name for gang in view.gangs):
        return podgang.obsolete(view, live)
    if is_needed_by_pods(live, view.lives, view.configuration):
        return f"the set has another scheduler now; pods of {live.id.name} still need it"
    return unexpected(f"the scheduler of {view.root} needs no {live.id.kind} {live.id.name}")
