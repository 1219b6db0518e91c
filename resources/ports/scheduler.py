"""Scheduler: the port for scheduler back ends, which express pods, gangs and topologies for one particular scheduler. Pure.

A back end is a subclass of `Scheduler` with a `name`. Everything else has a default, and the docstring of each member says what it means.
What belongs together is one value, `gangs` or `topologies`: it is there completely, or it is None.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from engine.answer import FailedCall
from engine.conditions import find
from engine.ids import Kind, ResourceId
from engine.observed import Live
from engine.paths import get
from engine.reason import Reason
from engine.resource import PLAIN, Body, Path, Policy
from resources.base import kinds, labels
from resources.base.fields import count, mapping, mappings
from resources.ports.checks import Check, Installation, PlugIn
from resources.ports.references import References
from resources.schema.issues import Issue
from resources.schema.podcliqueset import PodCliqueSet

INITIALLY_SCHEDULED: Final = "PodGroupInitiallyScheduled"
"""The condition by which kube-scheduler says what came of a PodGroup. Once it is True it stays so, even if members are lost."""
REFUSED: Final = ("Unschedulable", "SchedulerError")
"""Its reasons where no nodes were found. It has an error in a cluster without nodes (1.37)."""


class LabelsAndAnnotations(Struct, frozen=True):
    """The labels and annotations of one object."""

    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


class SetMetadata(Struct, frozen=True):
    """The metadata of a PodCliqueSet in which a back end finds what it needs besides the pod specs, e.g. the queue."""

    namespace: str
    name: str
    of_set: LabelsAndAnnotations
    of_cliques: Mapping[str, LabelsAndAnnotations]
    """The metadata of the cliques of the template by their names, in the order of the template."""


class GangObject(Struct, frozen=True):
    """A scheduler's own object for a PodGang."""

    body: Body
    """The manifest without owner references; empty if there is a problem."""
    policy: Policy = PLAIN
    """How differences of the object are treated. Fields that the scheduler or others write are neither in the body nor compared."""
    problem: str = ""
    """Why the PodGang cannot be expressed for this scheduler; empty if it can."""
    provisional: bool = False
    """Whether it must be read once after its creation, because it may have to change: no pod is created before."""
    id: ResourceId | None = None
    """Its identity. None: it has the kind, the namespace and the name that a back end with one object for each PodGang gives it."""
    own_reasons: tuple[tuple[Path, Reason], ...] = ()
    """Paths of fields -> why these change, if not because the template has changed."""


class CliqueOfGang(Struct, frozen=True):
    """One pod group of a PodGang, with the pods that its clique has and gets."""

    name: str
    minimum: int
    """The number of its pods without which the gang cannot run."""
    pods: tuple[Live, ...] = ()
    """Its pods that keep their index."""
    new: tuple[int, ...] = ()
    """The indices of the pods that are created now."""
    is_kept: bool = False
    """Whether the clique exists or is created, and is not being deleted."""


class Island(Struct, frozen=True):
    """Cliques of a PodGang whose pods must be in one island of a fabric, because they share a domain (N31)."""

    key: str
    """The node label that names the island."""
    cliques: frozenset[str]


class GangFacts(Struct, frozen=True):
    """What is observed of one PodGang and its pods."""

    id: ResourceId
    """The PodGang."""
    live: Live | None
    """The PodGang as it exists."""
    objects: Mapping[ResourceId, Live]
    """The objects of the replica, among them those of the scheduler. Any user may have written them: their shape is not trusted."""
    cliques: tuple[CliqueOfGang, ...]
    pods: tuple[Live, ...]
    """Its pods that are not being deleted, also those of cliques that are."""
    islands: tuple[Island, ...] = ()
    """What the fabric domains of its pods require."""
    is_unanswered: bool = False
    """Whether the scheduler has had enough time to say something of the gang and has not (`GangObjects.unanswered_since`)."""
    failed_calls: tuple[FailedCall, ...] = ()
    """The calls for its scheduler's objects that failed when they were last made."""


