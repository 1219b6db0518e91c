"""Reach: whether the pods of a fabric domain can reach one another. A fabric connects only nodes of the same island (N29)."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from engine.conditions import find
from engine.ids import ResourceId
from engine.memo import Memo
from engine.observed import Live, Observed, Slice
from engine.plan import Alarm
from engine.report.printable import some
from resources.base import kinds
from resources.base.fields import mapping
from resources.domains.release import claims_on, claims_template, has_ended, uses_template
from resources.domains.replica_domains import ReplicaDomains
from resources.model.domain import Domain
from resources.ports.checks import JoinedNode
from resources.ports.configuration import Configuration
from resources.ports.fabric import Fabric


class Split(Struct, frozen=True):
    """The nodes of a domain whose pods cannot all reach one another."""

    link: str
    """What connects the nodes of an island, e.g. `NVLink`."""
    noun: str
    """What an island is called, e.g. `NVLink clique`."""
    islands: tuple[tuple[str, int], ...]
    """Each island with the number of its nodes, sorted by name."""
    outside: tuple[str, ...]
    """The nodes that are in no island, sorted."""

    @property
    def nodes(self) -> int:
        """The number of nodes."""
        return sum(count for _, count in self.islands) + len(self.outside)

    @property
    def summary(self) -> str:
        """In a few words, e.g. `in 2 NVLink cliques, 1 of 4 nodes without NVLink`."""
        parts = [f"in {len(self.islands)} {self.noun}s"] if len(self.islands) > 1 else []
        parts += [f"{len(self.outside)} of {self.nodes} nodes without {self.link}"] if self.outside else []
        return ", ".join(parts)

    @property
    def details(self) -> str:
        """Where the pods run, e.g. `in NVLink cliques a.1 (2 nodes) and on 2 nodes without NVLink (n1, n2)`."""
        islands = some(f"{island} ({_nodes(count)})" for island, count in self.islands)
        plural = "s" if len(self.islands) > 1 else ""
        parts = [f"in {self.noun}{plural} {islands}"] if self.islands else []
        parts += [f"on {_nodes(len(self.outside))} without {self.link} ({some(self.outside)})"] if self.outside else []
        return " and ".join(parts)


def split_among(fabric: Fabric, nodes: Iterable[JoinedNode]) -> Split | None:
    """How these nodes of a domain are separated from one another; None if they are not.

    A node without an island counts if it is ready: one that is still joining may not have reported its island yet.
    """
    if fabric.islands is None:
        return None
    by_name = {node.node: node.island for node in nodes if _is_known(node)}
    islands = Counter(island for island in by_name.values() if island)
    outside = tuple(sorted(name for name, island in by_name.items() if not island))
    if len(by_name) < 2 or (len(islands) == 1 and not outside):
        return None
    return Split(fabric.link, fabric.islands.noun, tuple(sorted(islands.items())), outside)


def split_of(observed: Observed, fabric: Fabric, domain: Live, pods: Iterable[Live], configuration: Configuration) -> Split | None:
    """How the nodes of a domain are separated from one another; None if they are not.

    `pods` include the set's pods of the domain. Nodes whose pods are ended or being deleted do not count. Of other sets that share the
    domain only the claims are known: their nodes count if this set has pods in the domain.
    """
    if not (candidates := _separate_nodes(fabric, domain)):
        return None
    template = fabric.template_name(domain, domain.id.name)
    members = [pod for pod in pods if claims_template(pod, template)]
    used = {str(pod.body["spec"].get("nodeName") or "") for pod in members if pod.deleting_since is None and not has_ended(pod)} - {""}
    if used and fabric.slots is not None:
        own = {pod.uid for pod in members}
        claims = claims_on(observed, [domain], configuration)
        used |= {fabric.slots.allocated_node(claim) for claim in claims if own.isdisjoint(owner.uid for owner in claim.owners)}
    return split_among(fabric, (node for node in candidates if node.node in used))


def split_alarms(observed: Observed, replicas: Sequence[ReplicaDomains], configuration: Configuration, memo: Memo) -> Iterator[Alarm]:
    """One alarm for each requested domain whose pods cannot all reach one another. `replicas` are in the order of their indices.

    There is none while pods of the domain are still arriving, so that a set is warned once and of all nodes. There is none for fabrics that
    do not tell.
    """
    fabrics = {fabric.kind.name: fabric for fabric in configuration.fabrics if fabric.islands is not None}
    if not fabrics:
        return
    shared: dict[ResourceId, Domain] = {}
    for index, replica in enumerate(replicas):
        for domain in (domain for domain in replica.requested if domain.id.kind in fabrics):
            if domain.request.shared:
                shared.setdefault(domain.id, domain)
            else:
                yield from _alarms(observed, domain, fabrics[domain.id.kind], (observed.slice(str(index)),), configuration, memo)
    every = tuple(observed.slices.values()) if shared else ()
    for domain in shared.values():
        yield from _alarms(observed, domain, fabrics[domain.id.kind], every, configuration, memo)


def _alarms(
    observed: Observed, domain: Domain, fabric: Fabric, slices: tuple[Slice, ...], configuration: Configuration, memo: Memo
) -> tuple[Alarm, ...]:
    """The alarm about one domain, if there is one. Pods and claims are looked at only where the driver reports several islands."""
    live = next((live for part in (*slices, observed.references) if (live := part.objects.get(domain.id)) is not None), None)
    if live is None or live.deleting_since is not None or domain.blocked:
        return ()
    if not memo.recall(("separate nodes", domain.id), (live, fabric), lambda: _separate_nodes(fabric, live)):
        return ()

    def make() -> tuple[Alarm, ...]:
        pods = [pod for part in slices for pod in part.of(kinds.POD.name)]
        if _are_arriving(fabric, live, pods):
            return ()
        split = split_of(observed, fabric, live, pods, configuration)
        return (_alarm(domain.id, split),) if split is not None else ()

    facts = (live, slices, tuple(claims_on(observed, [live], configuration)), configuration)
    return memo.recall(("split", domain.id), facts, make)


def _are_arriving(fabric: Fabric, domain: Live, pods: Iterable[Live]) -> bool:
    """Whether a pod of the domain is about to get a node, or is on one that has not joined. Pods that fit nowhere do not count."""
    template = fabric.template_name(domain, domain.id.name)
    known = {node.node for node in fabric.joined_nodes(domain) or () if _is_known(node)}
    members = (pod for pod in pods if pod.deleting_since is None and uses_template(pod, template))
    return any(node not in known if (node := pod.body["spec"].get("nodeName")) else not _is_held_back(pod) for pod in members)


def _is_held_back(pod: Live) -> bool:
    """Whether a pod without a node has scheduling gates, or has been reported unschedulable."""
    scheduled = find(mapping(pod.body.get("status")).get("conditions") or (), "PodScheduled") or {}
    return bool(pod.body["spec"].get("schedulingGates")) or scheduled.get("reason") == "Unschedulable"


def _is_known(node: JoinedNode) -> bool:
    """Whether it is known in which island a joined node is, if any."""
    return bool(node.island) or node.ready


def _separate_nodes(fabric: Fabric, domain: Live) -> tuple[JoinedNode, ...]:
    """The nodes that have joined a domain, if they cannot all reach one another; otherwise none."""
    nodes = (fabric.joined_nodes(domain) or ()) if domain.deleting_since is None else ()
    return nodes if split_among(fabric, nodes) is not None else ()


def _alarm(id: ResourceId, split: Split) -> Alarm:
    """It is not blocking: nothing waits for it, and a sync has done its work. It ends when the pods are placed otherwise."""
    advice = f"engine why {id.kind.lower()}/{id.name} says what to do"
    text = f"pods of {id.kind} {id.name} cannot all reach one another over {split.link}: they run {split.details}; {advice}"
    return Alarm(f"{id.kind}Split", text, counted_apart=True)


def _nodes(count: int) -> str:
    return f"{count} node{'s' if count > 1 else ''}"
