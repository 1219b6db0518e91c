"""Gang scheduling: the back end that places the pods of a set, whether it schedules gangs, and why its objects cannot be created."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from engine.conditions import condition
from engine.ids import Kind, ResourceId
from engine.memo import Memo
from engine.observed import Live, Observed, Slice
from engine.paths import get
from engine.plan import Wait
from engine.resource import Body, Policy
from engine.resource_plan import is_of_predecessor, kept
from resources.base import kinds, labels
from resources.base.fields import cliques_of, mapping, mappings
from resources.base.set_size import least_pods
from resources.model.template import Template
from resources.ports.configuration import Configuration, serves_graph_scheduler
from resources.ports.scheduler import GangObjects, LabelsAndAnnotations, Scheduler, SetMetadata

UNSCHEDULED: Final = "GangSchedulingUnavailable"
"""The type of the condition of a set whose scheduler does not schedule its gangs."""
SCHEDULER: Final = ("spec", "schedulerName")
STILL_GROUPED: Final = (
    "wait in PodGroups of kube-scheduler, which places the members of one together or not at all, although gangs are off: switch them on "
    "again, or delete these pods: those that replace them are placed one by one"
)
"""What is said of pods that got their PodGroup while gangs were on."""
OF_OTHER: Final = "were placed by {other} and stay; {own} places those that replace them"
"""What is said of pods whose set has got another scheduler."""

ONLY_PROTECTED: Final = Policy(finalizers=(labels.GROUP_PROTECTION,))
"""Of an object whose finalizers Kubernetes removes."""


class Blocker(Struct, frozen=True):
    """Why something cannot be created now."""

    why: str
    blocked: bool = True
    """Whether a user or another controller has to act first; otherwise a later pass creates it."""


class GangBlockers(Struct, frozen=True):
    """Why a back end's objects for the gangs of a set cannot be created now."""

    of_kinds: Mapping[tuple[str, str], Blocker] = field(default_factory=dict)
    """Group and name of a kind -> what concerns all objects of that kind."""
    foreign: Mapping[ResourceId, Live] = field(default_factory=dict)
    """The foreign objects that have names of objects of gangs."""
    set_exists: bool = True
    """Whether the set exists: of one that is only proposed, everything is shown at once."""

    def of(self, id: ResourceId, gang: ResourceId) -> Blocker | None:
        """Why that object of a PodGang cannot be created now; None if it can."""
        if blocker := self.of_kinds.get((id.group, id.kind)):
            return blocker
        taken = self.foreign.get(id)
        if taken is None or taken.deleting_since is None:
            return Blocker(_name_taken(id, gang)) if taken is not None else None
        wait = kept_by_others(taken)
        why = wait.why if wait is not None else "is being deleted; it is created again once it is gone"
        return Blocker(f"{id.kind} {id.namespace}/{id.name} of an earlier {gang.kind} {why}", blocked=wait is not None)

    def is_of_predecessor(self, id: ResourceId, gang: ResourceId) -> bool:
        """Whether that object is of an earlier PodGang of this name and goes with the last pod of that one: it works until then."""
        taken = self.foreign.get(id)
        return taken is not None and is_of_predecessor(taken, gang) and kept_by_others(taken) is None


NO_BLOCKERS = GangBlockers()


def scheduler_name(template: Template, configuration: Configuration) -> str:
    """The scheduler of the set's pods: the first that a clique names, otherwise the default."""
    return next((clique.scheduler for clique in template.cliques if clique.scheduler), configuration.default_scheduler)


def gang_objects(template: Template, configuration: Configuration) -> GangObjects | None:
    """The objects for gangs of the back end that places the set's pods; None if it has none, or is not enabled."""
    scheduler = configuration.schedulers.get(scheduler_name(template, configuration))
    return scheduler.gangs if scheduler is not None else None


def whole_gang_schedulers(configuration: Configuration) -> tuple[str, ...]:
    """The names of the back ends that place a gang only with the minimum of each pod group; Kubernetes' own follows what a gang lists."""
    schedulers = configuration.schedulers.items()
    return tuple(name for name, scheduler in schedulers if scheduler.gangs is not None and not scheduler.gangs.are_built_in)


