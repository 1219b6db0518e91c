"""Domain requests: the domains that a set requests from a fabric, read from the set alone.

Bodies need not have the shape of a set: fields of the wrong shape count as absent.
"""

from collections.abc import Iterable, Iterator, Mapping

from msgspec.structs import replace

from engine.paths import get
from engine.resource import Body
from resources.base.fields import GROUPS, annotations_of, cliques_of, mapping, mappings, members_of
from resources.ports.fabric import GROUP_INDEX, INDEX, DomainRequest, Fabric, InheritingFabric


def domain_requests_of(fabric: Fabric, root: str, body: Body) -> tuple[DomainRequest, ...]:
    """The domains that the set with the name `root` requests from a fabric."""
    cliques = {clique["name"]: clique for clique in cliques_with_inherited(fabric, body) if isinstance(clique.get("name"), str)}
    return fabric.domain_requests(root, _strings(annotations_of(body)), cliques)


def cliques_with_inherited(fabric: Fabric, body: Body) -> list[Body]:
    """The cliques of a set's template, in their order, with the annotations that they inherit for this fabric (N26)."""
    cliques = cliques_of(body)
    if not isinstance(fabric, InheritingFabric):
        return cliques
    of_set, of_groups = _chosen(annotations_of(body), fabric.inherited_annotations), _annotations_of_groups(body)
    if not of_set and not of_groups:
        return cliques
    return [_with_inherited(clique, of_set, _group_of(clique, of_groups), fabric.inherited_annotations) for clique in cliques]


def _with_inherited(clique: Body, of_set: Mapping[str, str], of_group: Mapping[str, str], keys: Iterable[str]) -> Body:
    """The clique with its own annotations, then those of its scaling group, then those of its set: the first that has a key counts."""
    inherited = {**of_set, **_chosen(of_group, keys)}
    return {**clique, "annotations": {**inherited, **mapping(clique.get("annotations"))}} if inherited else clique


def _annotations_of_groups(body: Body) -> Mapping[str, Mapping[str, str]]:
    """Clique name -> the annotations of its scaling group; cliques whose group has none are not included."""
    by_clique: dict[str, Mapping[str, str]] = {}
    for group in mappings(get(body, GROUPS, ())):
        if annotations := mapping(group.get("annotations")):
            by_clique |= dict.fromkeys(members_of(group), annotations)
    return by_clique


def _group_of(clique: Body, of_groups: Mapping[str, Mapping[str, str]]) -> Mapping[str, str]:
    name = clique.get("name")
    return of_groups.get(name, {}) if isinstance(name, str) else {}


def _chosen(annotations: Mapping[str, str], keys: Iterable[str]) -> dict[str, str]:
    return {key: annotations[key] for key in keys if key in annotations}


def _strings(annotations: Mapping[str, object]) -> Mapping[str, str]:
    return {key: value for key, value in annotations.items() if isinstance(value, str)}


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