class CliquePlacement(Struct, frozen=True):
    """How the pods of one clique are connected with their gang."""

    metadata: LabelsAndAnnotations = LabelsAndAnnotations()
    """The labels and annotations of all of them."""
    member: Body = field(default_factory=dict)
    """Fields of the spec of the pods that are members of the gang."""
    members: int | None = None
    """The pods with an index below this are members, the others are not; None: all are."""
    gate: str = ""
    """Why pods that are no members must not be scheduled yet; empty if they may."""
    affinity: tuple[Body, ...] = ()
    """The terms of required pod affinity that keep pods that are no members in the topology domains of their gang."""

    def is_member(self, spec: Body) -> bool:
        """Whether an existing pod with this spec is a member."""
        return self.members is None or all(spec.get(name) == value for name, value in self.member.items())


class GangAnswer(Struct, frozen=True):
    """What a scheduler says of a PodGang as a whole."""

    is_scheduled: bool
    """Whether it has found a place for its minimum. It may stay so when pods are lost later."""
    reason: str
    """One word in CamelCase."""
    message: str
    """Its own words; empty if it has none."""


class GangPlan(Struct, frozen=True):
    """A PodGang as it is expressed for a scheduler."""

    objects: tuple[GangObject, ...] = ()
    """In the order in which they are created."""
    placements: Mapping[str, CliquePlacement] = field(default_factory=dict)
    """PodClique -> how its pods are connected with the gang."""
    notes: tuple[str, ...] = ()
    """The parts of the PodGang that cannot be expressed and have no effect, one sentence each."""
    unanswered: str = ""
    """That the scheduler has said nothing of it for too long, and what is probably the cause; empty if it has."""


class GangObjects(ABC):
    """A scheduler's objects for PodGangs, by which it places the pods of a PodGang together.

    The PodGang owns them. They have its labels, by which the engine finds them, and names of which `names.replica_of` tells the replica.
    They are created before the pods of the gang and deleted after them.
    """

    answers: bool = False
    """Whether `answer` and `unanswered_since` say anything."""
    are_built_in: bool = False
    """Whether Kubernetes itself has the kinds: then no CRD is missing, and the back end checks itself whether they are served."""

    @property
    @abstractmethod
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of the objects, which must be namespaced, in the order of creation; they are deleted in the reverse order.

        Only sets whose pods have this scheduler depend on them.
        """

    @property
    @abstractmethod
    def mapping_failed(self) -> str:
        """The reason of the Warning event if a PodGang cannot be expressed: one word in CamelCase."""

    @abstractmethod
    def annotations_for(self, spec: Body, gang: GangFacts) -> Mapping[str, str]:
        """The annotations that a PodGang with this spec has besides its own, e.g. a record of how it is expressed."""

    @abstractmethod
    def plan_for(self, podgang: Body, gang: GangFacts, metadata: SetMetadata) -> GangPlan:
        """The objects for a PodGang and how its pods refer to them, given the PodGang's manifest."""

    def remark(self, podgang: Live, pods: Iterable[Live]) -> str:
        """How it places the existing pods of a PodGang, if not together, with the reason: a predicate. Empty, as by default: together."""
        return ""

    def answer(self, gang: GangFacts) -> GangAnswer | None:
        """What the scheduler says of a PodGang; None, as by default, if it has said nothing, or says nothing of gangs."""
        return None

    def unanswered_since(self, gang: GangFacts) -> datetime | None:
        """The time since which the scheduler could have answered for a gang and has not; None if it has, or if no answer is expected."""
        return None