def without_gangs(body: Body, configuration: Configuration) -> Scheduler | None:
    """The back end that places each pod of a set by itself, although a gang of it needs several; None if there is none.

    `body`: the set, of any shape.
    """
    named = (get(clique, ("spec", "podSpec", "schedulerName")) for clique in cliques_of(body))
    scheduler = configuration.schedulers.get(next((str(name) for name in named if name), configuration.default_scheduler))
    return scheduler if scheduler is not None and scheduler.instead_of_gangs and least_pods(body) > 1 else None


def placed_one_by_one(scheduler: Scheduler, sets: str) -> str:
    """What it means for sets, and what users can do about it, in one sentence."""
    return f"{scheduler.name} does not schedule gangs: the pods of {sets} are placed one by one; {scheduler.instead_of_gangs}"


def gang_remarks(observed: Observed, configuration: Configuration) -> Iterator[tuple[str, str]]:
    """What is said of existing pods that are placed otherwise than those that replace them, and `namespace/name` of each such PodGang."""
    for lives in observed.slices.values():
        for gang in lives.of(kinds.PODGANG.name):
            own = gang.labels.get(labels.SCHEDULER_NAME, "")
            scheduler = configuration.schedulers.get(own)
            pods = [pod for pod in pods_of_gang(gang.id.name, lives) if pod.deleting_since is None]
            others = sorted({str(name) for pod in pods if (name := get(pod.body, SCHEDULER)) and name != own})
            remarks = [OF_OTHER.format(other=name, own=own) for name in others if scheduler is not None]
            if scheduler is not None and scheduler.gangs is not None and not others:
                remarks.append(scheduler.gangs.remark(gang, pods))
            if scheduler is not None and scheduler.gangs is None and _is_kept_by_group(gang, pods):
                remarks.append(STILL_GROUPED)
            yield from ((remark, f"{gang.id.namespace}/{gang.id.name}") for remark in remarks if remark)


def _is_kept_by_group(gang: Live, pods: Iterable[Live]) -> bool:
    """Whether pods of a gang wait for one another in a PodGroup. If all but one of its minimum are on nodes, that one waits for room."""
    placed = [bool(get(pod.body, ("spec", "nodeName"))) for pod in pods if get(pod.body, ("spec", "schedulingGroup"))]
    groups = mappings(mapping(gang.body.get("spec")).get("podgroups"))
    minimum = sum(least for group in groups if isinstance(least := group.get("minReplicas"), int))
    return not all(placed) and sum(placed) + 1 < minimum


def conditions(body: Body, configuration: Configuration) -> tuple[Mapping[str, Any], ...]:
    """The condition of a set whose scheduler does not schedule its gangs; empty for every other set.

    It has no `observedGeneration`, or every edit would write it again: the scheduler of a set stays.
    """
    scheduler = without_gangs(body, configuration)
    if scheduler is None:
        return ()
    return (condition(UNSCHEDULED, True, "SchedulerWithoutGangs", placed_one_by_one(scheduler, "this set")),)


def on_cluster(configuration: Configuration, unserved: Collection[str]) -> Configuration:
    """The configuration with the back ends as they work on a cluster that does not serve these kinds; the same object if all do."""
    enabled = configuration.schedulers if serves_graph_scheduler(unserved) else configuration.listed_schedulers
    schedulers = {name: scheduler.where(unserved) for name, scheduler in enabled.items()}
    is_same = all(schedulers.get(name) is scheduler for name, scheduler in configuration.schedulers.items())
    return configuration if is_same else replace(configuration, schedulers=schedulers)


def gang_kinds(configuration: Configuration) -> tuple[Kind, ...]:
    """The kinds of the objects for gangs, for all enabled back ends, each once, in the order of the back ends' names."""
    gangs = (scheduler.gangs for _, scheduler in sorted(configuration.schedulers.items()))
    return tuple(dict.fromkeys(kind for each in gangs if each is not None for kind in each.kinds))


def deleted_after(kind: Kind, configuration: Configuration) -> tuple[Kind, ...]:
    """The kinds of objects for gangs that are deleted after those of a kind: the ones that the back end creates before it."""
    gangs = (scheduler.gangs for scheduler in configuration.schedulers.values())
    return next((each.kinds[: each.kinds.index(kind)] for each in gangs if each is not None and kind in each.kinds), ())


