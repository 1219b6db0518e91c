"""Node capacity: which sets need more nodes than the cluster has, or than one of its islands, where a node takes one pod of a domain."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec import Struct, field

from engine.ids import ResourceId
from engine.paths import get
from engine.report.printable import some
from engine.resource import Body
from resources.base.fields import annotations_of, mapping, mappings
from resources.base.labels import DOMAIN_PLACEMENT
from resources.domains import requests
from resources.domains.requests import RequestedDomain
from resources.model.domain import DomainPlacement, domain_requests_of, placement_of, specified_in
from resources.ports.fabric import Fabric, Islands

HOSTNAME = "kubernetes.io/hostname"


class NodeCapacity(Struct, frozen=True):
    """The nodes that can run a pod of a domain, and those that already run one. A node can run one such pod."""

    nodes: frozenset[str]
    """The names of the nodes that can run a pod of a domain."""
    taken: Mapping[str, str] = field(default_factory=dict)
    """Name of a node -> the uid of the domain whose pod it runs."""
    islands: Mapping[str, str] | None = None
    """Name of a node -> the island that it is in, e.g. an NVLink clique; None if the nodes are not known."""

    def available_to(self, uids: Collection[str]) -> int:
        """The number of nodes that the domains with these uids can use: free nodes, and those that they already use."""
        return sum(self.taken.get(node) is None or self.taken[node] in uids for node in self.nodes)

    def used_by(self, uids: Collection[str]) -> int:
        """The number of nodes that the domains with these uids use."""
        return sum(self.taken.get(node) in uids for node in self.nodes)


def capacity_notes(
    fabric: Fabric,
    sets: Sequence[tuple[ResourceId, Body]],
    capacity: NodeCapacity | None,
    uids: Mapping[ResourceId, str],
    scaling_groups: Mapping[ResourceId, int] = requests.NO_GROUPS,
) -> Mapping[ResourceId, str]:
    """Set -> one reason why some of its pods cannot get a node; sets without a problem are not included.

    `uids` maps the domains that exist to their uids, `scaling_groups` the PodCliqueScalingGroups that exist to their replicas.
    Without a capacity only pods that must share a node are reported.
    """
    requested = requests.requested_by_sets(sets, fabric, scaling_groups)
    demand = _demand(requested)
    notes = {root: note for root, body in sets if demand.get(root) and (note := next(_pods_on_one_node(fabric, root, body), ""))}
    if capacity is None:
        return notes
    total, own = sum(demand.values()), _existing(requested, uids)
    for root, pods in demand.items():
        if root in notes:
            continue
        available = capacity.available_to(own[root])
        if pods > available:
            notes[root] = f"{_need(fabric, pods)}: {available} of {len(capacity.nodes)} are available"
        elif total > len(capacity.nodes) and capacity.used_by(own[root]) < pods:
            notes[root] = f"{_need(fabric, pods)}: all workloads together need {total}, the cluster has {len(capacity.nodes)}"
    return notes


def _need(fabric: Fabric, pods: int) -> str:
    return f"its pods in {fabric.kind.name}s need {pods} node{'s' if pods > 1 else ''}, one for each pod"


def _demand(requested: Sequence[RequestedDomain]) -> Mapping[ResourceId, int]:
    """Set -> the number of its pods in domains; sets without such pods are not included."""
    counts: Counter[ResourceId] = Counter()
    for domain in requested:
        counts[domain.root] += domain.pods
    return {root: pods for root, pods in counts.items() if pods}


def _existing(requested: Sequence[RequestedDomain], uids: Mapping[ResourceId, str]) -> Mapping[ResourceId, frozenset[str]]:
    """Set -> the uids of those of its domains that exist."""
    existing: dict[ResourceId, set[str]] = {}
    for domain in requested:
        existing.setdefault(domain.root, set()).update({uids[domain.id]} if domain.id in uids else ())
    return {root: frozenset(listed) for root, listed in existing.items()}


def _pods_on_one_node(fabric: Fabric, root: ResourceId, body: Body) -> Iterator[str]:
    """A note for each clique with several pods in a domain that the template requires to run on one node."""
    cliques = requests.cliques_by_name(body)
    for request in domain_requests_of(fabric, root.name, specified_in(body)):
        for name in sorted(request.cliques & cliques.keys()):
            pods = requests.pods_per_replica(body, (name,)) * requests.replicas(body)
            if pods > 1 and (node := _required_node(cliques[name])):
                yield f"{pods} pods of clique {name} must run on {node}, and a node takes one pod in a {fabric.kind.name}"


def _required_node(clique: Body) -> str:
    """The node on which all pods of a clique must run, in words for a message; empty if they may run on several nodes.

    A node selector or an affinity of the pods to one another can require it.
    """
    spec = mapping(get(clique, ("spec", "podSpec"), {}))
    node = mapping(spec.get("nodeSelector")).get(HOSTNAME)
    if isinstance(node, str):
        return f"node {node}"
    own = mapping(clique.get("labels"))
    for term in mappings(get(spec, ("affinity", "podAffinity", "requiredDuringSchedulingIgnoredDuringExecution"), ())):
        selected = mapping(get(term, ("labelSelector", "matchLabels"), {}))
        if term.get("topologyKey") == HOSTNAME and selected and all(own.get(key) == value for key, value in selected.items()):
            return "the same node"
    return ""


class Demand(Struct):
    """What one domain needs, summed over all sets that request it."""

    id: ResourceId
    pods: int = 0
    roots: dict[ResourceId, None] = field(default_factory=dict)
    """The sets that request it."""


def island_notes(
    fabric: Fabric,
    sets: Sequence[tuple[ResourceId, Body]],
    capacity: NodeCapacity | None,
    uids: Mapping[ResourceId, str],
    scaling_groups: Mapping[ResourceId, int] = requests.NO_GROUPS,
) -> Mapping[ResourceId, tuple[str, ...]]:
    """Set -> why pods of its domains cannot be in one island; sets without a problem are not included.

    `uids` maps the domains that exist to their uids. Without a capacity, or without known islands, only the fabric's own limit counts.
    """
    islands = fabric.islands
    if islands is None:
        return {}
    demands = [demand for demand in _demands(requests.requested_by_sets(sets, fabric, scaling_groups)) if demand.pods > 1]
    placements = {root: placement_of(annotations_of(body)) for root, body in sets}
    domains_by_fault: dict[tuple[ResourceId, str], list[ResourceId]] = {}
    for demand, fault in _faults(islands, demands, capacity, uids):
        for root in demand.roots:
            domains_by_fault.setdefault((root, f"{fault}; {_consequence(fabric.link, placements[root])}"), []).append(demand.id)
    notes: dict[ResourceId, list[str]] = {}
    for (root, fault), ids in domains_by_fault.items():
        notes.setdefault(root, []).append(f"{_subject(ids)} {fault}")
    for root in _unplaceable(demands, capacity, placements):
        notes.setdefault(root, []).append(
            f"no node has the label {islands.label}: with {DOMAIN_PLACEMENT}: {DomainPlacement.REQUIRED} its pods stay Pending"
        )
    return {root: tuple(listed) for root, listed in notes.items()}


def islands_of(islands: Islands, nodes: Mapping[str, Mapping[str, str]]) -> Mapping[str, str]:
    """Name of a node -> the island that its label names. Nodes without one are not included. `nodes`: name -> labels."""
    return {name: island for name, labels in nodes.items() if (island := labels.get(islands.label))}


def _demands(requested: Sequence[requests.RequestedDomain]) -> list[Demand]:
    """The domains, those with the most pods first."""
    demands: dict[ResourceId, Demand] = {}
    for domain in requested:
        demand = demands.setdefault(domain.id, Demand(domain.id))
        demand.pods += domain.pods
        demand.roots[domain.root] = None
    return sorted(demands.values(), key=lambda demand: (-demand.pods, demand.id))


def _faults(
    islands: Islands, demands: Sequence[Demand], capacity: NodeCapacity | None, uids: Mapping[ResourceId, str]
) -> Iterator[tuple[Demand, str]]:
    """The domains that do not fit into one island, each with the reason as a predicate."""
    island_of = capacity.islands if capacity is not None and capacity.islands else {}
    sizes = Counter(island_of[node] for node in capacity.nodes if node in island_of) if capacity is not None else Counter()
    largest = min(islands.max_nodes, max(sizes.values(), default=islands.max_nodes))
    small = []
    for demand in demands:
        if demand.pods <= largest:
            small.append(demand)
        elif largest == islands.max_nodes:
            yield demand, f"{_island_need(islands, demand)}, and a domain can have at most {largest} of one"
        else:
            yield demand, f"{_island_need(islands, demand)}, and the largest has {largest}"
    if capacity is not None and sizes:
        yield from _without_room(islands, small, capacity, island_of, uids)


def _without_room(
    islands: Islands, demands: Sequence[Demand], capacity: NodeCapacity, island_of: Mapping[str, str], uids: Mapping[ResourceId, str]
) -> Iterator[tuple[Demand, str]]:
    """The domains for which no island has enough free nodes, if each of the others takes the smallest island that suffices.

    Domains whose nodes are in several islands already are left out: their status reports that.
    """
    nodes = [node for node in sorted(capacity.nodes) if node in island_of]
    free = Counter(island_of[node] for node in nodes if node not in capacity.taken)
    most = max(free.values(), default=0)
    used: dict[str, Counter[str]] = {}
    for node in nodes:
        if node in capacity.taken:
            used.setdefault(capacity.taken[node], Counter())[island_of[node]] += 1
    for demand in demands:
        own = used.get(uids.get(demand.id, ""), Counter[str]())
        if len(own) > 1:
            continue
        candidates = {island: free[island] + own[island] for island in own or free}
        suitable = [island for island, count in candidates.items() if count >= demand.pods]
        if suitable:
            island = min(suitable, key=lambda name: (candidates[name], name))
            free[island] -= max(0, demand.pods - own[island])
            continue
        available = max(candidates.values(), default=0)
        if own:
            yield demand, f"{_island_need(islands, demand)}: at most {available} of the one that it is in are free or its own"
        elif available < most >= demand.pods:
            yield demand, f"{_island_need(islands, demand)}: at most {available} are free in one when the larger domains have theirs"
        else:
            yield demand, f"{_island_need(islands, demand)}: at most {available} are free in one"


def _unplaceable(
    demands: Sequence[Demand], capacity: NodeCapacity | None, placements: Mapping[ResourceId, DomainPlacement | None]
) -> Iterator[ResourceId]:
    """The sets whose pods must be in an island, if no node is in one."""
    if capacity is not None and capacity.islands is not None and not capacity.islands:
        roots = dict.fromkeys(root for demand in demands for root in demand.roots)
        yield from (root for root in roots if placements[root] is DomainPlacement.REQUIRED)


def _island_need(islands: Islands, demand: Demand) -> str:
    return f"needs {demand.pods} nodes of one {islands.noun}"


def _consequence(link: str, placement: DomainPlacement | None) -> str:
    if placement is DomainPlacement.REQUIRED:
        return "the pods that do not fit stay Pending"
    return f"its pods will not all reach one another over {link}"


def _subject(ids: Sequence[ResourceId]) -> str:
    kind = ids[0].kind
    return f"{kind} {ids[0].name}" if len(ids) == 1 else f"each of the {kind}s {some(id.name for id in ids)}"
