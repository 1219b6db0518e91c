"""Scaling on the Grove path: the objects whose replicas follow the replicas of services."""

from collections.abc import Iterator

from engine.ids import ResourceId
from resources.base import kinds
from resources.dynamo.model.graph import GraphService, InferenceGraph
from resources.dynamo.model.names import grove_target


def scale_targets(graph: InferenceGraph, running: InferenceGraph | None = None) -> Iterator[tuple[ResourceId, int]]:
    """The object that Grove makes of each service with a number of replicas, and that number for its `spec.replicas`.

    Grove takes the replicas of the template only when it creates the object. A service without a number is left to autoscalers and
    users, and so is one whose scaling adapter does not exist; one with 0 replicas has no object. The object may not exist yet.
    `running`: the graph with the replicas of its scaling adapters, which may be 0.
    """
    for specified, service in zip(graph.services, (running or graph).services, strict=True):
        if not service.is_scaled_by_others and specified.replicas > 0:
            yield target_id(graph, service), service.replicas


def target_id(graph: InferenceGraph, service: GraphService) -> ResourceId:
    """The PodCliqueScalingGroup of a service on several nodes, or the PodClique of another."""
    kind = kinds.SCALING_GROUP if service.is_multinode else kinds.PODCLIQUE
    return kind.id(graph.namespace, grove_target(graph, service))
