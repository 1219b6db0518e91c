"""View: one replica of a set, desired and observed, with everything that its parts are computed from."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime

from msgspec import Struct, field

from engine.answer import FailedCall
from engine.ids import Owner, ResourceId
from engine.observed import Live, Slice
from engine.reason import Because, Reason
from resources.base import kinds, labels, names
from resources.model import environment
from resources.model.domain import Domain, name_in
from resources.model.gang_scheduling import NO_BLOCKERS, GangBlockers
from resources.model.growth_limit import GrowthLimit, desired_replicas, growth_limit_of
from resources.model.pod_facts import PodAssignment, PodFacts, assign_pods, facts_of
from resources.model.pod_match import has_lost_hash, is_adopted, is_created_from
from resources.model.template import Clique, Group, Template
from resources.ports.configuration import Configuration

MAX_REPLICAS = 100_000
"""The largest number of replicas that is accepted for any object: more is assumed to be a typing error."""
ROOT = "root"
"""The key of the part with the PodCliqueSet itself."""
SET = "set"
"""The key of the part with the objects that all replicas of the set share."""


class CliqueView(Struct, frozen=True, eq=False):
    """One desired PodClique of a replica, with its live object and pods."""

    id: ResourceId
    clique: Clique
    owner: Owner
    gang: str
    """The name of its PodGang."""
    base_gang: str
    """The gang that must be scheduled before its own; empty if its own is the base gang."""
    group: "GroupView | None"
    group_replica: int
    """The index of its replica of the scaling group; 0 without a group."""
    live: Live | None
    """The PodClique; None if it does not exist."""
    replicas: int
    """The desired number of pods (`desired_replicas`)."""
    pods: tuple[PodFacts, ...]
    """Its live pods."""
    ready: int
    """The number of ready pods, including terminating ones."""
    scheduled: int
    """The number of scheduled pods, including terminating ones."""
    completed: int
    """The number of pods that have completed, including terminating ones. They are never ready again, and are no breach."""
    assignment: PodAssignment
    """Which of its pods are kept or deleted, and which are created."""
    on_delete: bool
    """Whether the update strategy is OnDelete: outdated pods are replaced only after they were deleted."""
    adopted: bool
    """Whether the template is equal although its hash label is missing or of another operator: it and its pods get new hash labels."""
    outdated_pods: tuple[PodFacts, ...]
    """Those of the pods it keeps that were created from another template than the current one."""

    @property
    def name(self) -> str:
        """The name of the PodClique."""
        return self.id.name

    @property
    def terminating(self) -> bool:
        """Whether it or its scaling group is being deleted."""
        return _is_terminating(self.live) or (self.group is not None and self.group.terminating)

    @property
    def live_hash(self) -> str:
        """The template hash on the live object; empty if there is none."""
        return self.live.labels.get(labels.TEMPLATE_HASH, "") if self.live is not None else ""

    @property
    def hash(self) -> str:
        """The hash of the template that the live object was created from; without a live object, of the current template."""
        return self.clique.hash if self.live is None or self.adopted else self.live_hash

    @property
    def outdated(self) -> bool:
        """Whether it belongs to a scaling group and was created from another template: then it is replaced, never edited."""
        return self.group is not None and not self.on_delete and self.hash != self.clique.hash

    def is_current(self, pod: PodFacts) -> bool:
        """Whether a pod was created from the current template, whichever operator wrote its hash; without a hash its contents decide."""
        return _is_current(pod, self.clique, self.group, self.live_hash if self.adopted else "")


def _is_current(pod: PodFacts, clique: Clique, group: "GroupView | None", adopted_hash: str) -> bool:
    """Whether a pod was created from the current template of a clique. `adopted_hash`: another hash of the same template; empty: none."""
    if not pod.hash:
        return is_created_from(pod.live.body, environment.template_spec(clique, group.group if group else None))
    return pod.hash in (clique.hash, adopted_hash)


class GroupView(Struct, frozen=True, eq=False):
    """One desired PodCliqueScalingGroup of a replica, with its live object."""

    id: ResourceId
    group: Group
    live: Live | None
    replicas: int
    """The desired number of replicas of the group (`desired_replicas`), as far as the limits allow."""
    wanted: int
    """The number that it asks for."""

    @property
    def name(self) -> str:
        """The name of the PodCliqueScalingGroup."""
        return self.id.name

    @property
    def terminating(self) -> bool:
        """Whether it is being deleted."""
        return _is_terminating(self.live)

    def is_beyond_limits(self, index: int) -> bool:
        """Whether it asks for the replica of this index but, because of a limit, does not have it."""
        return self.replicas <= index < self.wanted and not self.terminating

    @property
    def in_base_gang(self) -> int:
        """How many of its replicas are in the base gang: with those beyond a smaller size it would wait for pods that never come."""
        return min(self.group.min_available, self.replicas)


def _is_terminating(live: Live | None) -> bool:
    return live is not None and live.deleting_since is not None


class Removals(Struct, frozen=True, eq=False):
    """The pods and cliques of a replica to delete because of an update or a gang termination."""

    pods: Mapping[str, Because] = field(default_factory=dict)
    """Pod name -> why."""
    cliques: Mapping[str, Because] = field(default_factory=dict)
    """PodClique name -> why."""
    updating: bool = False
    """Whether this is the replica that the rolling update replaces now."""
    postponed_because: str = ""
    """Why outdated pods that remain are not replaced now."""
    postponed_by: Reason | None = None
    """The same as one word; None if there is no word for it."""
    deleted_last: frozenset[str] = frozenset()
    """Cliques that are deleted after all others with the same reason: after a crash their status is the only evidence of the breach."""
    recycled: bool = False
    """Whether the whole replica is deleted because it was below minAvailable for too long."""


NO_REMOVALS = Removals()


class GangView(Struct, frozen=True, eq=False):
    """One desired PodGang of a replica."""

    id: ResourceId
    is_base: bool
    groups: tuple[tuple[str, int, CliqueView | None], ...]
    """Each pod group: its name, its minimum of pods, and its clique, which is None if the replica has no such clique now."""
    live: Live | None

    @property
    def cliques(self) -> Iterator[CliqueView]:
        """The cliques of its pod groups."""
        return (clique for _, _, clique in self.groups if clique is not None)


class View(Struct, frozen=True, eq=False):
    """One replica of a set."""

    template: Template
    index: int
    lives: Slice
    """The live objects of the replica."""
    configuration: Configuration
    groups: tuple[GroupView, ...]
    cliques: tuple[CliqueView, ...]
    gangs: tuple[GangView, ...]
    removals: Removals = NO_REMOVALS
    has_token: bool = True
    """Whether the token Secret with which waiting pods watch other pods exists."""
    domains: Mapping[tuple[ResourceId, bool], Domain] = field(default_factory=dict)
    """The fabric domains that pods of the replica request, by id and by whether they are shared."""
    gang_blockers: GangBlockers = NO_BLOCKERS
    """Why the scheduler's objects for the gangs cannot be created now."""
    unanswered: frozenset[str] = frozenset()
    """The PodGangs of which the scheduler has said nothing for too long (`GangObjects.unanswered_since`)."""
    failed_calls: tuple[FailedCall, ...] = ()
    """The calls for its objects that failed when they were last made."""
    holds: Mapping[str, str] = field(default_factory=dict)
    """Clique of the template -> why its pods must not be created yet."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Clique of the template -> why the API server refuses its pods, where it was asked before they are created."""
    stalled: Mapping[str, datetime] = field(default_factory=dict)
    """PodClique or PodCliqueScalingGroup -> since when its update has made no progress, where its deadline has passed."""

    @property
    def root(self) -> str:
        """The set's name."""
        return self.template.id.name

    @property
    def namespace(self) -> str:
        """The namespace of the set and all its objects."""
        return self.template.id.namespace

    @property
    def owner(self) -> Owner:
        """The set as an owner."""
        return Owner(self.template.id, kinds.PODCLIQUESET.api_version)

    def keeps(self, clique: CliqueView) -> bool:
        """Whether the clique should exist: it is neither being deleted nor among the removals."""
        return not clique.terminating and clique.name not in self.removals.cliques

    def domain_keys(self, clique: CliqueView) -> Iterator[tuple[ResourceId, bool]]:
        """The keys of the domains in `domains` that the pods of a clique join, each once."""
        group_replica = clique.group_replica if clique.group is not None else None
        keys = (
            (fabric.kind.id(self.namespace, name_in(request, self.index, group_replica)), request.shared)
            for fabric, request in self.template.domain_requests
            if clique.clique.name in request.cliques
        )
        return iter(dict.fromkeys(keys))

    def domains_of(self, clique: CliqueView) -> Iterator[Domain]:
        """The domains that the pods of a clique join, each once."""
        return (self.domains[key] for key in self.domain_keys(clique) if key in self.domains)

    def cliques_in(self, domain: Domain) -> Iterator[CliqueView]:
        """The cliques of the replica whose pods join a domain that it requests."""
        key = domain.id, domain.request.shared
        return (clique for clique in self.cliques if clique.clique.name in domain.request.cliques and key in self.domain_keys(clique))

    def group_of(self, live: Live) -> GroupView | None:
        """The scaling group that the labels of an object name; None if the replica has none of that name."""
        name = live.labels.get(labels.SCALING_GROUP)
        return next((group for group in self.groups if group.name == name), None)

    def is_beyond_limits(self, live: Live) -> bool:
        """Whether an object belongs to a replica that its scaling group asks for but, because of a limit, does not have."""
        group, index = self.group_of(live), group_replica(live)
        return group is not None and index is not None and group.is_beyond_limits(index)

    def is_scaled_in(self, live: Live) -> bool:
        """Whether an object belongs to a replica of a scaling group beyond those that the group has."""
        group, index = self.group_of(live), group_replica(live)
        return group is not None and index is not None and index >= group.replicas

    def members(self, group: GroupView, replica: int) -> Iterator[CliqueView]:
        """The cliques of one replica of a scaling group."""
        return (clique for clique in self.cliques if clique.group is group and clique.group_replica == replica)

    def members_by_replica(self, group: GroupView) -> list[tuple[CliqueView, ...]]:
        """The cliques of each replica of a scaling group, by index; in time that grows with the cliques alone."""
        members: list[list[CliqueView]] = [[] for _ in range(group.replicas)]
        for clique in self.cliques:
            if clique.group is group and clique.group_replica < group.replicas:
                members[clique.group_replica].append(clique)
        return [tuple(cliques) for cliques in members]


