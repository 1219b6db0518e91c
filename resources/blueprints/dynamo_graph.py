"""DynamoGraphDeployment: the blueprint of graphs of inference services, carried out by Grove or by LeaderWorkerSets and Deployments.

What a graph means is imported for the first graph: it is a fifth of the engine, and most commands meet none.
"""

from collections.abc import Mapping
from datetime import datetime

from engine.blueprint import Asked, Blueprint, Desired, NestedRoot
from engine.ids import Kind, ResourceId
from engine.memo import Memo
from engine.observed import Live, Observed
from engine.resource import Body
from resources.base import kinds, labels, names
from resources.base.kinds import WRITES
from resources.ports.configuration import KAI_SCHEDULER, ONLY, Configuration
from resources.ports.scheduler import has_built_in_gangs

CHILDREN = {
    kinds.SECRET: WRITES,
    kinds.SERVICE: WRITES,
    kinds.PVC: ("create", "delete"),
    kinds.INGRESS: WRITES,
    kinds.DEPLOYMENT: WRITES,
    kinds.VOLCANO_POD_GROUP: WRITES,
    kinds.LEADER_WORKER_SET: WRITES,
    kinds.SCALING_ADAPTER: WRITES,
}
"""The kinds of objects that a graph can own, besides its PodCliqueSet -> how they are written."""


class DynamoGraphBlueprint(Blueprint[Configuration]):
    """The blueprint of DynamoGraphDeployments."""

    kind: Kind = kinds.DYNAMO_GRAPH
    selector: str = labels.GRAPH_SELECTOR

    def children(self, configuration: Configuration) -> Mapping[Kind, tuple[str, ...]]:
        """The kinds of objects that a graph can own: also PodGroups of Kubernetes, if kube-scheduler may schedule gangs."""
        return CHILDREN | {kinds.POD_GROUP: WRITES} if has_built_in_gangs(configuration.schedulers) else CHILDREN

    def references(self, configuration: Configuration) -> tuple[Kind, ...]:
        """KAI's queues, which also tell whether the cluster has KAI."""
        return (kinds.KAI_QUEUE,)

    def reads(self, configuration: Configuration) -> Mapping[str, frozenset[str]]:
        """Kind -> the kinds that must be listed completely first: the status of a graph reports on what runs it."""
        return {self.kind.key: frozenset({kinds.PODCLIQUESET.key, *(kind.key for kind in self.children(configuration))})}

    def root_of(self, child: Live) -> ResourceId | None:
        """The graph that the labels of the child name; None if they name none."""
        name = child.labels.get(labels.PART_OF) if child.labels.get(labels.MANAGED_BY) == labels.GRAPH_MANAGER else None
        return self.kind.id(child.id.namespace, name) if name else None

    def part_of(self, root: ResourceId, child: ResourceId) -> str:
        """The key of the only part."""
        return ONLY

    def scaler_of(self, root: ResourceId, part: str) -> ResourceId | None:
        """The scaling adapter of a service."""
        return kinds.SCALING_ADAPTER.id(root.namespace, names.scaling_adapter(root.name, part))

    def lookups(self, id: ResourceId, body: Body, configuration: Configuration, memo: Memo) -> tuple[ResourceId, ...]:
        """The Secrets, claims and the queue that the graph names; none if it is not valid."""
        from resources.blueprints.graph_meaning import lookups_of

        return lookups_of(id, body, configuration, memo)

    def lookup_kinds(self, configuration: Configuration) -> tuple[Kind, ...]:
        """Secrets, claims and, if KAI is enabled, its queues."""
        return (kinds.SECRET, kinds.PVC, *((kinds.KAI_QUEUE,) if KAI_SCHEDULER in configuration.schedulers else ()))

    def asked(self, observed: Observed, configuration: Configuration) -> Asked:
        """The LeaderWorkerSets, Deployments and what belongs to them, without Grove."""
        from resources.dynamo.component_size import asked  # Only in a process that keeps running.

        return asked(observed)

    def is_complete(self, observed: Observed) -> bool:
        """Whether each of them has existed, as its status or its objects tell."""
        from resources.dynamo.component_size import have_existed

        return super().is_complete(observed) or have_existed(observed)

    def nested_kinds(self) -> tuple[Kind, ...]:
        """PodCliqueSets."""
        return (kinds.PODCLIQUESET,)

    def nested_roots(self, observed: Observed, configuration: Configuration, memo: Memo) -> tuple[NestedRoot, ...]:
        """The PodCliqueSet of the graph, if Grove runs it."""
        from resources.blueprints.graph_meaning import nested_roots

        return nested_roots(observed, configuration, memo)

    def desire(self, observed: Observed, now: datetime, configuration: Configuration, memo: Memo) -> Desired:
        """The objects of the graph besides its PodCliqueSet, and its status."""
        from resources.blueprints.graph_meaning import desire

        return desire(observed, configuration, memo)