def gang_of(live: Live) -> str:
    """The name of the PodGang of a scheduler's object: of the one that controls it, else its own."""
    owner = live.controller
    return owner.name if owner is not None and owner.kind == kinds.PODGANG.name else live.id.name


def _is_of(id: ResourceId, kind: Kind) -> bool:
    return (kind.group, kind.name) == (id.group, id.kind)


def is_needed_by_pods(live: Live, lives: Slice, configuration: Configuration) -> bool:
    """Whether the object is a scheduler's object for a gang of which that scheduler places existing pods."""
    schedulers = configuration.schedulers.items()
    names = {
        name
        for name, scheduler in schedulers
        if scheduler.gangs is not None and any(_is_of(live.id, kind) for kind in scheduler.gangs.kinds)
    }
    pods = pods_of_gang(gang_of(live), lives) if names else ()
    return any(get(pod.body, ("spec", "schedulerName")) in names for pod in pods)


def pods_of_gang(gang: str, lives: Slice) -> Sequence[Live]:
    """The pods whose label names a PodGang."""
    return lives.index("pods by gang", _pods_by_gang).get(gang, ())


def _pods_by_gang(lives: Slice) -> Mapping[str, Sequence[Live]]:
    pods: dict[str, list[Live]] = {}
    for pod in lives.of(kinds.POD.name):
        pods.setdefault(pod.labels.get(labels.PODGANG, ""), []).append(pod)
    return pods


def shortfalls(gang: Body) -> Mapping[str, tuple[int, int]]:
    """Pod group of a PodGang -> the numbers of the pods that it lists and of its minimum, for those with fewer: scaled below it."""
    groups = mappings(mapping(gang.get("spec")).get("podgroups"))
    counts = {str(group.get("name")): (len(list(mappings(group.get("podReferences")))), group.get("minReplicas")) for group in groups}
    return {name: (count, least) for name, (count, least) in counts.items() if isinstance(least, int) and count < least}


def set_metadata(template: Template) -> SetMetadata:
    """The metadata of a set for its back end. Grove's own keys of the set are not part of it."""
    return SetMetadata(
        template.id.namespace,
        template.id.name,
        LabelsAndAnnotations(template.gang_labels, template.gang_annotations),
        {clique.name: LabelsAndAnnotations(clique.labels, clique.annotations) for clique in template.cliques},
    )


def gang_blockers(observed: Observed, template: Template, configuration: Configuration, memo: Memo) -> GangBlockers:
    """The blockers of a set's gang objects; the same object as before if nothing about them has changed."""
    gangs = gang_objects(template, configuration)
    if gangs is None:
        return NO_BLOCKERS
    used, exists = gangs.kinds, bool(observed.root.uid)
    states = tuple((kind.key in observed.unserved, kind.key in observed.incomplete) for kind in used)
    return memo.recall(
        "gang_blockers", (used, states, observed.foreign, exists), lambda: replace(_blockers(observed, used), set_exists=exists)
    )


def _blockers(observed: Observed, used: Sequence[Kind]) -> GangBlockers:
    """The blockers for a back end with objects of these kinds."""
    of_kinds: dict[tuple[str, str], Blocker] = {}
    for kind in used:
        if kind.key in observed.unserved:
            of_kinds[kind.group, kind.name] = Blocker(f"the cluster does not serve {kind.name} of {kind.api_version}")
        elif kind.key in observed.incomplete:
            of_kinds[kind.group, kind.name] = Blocker(f"{kind.name} objects of {kind.api_version} could not be listed completely")
    foreign = {id: live for id, live in observed.foreign.items() if any(_is_of(id, kind) for kind in used)}
    return GangBlockers(of_kinds, foreign)


def kept_by_others(live: Live) -> Wait | None:
    """What is said of a scheduler's object if finalizers keep it that Kubernetes does not remove when its pods are gone; None without."""
    return kept(live, ONLY_PROTECTED)


def _name_taken(id: ResourceId, gang: ResourceId) -> str:
    return f"{id.kind} {id.namespace}/{id.name} already exists but is not controlled by PodGang {gang.namespace}/{gang.name}"
