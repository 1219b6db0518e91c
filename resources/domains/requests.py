"""Requests: the domains that sets request, read from the sets alone; who shares them, and the slots of nodes they take."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from types import MappingProxyType
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from engine.ids import ResourceId
from engine.observed import Live, Observed, Slice
from engine.paths import get
from engine.resource import Body
from resources.base import kinds, names
from resources.base.fields import GROUPS, cliques_of, mapping, mappings, members_of
from resources.model.domain import domain_requests_of, expanded, is_per_group_replica, name_in, specified_in
from resources.model.sharing import Share
from resources.model.template import Clique, Template
from resources.model.view import MAX_REPLICAS
from resources.ports.configuration import Configuration
from resources.ports.fabric import GROUP_INDEX, INDEX, DomainRequest, Fabric, NodeSlots

NO_GROUPS: Final[Mapping[ResourceId, int]] = MappingProxyType({})
MAX_SETS = 3
"""The largest number of sets that one note names."""


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
    requests = domain_requests_of(fabric, root.name, specified_in(body))
    for request, name, index, members in islice(_expansions(requests, copies), MAX_REPLICAS):
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
    """The domains that these sets request and that pods join; one that several sets share occurs once for each set."""
    requested = (each for root, body in sets for each in requested_by_set(root, body, fabric, scaling_groups))
    return tuple(each for each in requested if each.request.cliques)


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


def slot_notes(template: Template, references: Slice, configuration: Configuration) -> Iterator[str]:
    """A note for each clique whose pods claim several slots of a node: for its domains, by its pod spec, and by `resourceSharing`.

    `references` are the observed ResourceClaims and ResourceClaimTemplates; those that are not observed count as claiming no slot.
    """
    for fabric in configuration.fabrics:
        if fabric.slots is not None:
            for clique, group in _cliques_with_groups(template):
                slots = _slots_of_pod(template, clique, group, fabric, fabric.slots, references.objects)
                if (total := sum(slots.values())) > 1:
                    claims = ", ".join(name for name, count in slots.items() if count)
                    yield (
                        f"pods of clique {clique.name} claim {total} slots for {fabric.kind.name}s ({claims}), "
                        "and a node has one: they can never be scheduled"
                    )


def _cliques_with_groups(template: Template) -> Iterator[tuple[Clique, str]]:
    """Each clique, with the name of its scaling group or an empty string."""
    yield from ((clique, "") for clique in template.standalone)
    yield from ((clique, group.name) for group in template.groups for clique in group.cliques)


def _slots_of_pod(
    template: Template,
    clique: Clique,
    group: str,
    fabric: Fabric,
    slots: NodeSlots,
    references: Mapping[ResourceId, Live],
) -> Mapping[str, int]:
    """Each claim of a pod of the clique, in words -> the number of slots that it claims. A claim that is listed twice counts once."""
    counts = {
        f"{fabric.kind.name} {request.name}": 1
        for requested_of, request in template.domain_requests
        if requested_of is fabric and clique.name in request.cliques
    }
    for entry in mappings(clique.pod_spec.get("resourceClaims")):
        source, spec = _source_of(entry, template.id.namespace, references)
        counts[source] = slots.claimed(spec)
    for share in _shares_of(template, clique, group):
        counts[f"resourceSharing {share.name}"] = slots.claimed(share.spec)
    return counts


def _source_of(entry: Body, namespace: str, references: Mapping[ResourceId, Live]) -> tuple[str, Body]:
    """A claim of a pod in words, and its spec; the spec is empty if it is not known. Each use of a template is a claim of its own."""
    existing, source = entry.get("resourceClaimName"), entry.get("resourceClaimTemplateName")
    if isinstance(existing, str):
        live = references.get(kinds.RESOURCE_CLAIM.id(namespace, existing))
        return f"ResourceClaim {existing}", mapping(live.body.get("spec")) if live is not None else {}
    live = references.get(kinds.RESOURCE_CLAIM_TEMPLATE.id(namespace, source)) if isinstance(source, str) else None
    return f"claim {entry.get('name')}", mapping(get(live.body, ("spec", "spec"), {})) if live is not None else {}


def _shares_of(template: Template, clique: Clique, group: str) -> Iterator[Share]:
    """The `resourceSharing` entries whose claims the pods of a clique use."""
    sharing = template.sharing
    shares = (*sharing.of_set, *sharing.of_groups.get(group, ()), *sharing.of_cliques.get(clique.name, ()))
    return (share for share in shares if share.is_used_by(clique.name, group))


class _Joined(NamedTuple):
    """Several replicas in one domain."""

    size: int
    whom: str
    token: str
    """The token that gives each of them its own domain."""


def sharing_notes(
    fabric: Fabric, sets: Sequence[tuple[ResourceId, Body]], scaling_groups: Mapping[ResourceId, int] = NO_GROUPS
) -> Mapping[ResourceId, tuple[str, ...]]:
    """Set -> a note for each name of a shared domain that several replicas or sets have; sets without such a name are not included.

    `scaling_groups` maps the PodCliqueScalingGroups that exist to their replicas.
    """
    requested = {root: _shared(requested_by_set(root, body, fabric, scaling_groups)) for root, body in sets}
    users: dict[ResourceId, list[str]] = {}
    for root in sorted(requested):
        for domain in requested[root]:
            users.setdefault(domain.id, []).append(root.name)
    notes = {root: tuple(_notes(fabric, root, body, requested[root], users, scaling_groups)) for root, body in sets if requested[root]}
    return {root: listed for root, listed in notes.items() if listed}


def _shared(domains: Iterable[RequestedDomain]) -> list[RequestedDomain]:
    return [domain for domain in domains if domain.request.shared]


def _notes(
    fabric: Fabric,
    root: ResourceId,
    body: Body,
    domains: Sequence[RequestedDomain],
    users: Mapping[ResourceId, Sequence[str]],
    scaling_groups: Mapping[ResourceId, int],
) -> Iterator[str]:
    by_request: dict[DomainRequest, list[RequestedDomain]] = {}
    for domain in domains:
        by_request.setdefault(domain.request, []).append(domain)
    for request, listed in by_request.items():
        # The domain that most sets share stands for the others of this name.
        all_users = max((users[domain.id] for domain in listed), key=len)
        in_set = [*_replicas_of_set(request, body), *_replicas_of_groups(request, root, body, scaling_groups)]
        if in_set or len(all_users) > 1:
            who = " and ".join([*(f"{size} {whom}" for size, whom, _ in in_set), *_other_sets(root.name, all_users)])
            tokens = " or ".join(token for _, _, token in in_set) if fabric.indexed_names else ""
            advice = f"; each has its own with {tokens} in the name" if tokens else ""
            yield f"{fabric.kind.name} {request.name} is shared by {who}{advice}"


def _replicas_of_set(request: DomainRequest, body: Body) -> Iterator[_Joined]:
    count = replicas(body)
    if INDEX not in request.name and count > 1:
        yield _Joined(count, "replicas of the set", INDEX)


def _replicas_of_groups(
    request: DomainRequest, root: ResourceId, body: Body, scaling_groups: Mapping[ResourceId, int]
) -> Iterator[_Joined]:
    """The scaling groups of which several replicas, in one replica of the set, are in one domain."""
    if is_per_group_replica(request):
        return
    groups, counts = group_of_clique(body), group_replicas(body)
    for group, clique in sorted({groups[clique]: clique for clique in request.cliques if clique in groups}.items()):
        ids = (kinds.SCALING_GROUP.id(root.namespace, names.scaling_group(root.name, index, group)) for index in range(replicas(body)))
        count = max((scaling_groups.get(id, counts[clique]) for id in ids), default=0) if scaling_groups else counts[clique]
        if count > 1:
            yield _Joined(count, f"replicas of the scaling group {group}", GROUP_INDEX)


def _other_sets(root: str, users: Sequence[str]) -> Iterator[str]:
    """The other sets in words; nothing if there are none."""
    others = [name for name in users[: MAX_SETS + 1] if name != root][:MAX_SETS]
    more = len(users) - 1 - len(others)
    if others:
        yield f"the set{'s' if len(users) > 2 else ''} {', '.join(others)}" + (f" and {more} more" if more else "")