class OneObjectForEachGang(GangObjects):
    """The objects of a scheduler that has one for each PodGang, with the same name, namespace and labels."""

    podgang_annotations: Mapping[str, str] = {}
    """The annotations that every PodGang of this scheduler has besides its own."""

    @property
    @abstractmethod
    def kind(self) -> Kind:
        """The kind of the objects, which must be namespaced."""

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """That kind."""
        return (self.kind,)

    @abstractmethod
    def object_for(self, podgang: Body, live: Live | None, metadata: SetMetadata) -> GangObject:
        """The object for a PodGang, given the PodGang's manifest.

        `live` is the object as it exists, None if it does not. Any user may have written it, so its shape is not trusted.
        """

    @abstractmethod
    def pod_metadata(self, gang: str, podclique: str, live: Live | None, metadata: SetMetadata) -> LabelsAndAnnotations:
        """The labels and annotations that connect a pod with its gang. `live` is the gang's object as in `object_for`."""

    def annotations_for(self, spec: Body, gang: GangFacts) -> Mapping[str, str]:
        """Those of every PodGang."""
        return self.podgang_annotations

    def plan_for(self, podgang: Body, gang: GangFacts, metadata: SetMetadata) -> GangPlan:
        """The one object, and the labels and annotations of the pods of each clique."""
        podgang = as_placed(podgang, gang)
        id = self.kind.id(gang.id.namespace, gang.id.name)
        live = gang.objects.get(id)
        placements = {clique.name: CliquePlacement(self.pod_metadata(id.name, clique.name, live, metadata)) for clique in gang.cliques}
        return GangPlan((replace(self.object_for(podgang, live, metadata), id=id),), placements)


def as_placed(podgang: Body, gang: GangFacts) -> Body:
    """The PodGang with the minimums that its scheduler can reach: pods that another one has placed are not counted by it.

    Otherwise an update of such a set, which replaces one unit at a time, would wait for pods that are replaced later. A pod group without a
    pod of this scheduler is left out. The PodGang as it is while none has one.
    """
    own, groups = get(podgang, ("metadata", "labels", labels.SCHEDULER_NAME)), podgang["spec"]["podgroups"]
    others = {clique.name: sum(get(pod.body, ("spec", "schedulerName")) != own for pod in clique.pods) for clique in gang.cliques}
    if not any(others.values()):
        return podgang
    counts = {clique.name: len(clique.pods) + len(clique.new) - others[clique.name] for clique in gang.cliques}
    minimums = {
        group["name"]: min(counts.get(group["name"], 0), max(1, group["minReplicas"] - others.get(group["name"], 0))) for group in groups
    }
    if not any(minimums.values()):
        return podgang
    reached = [{**group, "minReplicas": minimums[group["name"]]} for group in groups if minimums[group["name"]]]
    configs = [
        {**config, "podGroupNames": [name for name in config["podGroupNames"] if minimums.get(name)]}
        for config in podgang["spec"].get("topologyConstraintGroupConfigs") or ()
    ]
    spec = {**podgang["spec"], "podgroups": reached, **({"topologyConstraintGroupConfigs": configs} if configs else {})}
    return {**podgang, "spec": spec}


class Levels(Struct, frozen=True):
    """The levels of one ClusterTopologyBinding."""

    binding: str
    """The binding's name."""
    keys: tuple[str, ...]
    """The node label of each level, from the broadest to the narrowest."""


class TopologyObjects(ABC):
    """A scheduler's topology objects, which follow ClusterTopologyBindings.

    If a binding names an object for this scheduler, another controller or user manages that object and the engine only compares it with
    the binding. Otherwise the engine creates one for the binding and keeps it in sync.
    """

    @property
    @abstractmethod
    def kind(self) -> Kind:
        """The kind of the objects, which must be cluster-scoped."""

    @property
    @abstractmethod
    def policy(self) -> Policy:
        """How differences of an object are treated, e.g. which fields are immutable."""

    @abstractmethod
    def object_for(self, levels: Levels) -> Body:
        """The object for a binding: `apiVersion`, `kind`, `metadata.name` and spec, without owner references."""

    @abstractmethod
    def drift(self, name: str, live: Live | None, levels: Levels) -> str:
        """How the object of that name differs from the binding, as one sentence; empty if they agree.

        `live` is None if the object does not exist. Any user may have written it, so its shape is not trusted.
        """

    @abstractmethod
    def conflict(self, name: str, levels: Levels) -> str:
        """Why the engine cannot create its object of that name: an object exists that the binding does not control."""


