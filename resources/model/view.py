"""View: one replica of a set, everything in it that its parts may look at, and nothing else."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.diff import covers
from engine.errors import GraphError
from engine.failure import FailedCall
from engine.ids import Owner, ResourceId
from engine.observed import Live, Slice
from engine.paths import get
from resources.base import kinds, labels, names
from resources.model import environment
from resources.model.domain import Domain
from resources.model.pod_assignment import PodAssignment, assign_pods
from resources.model.pod_facts import PodFacts, facts_of
from resources.model.template import HASH_VERSION, Clique, Group, Template
from resources.ports.configuration import Configuration


@dataclass(frozen=True, slots=True, eq=False)
class CliqueView:
    """One PodClique that a replica should have."""

    id: ResourceId
    clique: Clique
    owner: Owner
    gang: str
    base_gang: str
    """The gang that must be scheduled before this one's; empty in the base gang itself."""
    group: "GroupView | None"
    group_replica: int
    live: Live | None
    replicas: int
    pods: tuple[PodFacts, ...]
    assignment: PodAssignment
    on_delete: bool
    """Whether nothing is replaced unless somebody deletes it."""
    adopted: bool
    """Whether it bears the hash of another operator for what is the template of today: it is re-labelled, its pods first."""

    @property
    def name(self) -> str:
        """Its full name."""
        return self.id.name

    @property
    def going(self) -> bool:
        """Whether somebody has deleted it, or the group that it is in."""
        return _is_going(self.live) or (self.group is not None and self.group.going)

    @property
    def told_hash(self) -> str:
        """The hash that the live object bears."""
        return self.live.labels.get(labels.TEMPLATE_HASH, "") if self.live is not None else ""

    @property
    def hash(self) -> str:
        """The hash of the template that the live object was made from or, before there is one, of the template of today."""
        return self.clique.hash if self.live is None or self.adopted else self.told_hash

    @property
    def outdated(self) -> bool:
        """Whether it is a member of a group and made from another template: it is replaced then, never edited."""
        return self.group is not None and not self.on_delete and self.hash != self.clique.hash

    def is_current(self, pod: PodFacts) -> bool:
        """Whether a pod was made from the template of today, under whoever's name for it."""
        return pod.hash == self.clique.hash or (self.adopted and pod.hash == self.told_hash)


@dataclass(frozen=True, slots=True, eq=False)
class GroupView:
    """One PodCliqueScalingGroup that a replica should have."""

    id: ResourceId
    group: Group
    live: Live | None
    replicas: int

    @property
    def name(self) -> str:
        """Its full name."""
        return self.id.name

    @property
    def going(self) -> bool:
        """Whether somebody has deleted it."""
        return _is_going(self.live)


def _is_going(live: Live | None) -> bool:
    return live is not None and live.deleting_since is not None


@dataclass(frozen=True, slots=True, eq=False)
class Removals:
    """What has been decided about a replica beyond what its template says: which pods and which whole cliques must go, and why."""

    pods: Mapping[str, str] = field(default_factory=dict)
    cliques: Mapping[str, str] = field(default_factory=dict)
    updating: bool = False
    """Whether it is this replica's turn to follow an edit."""
    patience: str = ""
    """Why what is still of an old template is not replaced now."""
    deleted_last: frozenset[str] = frozenset()
    """Cliques that go after all others that go for the same reason: they are the evidence."""
    recycled: bool = False
    """Whether the whole gang goes because it was without its minimum for too long."""


NO_REMOVALS = Removals()


@dataclass(frozen=True, slots=True, eq=False)
class GangView:
    """One PodGang that a replica should have: its pod groups by name, each with its minimum and, if it exists, its clique."""

    id: ResourceId
    is_base: bool
    groups: tuple[tuple[str, int, CliqueView | None], ...]
    live: Live | None

    @property
    def cliques(self) -> Iterator[CliqueView]:
        """The cliques behind its pod groups."""
        return (clique for _, _, clique in self.groups if clique is not None)


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """One replica of a set."""

    template: Template
    index: int
    lives: Slice
    configuration: Configuration
    groups: tuple[GroupView, ...]
    cliques: tuple[CliqueView, ...]
    gangs: tuple[GangView, ...]
    moves: Removals = NO_REMOVALS
    has_token: bool = True
    """Whether the token is there with which pods see others start."""
    domains: tuple[Domain, ...] = ()
    """The fabric domains that pods of the replica are to be in."""
    failed_calls: tuple[FailedCall, ...] | None = None
    """What failed in the replica when it was last tried; None where nobody remembers having tried anything."""

    @property
    def root(self) -> str:
        """The set's name."""
        return self.template.id.name

    @property
    def namespace(self) -> str:
        """Where everything lives."""
        return self.template.id.namespace

    @property
    def owner(self) -> Owner:
        """The set as an owner."""
        return Owner(self.template.id, kinds.PODCLIQUESET.api_version)

    def stays(self, clique: CliqueView) -> bool:
        """Whether the clique is to be there: nobody has deleted it, and nothing has been decided against it."""
        return not clique.going and clique.name not in self.moves.cliques

    def members(self, group: GroupView, replica: int) -> Iterator[CliqueView]:
        """The cliques of one replica of a scaling group."""
        return (clique for clique in self.cliques if clique.group is group and clique.group_replica == replica)


