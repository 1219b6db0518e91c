"""ClusterTopologyBinding: the blueprint of the root kind that maps topology levels to node labels, for each scheduler back end."""

from collections.abc import Mapping
from datetime import datetime
from typing import cast

from engine.blueprint import Blueprint, Desired
from engine.graph import graph, part
from engine.ids import Kind, ResourceId
from engine.memo import Memo
from engine.observed import Live, Observed
from engine.resource import Body, Policy, Want
from resources.base import kinds, labels
from resources.model.gang_scheduling import on_cluster
from resources.model.topology import backend_topologies, topology_objects
from resources.ports.configuration import Configuration
from resources.schema.issues import Rejected
from resources.schema.parse import parse
from resources.schema.topology import ClusterTopologyBinding, ClusterTopologyBindingSpec
from resources.status import topology_binding as status

ALL = ""
"""The key of the only part of a binding."""
KNOWN = Policy(partial=(("metadata", "labels"), ("metadata", "annotations")))
"""The policy of a stored binding: its labels and annotations are not removed."""
PROPOSED = Policy(exact=(("spec",),), partial=(("metadata", "labels"),))
"""The policy of a binding that a manifest proposes: its spec replaces the stored one, its labels (e.g. that of an ApplySet) stay."""


class TopologyBindingBlueprint(Blueprint[Configuration]):
    """The blueprint of ClusterTopologyBindings."""

    kind: Kind = kinds.TOPOLOGY_BINDING
    selector: str = labels.SELECTOR

    def children(self, configuration: Configuration) -> Mapping[Kind, tuple[str, ...]]:
        """The kinds of the schedulers' topology objects. These have no labels of ours, so the live ones are among the references.

        The garbage collector deletes them; immutable ones are replaced.
        """
        writes: dict[Kind, tuple[str, ...]] = {}
        for topologies in topology_objects(configuration).values():
            policy = topologies.policy
            is_replaced = bool(policy.exact) and set(policy.exact) <= set(policy.immutable)
            verbs = ("create", *(() if is_replaced else ("patch",)), *(("delete",) if policy.immutable else ()))
            writes[topologies.kind] = (*writes.get(topologies.kind, ()), *verbs)
        return writes

    def references(self, configuration: Configuration) -> tuple[Kind, ...]:
        """The kinds of `children`: a topology object that the engine does not manage is compared as well."""
        return tuple(self.children(configuration))

    def reads(self, configuration: Configuration) -> Mapping[str, frozenset[str]]:
        """Kind -> the kinds that must be listed completely first: the binding's status reports on all topology objects."""
        return {self.kind.key: frozenset(kind.key for kind in self.children(configuration))}

    def root_of(self, child: Live) -> ResourceId | None:
        """None: no label names a binding."""
        return None

    def part_of(self, root: ResourceId, child: ResourceId) -> str:
        """The key of the only part."""
        return ALL

    def desire(self, observed: Observed, now: datetime, configuration: Configuration, memo: Memo) -> Desired:
        """The topology objects that the engine manages, and the status of the binding; nothing for a binding that is being deleted."""
        root = observed.root
        if root.deleting_since is not None:
            return Desired(graph(()))
        body = root.body if observed.proposal is None else observed.proposal
        try:
            spec = _spec(body)
        except Rejected as rejected:
            return Desired(graph(()), problems=tuple(map(str, rejected.issues)))
        topologies = tuple(backend_topologies(observed, spec, on_cluster(configuration, observed.unserved)))
        managed = [topology.resource for topology in topologies if topology.resource is not None]
        return Desired(
            graph([part(ALL, [_root(observed, status.of(root, topologies) if root.uid else None), *managed])]),
            alarms=tuple(topology.alarm for topology in topologies if topology.alarm is not None),
        )


def _spec(body: Body) -> ClusterTopologyBindingSpec:
    """The parsed spec. Raises `Rejected` if it does not match the schema."""
    return cast(ClusterTopologyBinding, parse(kinds.TOPOLOGY_BINDING, {"spec": body.get("spec")}, strict=False)).spec


def _root(observed: Observed, binding_status: Body | None) -> Want:
    """The binding itself; its spec is written only if a manifest proposes it."""
    root, proposal = observed.root, observed.proposal
    frame = {"apiVersion": kinds.TOPOLOGY_BINDING.api_version, "kind": kinds.TOPOLOGY_BINDING.name, "metadata": {"name": root.id.name}}
    if proposal is None:
        return Want(root.id, "managed", body=frame, policy=KNOWN, status=binding_status)
    proposed = proposal.get("metadata") or {}
    given = {key: proposed[key] for key in ("labels", "annotations") if proposed.get(key)}
    body = {**frame, "metadata": {"name": root.id.name, **given}, "spec": proposal["spec"]}
    return Want(root.id, "proposed by a manifest", body=body, policy=PROPOSED, status=binding_status)
