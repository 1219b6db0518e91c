"""Scaling on the Grove path: the objects whose replicas follow the replicas of services."""

from collections.abc import Iterator, Mapping

from engine.ids import ResourceId
from engine.observed import Observed
from engine.ownership import scaled_by
from engine.paths import get
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


def scaler_notes(observed: Observed, graph: InferenceGraph, adapters: Mapping[str, str], running: InferenceGraph) -> Iterator[str]:
    """Who else scales what the graph scales, e.g. an autoscaler of a scaling group: each undoes what the other does.

    `adapters`: service -> the name of its scaling adapter, if that owns the replicas. `running`: as in `scale_targets`.
    """
    names = {target_id(graph, service): service.name for service in graph.services}
    for id, replicas in scale_targets(graph, running):
        live = observed.elsewhere(id)
        number = get(live.body, ("spec", "replicas")) if live is not None else replicas
        if live is None or number == replicas or not (manager := scaled_by(live.body)):
            continue
        service = names[id]
        if observed.proposal is not None and number == get(observed.root.body, ("spec", "services", service, "replicas")):
            continue  # The stored graph asks for that number, and the manifest for another.
        owner, remedy = f"spec.services[{service}].replicas", "leave that out, or scale a scalingAdapter of the service"
        if service in adapters:
            owner, remedy = f"{kinds.SCALING_ADAPTER.name} {adapters[service]}", "scale that one, with an autoscaler too"
        yield f"{manager} scaled {id.kind} {id.name} to {number}, but {owner} asks for {replicas}, which is restored: {remedy}"


def target_id(graph: InferenceGraph, service: GraphService) -> ResourceId:
    """The PodCliqueScalingGroup of a service on several nodes, or the PodClique of another."""
    kind = kinds.SCALING_GROUP if service.is_multinode else kinds.PODCLIQUE
    return kind.id(graph.namespace, grove_target(graph, service))
