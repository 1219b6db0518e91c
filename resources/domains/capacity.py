"""Node capacity: which sets need more nodes than the cluster has, for fabrics whose nodes take one pod of a domain each."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec import Struct, field

from engine.ids import ResourceId
from engine.paths import get
from engine.resource import Body
from resources.base.fields import mapping, mappings
from resources.domains import requests
from resources.domains.requests import RequestedDomain
from resources.model.domain_requests import domain_requests_of
from resources.ports.fabric import Fabric

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
    for request in domain_requests_of(fabric, root.name, body):
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
