"""Requests: the domains that sets request, read from the sets alone, whether the domains exist or not."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from types import MappingProxyType
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from engine.ids import ResourceId
from engine.observed import Live, Observed
from engine.paths import get
from engine.resource import Body
from resources.base import kinds, names
from resources.base.fields import GROUPS, cliques_of, mappings, members_of
from resources.model.domain_requests import domain_requests_of, expanded, is_per_group_replica, name_in
from resources.model.view import MAX_REPLICAS
from resources.ports.fabric import INDEX, DomainRequest, Fabric

NO_GROUPS: Final[Mapping[ResourceId, int]] = MappingProxyType({})


class RequestedDomain(Struct, frozen=True):
    """A domain that a set requests."""

    root: ResourceId
    """The set."""
    id: ResourceId
    request: DomainRequest
    pods: int
    """The number of pods of the set that join it."""
    index: int | None = None
    """The index of the replica that requests it; None if all replicas of the set use the same domain."""


def requested_by_set(
    root: ResourceId, body: Body, fabric: Fabric, scaling_groups: Mapping[ResourceId, int] = NO_GROUPS
) -> Iterator[RequestedDomain]:
    """The domains that one set requests, each once, at most `MAX_REPLICAS`. Fields of the wrong shape count as absent or as 0.

    The set may lack its defaults: they are the same here as in `resources.admission.defaults`. `scaling_groups`: PodCliqueScalingGroup ->
    its replicas now (`scaled_groups`); one that is not included has those of the template.
    """
    copies = _Copies(root, replicas(body), group_of_clique(body), group_replicas(body), scaling_groups)
    cliques = cliques_by_name(body)
    requested: dict[ResourceId, RequestedDomain] = {}
    for request, name, index, members in islice(_expansions(domain_requests_of(fabric, root.name, body), copies), MAX_REPLICAS):
        id = fabric.kind.id(root.namespace, name)
        pods = sum(pods_of(cliques[clique]) * count for clique, count in members.items() if clique in cliques)
        domain = requested.get(id, RequestedDomain(root, id, request, 0, index))
        requested[id] = replace(domain, pods=domain.pods + pods)
    yield from requested.values()


class _Expansion(NamedTuple):
    """One domain of one request."""

    request: DomainRequest
    name: str
    replica: int | None
    """The index of the replica that requests it; None if all replicas use the same domain."""
    members: Mapping[str, int]
    """Clique -> how often its pods join."""


def _expansions(requests: Iterable[DomainRequest], copies: "_Copies") -> Iterator[_Expansion]:
    """The domains of these requests; two of them may have the same name."""
    for request in requests:
        if is_per_group_replica(request):
            indices = range(copies.replicas) if request.cliques & copies.template.keys() else ()
            for index in indices:
                for expansion in expanded(request, index, copies.of_replica(index)):
                    yield _Expansion(request, expansion.name, index if INDEX in request.name else None, dict.fromkeys(expansion.cliques, 1))
        elif INDEX in request.name:
            for index in range(copies.replicas):
                counts = copies.of_replica(index)
                members = {clique: counts.get(clique, 1) for clique in request.cliques}
                yield _Expansion(request, name_in(request, index, None), index, members)
        elif copies.replicas:
            members = {clique: copies.of_set.get(clique, copies.replicas) for clique in request.cliques}
            yield _Expansion(request, request.name, None, members)


@dataclass(frozen=True)
class _Copies:
    """How often the cliques in scaling groups exist in the replicas of a set."""

    root: ResourceId
    replicas: int
    group_of_clique: Mapping[str, str]
    template: Mapping[str, int]
    """Clique -> the replicas of its scaling group in the template."""
    scaling_groups: Mapping[ResourceId, int]

    def of_replica(self, index: int) -> Mapping[str, int]:
        """Clique -> the replicas of its scaling group in one replica of the set."""
        if not self.scaling_groups:
            return self.template
        return {clique: self.scaling_groups.get(self._group_id(index, clique), count) for clique, count in self.template.items()}

    @cached_property
    def of_set(self) -> Mapping[str, int]:
        """Clique -> the replicas of its scaling groups in all replicas of the set together."""
        if not self.scaling_groups:
            return {clique: count * self.replicas for clique, count in self.template.items()}
        totals: Counter[str] = Counter()
        for index in range(self.replicas):
            totals.update(self.of_replica(index))
        return totals

    def _group_id(self, index: int, clique: str) -> ResourceId:
        name = names.scaling_group(self.root.name, index, self.group_of_clique[clique])
        return kinds.SCALING_GROUP.id(self.root.namespace, name)


def scaled_groups(roots: Iterable[Observed]) -> Mapping[ResourceId, int]:
    """PodCliqueScalingGroup -> its number of replicas now, for those of these sets that are not being deleted."""
    lives = (live for observed in roots for part in observed.slices.values() for live in part.of(kinds.SCALING_GROUP.name))
    return replicas_of_groups(lives)


def replicas_of_groups(groups: Iterable[Live]) -> Mapping[ResourceId, int]:
    """PodCliqueScalingGroup -> its number of replicas now, for those that are not being deleted."""
    return {live.id: _count(get(live.body, ("spec", "replicas")), 1) for live in groups if live.deleting_since is None}


def requested_by_sets(
    sets: Iterable[tuple[ResourceId, Body]], fabric: Fabric, scaling_groups: Mapping[ResourceId, int] = NO_GROUPS
) -> tuple[RequestedDomain, ...]:
    """The domains that these sets request; one that several sets share occurs once for each set."""
    return tuple(requested for root, body in sets for requested in requested_by_set(root, body, fabric, scaling_groups))


def cliques_by_name(body: Body) -> Mapping[str, Body]:
    """Clique name -> its entry in the set's template."""
    return {entry["name"]: entry for entry in cliques_of(body) if isinstance(entry.get("name"), str)}


def group_replicas(body: Body) -> Mapping[str, int]:
    """Clique name -> the replicas of its scaling group in the template. Cliques without a group are not included."""
    return {clique: _count(group.get("replicas"), 1) for clique, group in _groups_by_clique(body).items()}


def group_of_clique(body: Body) -> Mapping[str, str]:
    """Clique name -> the name of its scaling group in the template. Cliques without a group are not included."""
    return {clique: str(group.get("name")) for clique, group in _groups_by_clique(body).items()}


def _groups_by_clique(body: Body) -> Mapping[str, Body]:
    groups: dict[str, Body] = {}
    for group in mappings(get(body, GROUPS, ())):
        groups |= dict.fromkeys(members_of(group), group)
    return groups


def replicas(body: Body) -> int:
    """The number of replicas of a set; by default 0."""
    return _count(get(body, ("spec", "replicas")), 0)


def pods_of(clique: Body) -> int:
    """The number of pods of one clique of the template; by default 1, and 0 counts as absent."""
    return _count(get(clique, ("spec", "replicas")) or None, 1)


def pods_per_replica(body: Body, names: Iterable[str]) -> int:
    """The number of pods that the cliques of these names have in one replica of the set, replicas of scaling groups included."""
    cliques, copies = cliques_by_name(body), group_replicas(body)
    return sum(pods_of(cliques[name]) * copies.get(name, 1) for name in names if name in cliques)


def _count(value: object, default: int) -> int:
    """A number of replicas: `default` if it is absent, 0 if it is negative or no integer, and at most `MAX_REPLICAS`."""
    if value is None:
        return default
    return min(max(value, 0), MAX_REPLICAS) if isinstance(value, int) and not isinstance(value, bool) else 0