def view(template: Template, index: int, lives: Slice, taken: Collection[str], configuration: Configuration) -> View:
    """The replica as asked for and as seen. `taken` are names of pods that foreign hold."""
    looking = _Looking(template, index, lives, taken, _pods_by_clique(lives))
    groups = tuple(looking.group(group) for group in template.groups)
    standalone = [looking.standalone(clique) for clique in template.standalone]
    members = [looking.member(group, j, clique) for group in groups for j in range(group.replicas) for clique in group.group.cliques]
    cliques = (*standalone, *members)
    return View(template, index, lives, configuration, groups, cliques, tuple(looking.gangs(groups, cliques)))


def _pods_by_clique(lives: Slice) -> dict[str, list[PodFacts]]:
    found: dict[str, list[PodFacts]] = {}
    for live in lives.of("Pod"):
        owner = live.controller
        if owner is not None:
            found.setdefault(owner.uid, []).append(facts_of(live))
    return found


@dataclass(frozen=True, slots=True, eq=False)
class _Looking:
    """What every look at one replica needs."""

    template: Template
    index: int
    lives: Slice
    taken: Collection[str]
    pods: Mapping[str, list[PodFacts]]

    def group(self, group: Group) -> GroupView:
        id = kinds.SCALING_GROUP.id(self.template.id.namespace, names.scaling_group(self.template.id.name, self.index, group.name))
        live = self.lives.objects.get(id)
        return GroupView(id, group, live, followed(live, group.replicas))

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
        replicas = followed(live, clique.replicas)
        assignment = assign_pods(name, self.template.identity, replicas, clique.hash, pods, self.taken)
        adopted = live is not None and _is_adopted(live, template_spec(clique, group.group if group else None))
        return CliqueView(
            id, clique, owner, gang, base_gang, group, replica, live, replicas, pods, assignment, self.template.on_delete, adopted
        )

    def gangs(self, groups: tuple[GroupView, ...], cliques: tuple[CliqueView, ...]) -> Iterator[GangView]:
        """The base gang, then one gang for every replica of a scaling group beyond its minimum."""
        by_name = {clique.name: clique for clique in cliques}
        base = [(names.podclique(self.template.id.name, self.index, clique.name), clique) for clique in self.template.standalone]
        base += [_member(group, j, clique) for group in groups for j in range(group.group.min_available) for clique in group.group.cliques]
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
    return names.member(group.name, replica, clique.name), clique


def template_spec(clique: Clique, group: Group | None) -> dict[str, Any]:
    """The template's pod spec as a PodClique has it: in a scaling group with the group's variables in front."""
    return environment.in_front(clique.pod_spec, environment.of_group(group.pods)) if group else dict(clique.pod_spec)


def _is_adopted(live: Live, wanted: Mapping[str, Any]) -> bool:
    """Whether it bears a hash that is not ours although its pod spec is what is asked for: bodies decide, not names."""
    told = live.labels.get(labels.TEMPLATE_HASH, "")
    if not told or told.startswith(f"{HASH_VERSION}-"):
        return False
    return covers(wanted, get(live.body, ("spec", "podSpec"), {}))


MAX_REPLICAS = 100_000
"""More than these, of anything, is taken for a slip of the hand."""


def followed(live: Live | None, seed: int) -> int:
    """How many replicas: the template's number is a seed; once the object exists, its own number is followed (HPA, `kubectl scale`).

    Raises `GraphError` for a number that nobody can mean.
    """
    count = get(live.body, ("spec", "replicas"), seed) if live is not None and live.deleting_since is None else seed
    if not isinstance(count, int) or count > MAX_REPLICAS:
        raise GraphError(f"{live.id if live else 'the template'}: {count} replicas are more than {MAX_REPLICAS}")
    return count


def is_scheduled(gang: GangView) -> bool:
    """Whether every pod group of the gang has its minimum of scheduled pods."""
    return all(clique is not None and sum(pod.scheduled for pod in clique.pods) >= minimum for _, minimum, clique in gang.groups)