def group_replica(live: Live) -> int | None:
    """The index of the replica of a scaling group that an object belongs to; None without such a label."""
    index = live.labels.get(labels.GROUP_REPLICA_INDEX, "")
    return int(index) if index.isascii() and index.isdigit() else None


def view_of(
    template: Template,
    index: int,
    lives: Slice,
    taken: Collection[str],
    configuration: Configuration,
    limit: GrowthLimit | None = None,
    before: View | None = None,
) -> View:
    """The replica with this index, desired and observed. `taken` are pod names that foreign objects use.

    `limit`: how far its objects may grow; None: as far as the limits of the configuration allow it for one object. `before`: what it was
    when it was last observed, which has the facts of the pods that have not changed.
    """
    limit = limit or growth_limit_of(configuration.limits.of_set)
    builder = _ViewBuilder(template, index, lives, taken, _pods_by_clique(lives, before.cliques if before is not None else ()), limit)
    groups = tuple(builder.group(group) for group in template.groups)
    standalone = [builder.standalone(clique) for clique in template.standalone]
    members = [builder.member(group, j, clique) for group in groups for j in range(group.replicas) for clique in group.group.cliques]
    cliques = (*standalone, *members)
    return View(template, index, lives, configuration, groups, cliques, tuple(builder.gangs(groups, cliques)))


