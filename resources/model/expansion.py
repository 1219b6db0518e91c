"""Expansion: the domain requests of one replica of a set, with the tokens in their names replaced by the indices of replicas."""

from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from resources.ports.fabric import GROUP_INDEX, INDEX, DomainRequest


def is_per_group_replica(request: DomainRequest) -> bool:
    """Whether each replica of a scaling group has its own domain (N27)."""
    return GROUP_INDEX in request.name


def name_in(request: DomainRequest, index: int, group_replica: int | None) -> str:
    """The name of the domain for a replica of the set and one of a scaling group.

    `group_replica` is None for cliques outside scaling groups: then `GROUP_INDEX` stays, and no domain has such a name.
    """
    name = request.name.replace(INDEX, str(index))
    return name if group_replica is None else name.replace(GROUP_INDEX, str(group_replica))


def expanded(request: DomainRequest, index: int, group_replicas: Mapping[str, int]) -> Iterator[DomainRequest]:
    """The requests of the replica `index` that one request stands for, by the index of the scaling group's replica.

    `group_replicas`: clique -> the replicas of its scaling group in this replica of the set; cliques outside groups are not included.
    """
    if not is_per_group_replica(request):
        yield replace(request, name=name_in(request, index, None))
        return
    counts = {clique: group_replicas[clique] for clique in request.cliques if clique in group_replicas}
    for group_replica in range(max(counts.values(), default=0)):
        members = frozenset(clique for clique, count in counts.items() if count > group_replica)
        yield replace(request, name=name_in(request, index, group_replica), cliques=members)
