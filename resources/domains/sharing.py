"""Sharing: the domains that join several replicas or sets because they have the same name, in words for a preview (N28)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from engine.ids import ResourceId
from engine.resource import Body
from resources.base import kinds, names
from resources.domains.requests import NO_GROUPS, RequestedDomain, group_of_clique, group_replicas, replicas, requested_by_set
from resources.model.domain_requests import is_per_group_replica
from resources.ports.fabric import GROUP_INDEX, INDEX, DomainRequest, Fabric, IndexedNamesFabric

MAX_SETS = 3
"""The largest number of sets that one note names."""


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
            tokens = " or ".join(token for _, _, token in in_set) if isinstance(fabric, IndexedNamesFabric) and fabric.indexed_names else ""
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
