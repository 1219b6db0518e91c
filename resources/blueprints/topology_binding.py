"""ClusterTopologyBinding: what the levels of a cluster's topology are, and what the scheduler back ends have for that."""

from collections.abc import Mapping
from datetime import datetime
from typing import cast

from engine.blueprint import Desired
from engine.graph import graph, part
from engine.ids import Kind, ResourceId
from engine.memo import Memo
from engine.observed import Live, Observed
from engine.resource import Body, Policy, Resource
from resources.base import kinds, labels
from resources.model.scheduler_topology import aware, counterparts
from resources.ports.configuration import Configuration
from resources.schema.issues import Rejected
from resources.schema.parse import parse
from resources.schema.topology import ClusterTopologyBinding, ClusterTopologyBindingSpec
from resources.status import topology_binding as status

ALL = ""
"""The one part of a binding."""
KNOWN = Policy(partial=(("metadata", "labels"), ("metadata", "annotations")))
PROPOSED = Policy(exact=(("spec",),))


class TopologyBindingBlueprint:
    """What a ClusterTopologyBinding means."""

    kind: Kind = kinds.TOPOLOGY_BINDING
    selector: str = labels.SELECTOR

    def children(self, configuration: Configuration) -> tuple[Kind, ...]:
        """The topologies of the back ends. They bear no labels of ours: the ones that are there are found among the references."""
        return tuple(dict.fromkeys(scheduler.topology for scheduler in aware(configuration).values()))

    def references(self, configuration: Configuration) -> tuple[Kind, ...]:
        """The same, for of a topology that others keep it matters what it says."""
        return self.children(configuration)

    def reads(self, configuration: Configuration) -> Mapping[str, frozenset[str]]:
        """A binding tells of all topologies."""
        return {self.kind.name: frozenset(kind.name for kind in self.children(configuration))}

    def policies(self, configuration: Configuration) -> Mapping[str, Policy]:
        """None: what a binding owns is left to the garbage collector."""
        return {}

    def root_of(self, child: Live) -> ResourceId | None:
        """None: nothing tells a binding by its labels."""
        return None

    def part_of(self, root: ResourceId, child: ResourceId) -> str:
        """It has one part."""
        return ALL

    def desire(self, observed: Observed, now: datetime, configuration: Configuration, memo: Memo) -> Desired:
        """A topology for each back end that is not named, and what is to be said of all; nothing for a binding that is being deleted."""
        root = observed.root
        if root.deleting_since is not None:
            return Desired(graph(()))
        body = root.body if observed.proposal is None else observed.proposal
        try:
            spec = _spec(body)
        except Rejected as rejected:
            return Desired(graph(()), problems=tuple(map(str, rejected.issues)))
        found = tuple(counterparts(observed, spec, configuration))
        kept = [one.resource for one in found if one.resource is not None]
        return Desired(
            graph([part(ALL, [_root(observed, status.of(root, found) if root.uid else None), *kept])]),
            alarms=tuple(one.alarm for one in found if one.alarm is not None),
        )


def _spec(body: Body) -> ClusterTopologyBindingSpec:
    """What is asked for. Raises `Rejected` where it has not the shape of that."""
    return cast(ClusterTopologyBinding, parse(kinds.TOPOLOGY_BINDING, {"spec": body.get("spec")}, strict=False)).spec


def _root(observed: Observed, standing: Body | None) -> Resource:
    """The binding itself, written only where a manifest proposes it."""
    root, proposal = observed.root, observed.proposal
    frame = {"apiVersion": kinds.TOPOLOGY_BINDING.api_version, "kind": kinds.TOPOLOGY_BINDING.name, "metadata": {"name": root.id.name}}
    if proposal is None:
        return Resource(root.id, frame, "is looked after", policy=KNOWN, status=standing)
    proposed = proposal.get("metadata") or {}
    given = {key: proposed[key] for key in ("labels", "annotations") if proposed.get(key)}
    body = {**frame, "metadata": {"name": root.id.name, **given}, "spec": proposal["spec"]}
    return Resource(root.id, body, "a manifest asks for it", policy=PROPOSED, status=standing)
