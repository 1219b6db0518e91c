"""Crowding: where a node has one place for pods of fabric domains, which sets ask for more places than there are."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from engine.ids import ResourceId
from engine.paths import get
from engine.resource import Body
from resources.admission.annotations import mapping, mappings
from resources.domains import requests
from resources.domains.requests import RequestedDomain
from resources.ports.fabric import Fabric

HOSTNAME = "kubernetes.io/hostname"


@dataclass(frozen=True, slots=True)
class NodeCapacity:
    """The places that there are, and who has them."""

    places: frozenset[str]
    """The nodes that have a place."""
    taken: Mapping[str, str] = field(default_factory=dict)
    """Node -> the uid of the domain that has its place."""

    def free_for(self, uids: Collection[str]) -> int:
        """How many places are left for these domains, those counted that they have already."""
        return sum(self.taken.get(node) is None or self.taken[node] in uids for node in self.places)

    def held_by(self, uids: Collection[str]) -> int:
        """How many places these domains have."""
        return sum(self.taken.get(node) in uids for node in self.places)


def capacity_notes(
    fabric: Fabric, sets: Sequence[tuple[ResourceId, Body]], room: NodeCapacity | None, uids: Mapping[ResourceId, str]
) -> Mapping[ResourceId, str]:
    """Set -> what is to be known about its places, one thing at most; nothing where there is room, or where nobody knows.

    `uids` are those of the domains that exist. Domains never share a node: that is a matter of how many nodes there are.
    """
    wanted = requests.planned_by(sets, fabric)
    demand = _demand(wanted)
    found = {root: told for root, body in sets if demand.get(root) and (told := next(_huddled(fabric, root, body), ""))}
    if room is None:
        return found
    total, own = sum(demand.values()), _own(wanted, uids)
    for root, pods in demand.items():
        free = room.free_for(own[root])
        if root in found:
            continue
        if pods > free:
            found[root] = f"{_need(fabric, pods)}: {free} of {len(room.places)} can be had"
        elif total > len(room.places) and room.held_by(own[root]) < pods:
            found[root] = f"{_need(fabric, pods)}: all workloads together need {total}, and there are {len(room.places)}"
    return found


def _need(fabric: Fabric, pods: int) -> str:
    return f"its pods in {fabric.kind.name}s need {pods} node{'s' if pods > 1 else ''}, each of which takes one such pod"


def _demand(wanted: Sequence[RequestedDomain]) -> Mapping[ResourceId, int]:
    found: Counter[ResourceId] = Counter()
    for one in wanted:
        found[one.root] += one.pods
    return {root: pods for root, pods in found.items() if pods}


def _own(wanted: Sequence[RequestedDomain], uids: Mapping[ResourceId, str]) -> Mapping[ResourceId, frozenset[str]]:
    found: dict[ResourceId, set[str]] = {}
    for one in wanted:
        found.setdefault(one.root, set()).update({uids[one.id]} if one.id in uids else ())
    return {root: frozenset(listed) for root, listed in found.items()}


def _huddled(fabric: Fabric, root: ResourceId, body: Body) -> Iterator[str]:
    """Cliques whose pods are to be on one node, whatever nodes there are."""
    cliques, copies = requests.members(body), requests.times(body)
    replicas = requests.replicas(body)
    for request in fabric.domain_requests(root.name, requests.annotations(body), cliques):
        for name in sorted(request.cliques & cliques.keys()):
            pods = requests.pods(cliques[name]) * copies.get(name, 1) * replicas
            if pods > 1 and (how := _pinned(cliques[name])):
                yield f"{pods} pods of clique {name} {how}, and a node takes one pod in a {fabric.kind.name}"


def _pinned(clique: Body) -> str:
    """What puts all pods of a clique on one node: its name, or an affinity to one another."""
    spec = mapping(get(clique, ("spec", "podSpec"), {}))
    node = mapping(spec.get("nodeSelector")).get(HOSTNAME)
    if isinstance(node, str):
        return f"are to be on node {node}"
    own = mapping(clique.get("labels"))
    for term in mappings(get(spec, ("affinity", "podAffinity", "requiredDuringSchedulingIgnoredDuringExecution"), ())):
        asked = mapping(get(term, ("labelSelector", "matchLabels"), {}))
        if term.get("topologyKey") == HOSTNAME and asked and all(own.get(key) == value for key, value in asked.items()):
            return "are to be on one node with one another"
    return ""