class Scheduler(PlugIn):
    """One scheduler back end."""

    gangs: GangObjects | None = None
    """Its objects for PodGangs. None: it has none, and finds gangs by a contract of its own with the workload or not at all."""
    instead_of_gangs: str = ""
    """What users can do if it schedules no gangs, but places each of their pods by itself.

    A clause with every way out. Empty: it schedules gangs.
    """
    topologies: TopologyObjects | None = None
    """Its topology objects. None: ClusterTopologyBindings have no effect on it, and topology constraints that need one are rejected."""
    reads_node_labels: bool = False
    """Whether it needs no topology objects because it knows levels by their node labels: ClusterTopologyBindings may name it."""
    referenced_kinds: Collection[Kind] = ()
    """The kinds of the objects that its admission rules look up in `References`, e.g. queues. None by default."""
    instead_of_affinity: str = ""
    """How users keep pods together if it may not observe pod affinity, by which the engine keeps the pods of a fabric domain together.

    A sentence without a full stop. Empty: it observes pod affinity.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """The profile name in the operator configuration, which is also the `schedulerName` of its pods."""

    def where(self, unserved: Collection[str]) -> "Scheduler":
        """The back end as it works on a cluster that does not serve these kinds (`Kind.key`): by default as everywhere.

        It is the same object whenever the same kinds of its own are among them.
        """
        return self

    def without_gangs(self, installation: Installation) -> Check | None:
        """The check that it schedules no gangs although the kinds of its objects for them are served, with the remedy.

        None if it does, or if that is not known, as by default.
        """
        return None

    def decorate_pod(self, spec: dict[str, Any]) -> dict[str, Any]:
        """The pod spec with what this scheduler needs: by default its `schedulerName`. Called for every pod that is created."""
        return {**spec, "schedulerName": self.name}

    def issues(self, model: PodCliqueSet, references: References) -> Iterable[Issue]:
        """Why it cannot schedule this PodCliqueSet. Called on create and on update, after defaulting; any issue denies the request.

        A rule that depends on an object whose kind `references` does not know is skipped. By default it schedules every set.
        """
        return ()

    def warnings(self, model: PodCliqueSet, references: References) -> Iterable[str]:
        """Warnings about a PodCliqueSet that is admitted: rules that were skipped, settings that are probably a mistake.

        None by default.
        """
        return ()


def has_built_in_gangs(schedulers: Mapping[str, Scheduler]) -> bool:
    """Whether one of these back ends schedules gangs by objects of Kubernetes itself."""
    return any(scheduler.gangs is not None and scheduler.gangs.are_built_in for scheduler in schedulers.values())


def refusal_of(group: Live) -> str:
    """The reason and the words of the scheduler that has found no nodes for a PodGroup; empty if it has not said so, or has since."""
    status = mapping(group.body.get("status"))
    is_native = kinds.POD_GROUP.key in group.id.keys()
    condition = find(list(mappings(status.get("conditions"))), INITIALLY_SCHEDULED if is_native else "Unschedulable") or {}
    refused = condition.get("status") == "True" and status.get("phase") != "Running"
    if is_native:
        refused = condition.get("status") == "False" and condition.get("reason") in REFUSED
    return f"{condition.get('reason') or 'Unschedulable'}: {condition.get('message') or 'no nodes suit its pods'}" if refused else ""


def running_of(group: Live) -> int:
    """How many pods of a PodGroup run, as far as its scheduler says so: 0 of one that places all of them or none."""
    return count(mapping(group.body.get("status")).get("running"))


def refused_groups(lives: Iterable[Live]) -> Iterator[tuple[Live, str]]:
    """The PodGroups among these objects that wait for nodes and are not being deleted, each with its `refusal_of`."""
    groups = (live for live in lives if live.id.kind == kinds.POD_GROUP.name and live.deleting_since is None)
    return ((live, words) for live in groups if (words := refusal_of(live)))