def _pods_by_clique(lives: Slice, before: Iterable[CliqueView]) -> dict[str, list[PodFacts]]:
    """The live pods by the uid of the PodClique that controls them. The facts of those that have not changed are those from `before`."""
    known = {pod.live: pod for clique in before for pod in clique.pods}
    pods: dict[str, list[PodFacts]] = {}
    for live in lives.of("Pod"):
        owner = live.controller
        if owner is not None:
            pods.setdefault(owner.uid, []).append(known.get(live) or facts_of(live))
    return pods


class _ViewBuilder(Struct, frozen=True, eq=False):
    """Builds the views of one replica's groups, cliques and gangs."""

    template: Template
    index: int
    lives: Slice
    taken: Collection[str]
    pods: Mapping[str, list[PodFacts]]
    limit: GrowthLimit

    def group(self, group: Group) -> GroupView:
        id = kinds.SCALING_GROUP.id(self.template.id.namespace, names.scaling_group(self.template.id.name, self.index, group.name))
        live = self.lives.objects.get(id)
        wanted = desired_replicas(live, group.replicas)
        return GroupView(id, group, live, self.limit.of_group(wanted, group, id.name, self.lives), wanted)

    def standalone(self, clique: Clique) -> CliqueView:
        name = names.podclique(self.template.id.name, self.index, clique.name)
        owner = Owner(self.template.id, kinds.PODCLIQUESET.api_version)
        return self._clique(name, clique, owner, self._base_gang, "", None, 0)

    def member(self, group: GroupView, replica: int, clique: Clique) -> CliqueView:
        name = names.member(group.name, replica, clique.name)
        owner = Owner(group.id, kinds.SCALING_GROUP.api_version)
        minimum = group.group.min_available
        in_base = replica < minimum
        gang = self._base_gang if in_base else names.scaled_gang(group.name, replica, minimum)
        return self._clique(name, clique, owner, gang, "" if in_base else self._base_gang, group, replica)

    @property
    def _base_gang(self) -> str:
        return names.base_gang(self.template.id.name, self.index)

    def _clique(
        self, name: str, clique: Clique, owner: Owner, gang: str, base_gang: str, group: GroupView | None, replica: int
    ) -> CliqueView:
        id = kinds.PODCLIQUE.id(self.template.id.namespace, name)
        live = self.lives.objects.get(id)
        pods = tuple(self.pods.get(live.uid, ())) if live else ()
        podgang = self.lives.objects.get(kinds.PODGANG.id(id.namespace, gang))
        replicas = self.limit.of_clique(desired_replicas(live, clique.replicas), live, len(pods), podgang, clique.replicas)
        assignment = assign_pods(name, self.template.identity, replicas, clique.hash, pods, self.taken, is_member=group is not None)
        requests = self.template.domain_requests
        is_member = group is not None
        adopted = live is not None and (
            has_lost_hash(live, clique, (pod.hash for pod in pods)) or is_adopted(live, clique, is_member=is_member, requests=requests)
        )
        adopted_hash = live.labels.get(labels.TEMPLATE_HASH, "") if live is not None and adopted else ""
        outdated = tuple(pod for pod in assignment.kept if not _is_current(pod, clique, group, adopted_hash))
        return CliqueView(
            id=id,
            clique=clique,
            owner=owner,
            gang=gang,
            base_gang=base_gang,
            group=group,
            group_replica=replica,
            live=live,
            replicas=replicas,
            pods=pods,
            ready=sum([pod.ready for pod in pods]),
            scheduled=sum([pod.scheduled for pod in pods]),
            completed=sum([pod.completed for pod in pods]),
            assignment=assignment,
            on_delete=self.template.on_delete,
            adopted=adopted,
            outdated_pods=outdated,
        )

    def gangs(self, groups: tuple[GroupView, ...], cliques: tuple[CliqueView, ...]) -> Iterator[GangView]:
        """The base gang, then one gang for each replica of a scaling group beyond its minimum."""
        by_name = {clique.name: clique for clique in cliques}
        base = [(names.podclique(self.template.id.name, self.index, clique.name), clique) for clique in self.template.standalone]
        base += [_member(group, j, clique) for group in groups for j in range(group.in_base_gang) for clique in group.group.cliques]
        if not base:  # Schedulers do not take an empty gang.
            base = [
                _member(group, j, clique) for group in groups for j in range(group.group.min_available) for clique in group.group.cliques
            ]
        yield self._gang(self._base_gang, True, base, by_name)
        for group in groups:
            for j in range(group.group.min_available, group.replicas):
                name = names.scaled_gang(group.name, j, group.group.min_available)
                yield self._gang(name, False, [_member(group, j, clique) for clique in group.group.cliques], by_name)

    def _gang(self, name: str, is_base: bool, members: list[tuple[str, Clique]], by_name: Mapping[str, CliqueView]) -> GangView:
        id = kinds.PODGANG.id(self.template.id.namespace, name)
        groups = tuple((member, clique.min_available, by_name.get(member)) for member, clique in members)
        return GangView(id, is_base, groups, self.lives.objects.get(id))


def _member(group: GroupView, replica: int, clique: Clique) -> tuple[str, Clique]:
    """The name of the PodClique in one replica of a group, with its clique."""
    return names.member(group.name, replica, clique.name), clique


def is_scheduled(gang: GangView) -> bool:
    """Whether every pod group of the gang has its minimum of scheduled pods."""
    return all(clique is not None and clique.scheduled >= minimum for _, minimum, clique in gang.groups)


def part_key(root: ResourceId, id: ResourceId) -> str:
    """The key of the part that an object of the set belongs to: `ROOT`, `SET`, or the index of its replica, e.g. `"0"`."""
    if id == root:
        return ROOT
    index = names.replica_of(root, id)
    return SET if index is None else str(index)
