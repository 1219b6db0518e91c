"""Replica limit: how many replicas services of a graph without Grove get. What exists stays; of several, one that is lost comes back."""

from collections.abc import Mapping
from typing import Final

from engine.observed import Slice
from engine.paths import get
from resources.base import kinds, names
from resources.base.fields import count
from resources.dynamo.model.graph import GraphService, InferenceGraph
from resources.dynamo.objects.pod_template import COMPONENT, INSTANCE
from resources.dynamo.objects.service import service_name

MOST_INSTANCES: Final = 10_000
"""The highest number of LeaderWorkerSets of one graph: no replica is added beyond it."""


def instance_count(graph: InferenceGraph) -> int:
    """How many LeaderWorkerSets a graph asks for: one for each replica of each service on several nodes."""
    return sum(max(service.replicas, 0) for service in graph.services if service.is_multinode)


def created_replicas(graph: InferenceGraph, lives: Slice, most_pods: int) -> Mapping[str, int]:
    """Service -> how many of its replicas are created, of those services that do not get all that they ask for.

    What exists counts first; what is left of `MOST_INSTANCES` and of `most_pods` is given to the services in their order. A service
    without a number, which others scale, asks for one pod.
    """
    if instance_count(graph) <= MOST_INSTANCES and _pods(graph) <= most_pods:
        return {}
    kept = _kept(graph, lives, most_pods)
    instances = MOST_INSTANCES - sum(kept[service.name] for service in graph.services if service.is_multinode)
    left = most_pods - sum(kept[service.name] * service.nodes for service in graph.services)
    created: dict[str, int] = {}
    for service in graph.services:
        room = min(left // service.nodes, instances) if service.is_multinode else left
        added = min(max(room, 0), max(service.replicas, 0) - kept[service.name])
        left -= added * service.nodes
        instances -= added if service.is_multinode else 0
        if kept[service.name] + added < service.replicas:
            created[service.name] = kept[service.name] + added
    return created


def too_wide(graph: InferenceGraph, lives: Slice, most_pods: int) -> str:
    """Why what exists of a graph must not get the nodes that its services ask for now; empty if it may."""
    if _pods(graph) <= most_pods:
        return ""
    kept, sizes = _kept(graph, lives, most_pods), lives.index("sizes", _sizes)
    after = sum(kept[service.name] * service.nodes for service in graph.services)
    before = sum(kept[service.name] * min(service.nodes, sizes.get(service.name, service.nodes)) for service in graph.services)
    if after <= max(before, most_pods):
        return ""
    text = "a graph may have {} pods (limits.set.pods): its replicas ask for {} with the new numbers of nodes. What exists stays as it is"
    return text.format(most_pods, after)


def limited_text(graph: InferenceGraph, created: Mapping[str, int], most_pods: int) -> str:
    """What is not created of a graph, given what is; empty if everything is."""
    about = [
        f"service {service.name} asks for {service.replicas} replicas and gets {created[service.name]}"
        for service in graph.services
        if service.name in created
    ]
    text = (
        "a graph without Grove may have {pods} pods (limits.set.pods) and {most} LeaderWorkerSets: {about}. What exists stays. "
        "Scale it in, or raise the limits of the operator configuration"
    )
    return text.format(pods=most_pods, most=MOST_INSTANCES, about="; ".join(about)) if about else ""


def next_index(service: GraphService, lives: Slice, most: int = MOST_INSTANCES) -> int:
    """The index after the highest one of the LeaderWorkerSets of a service, as `existing` says of `most`; 0 if it has none."""
    return names.existing(lives.index("instances", _indices).get(service.name, ()), most)


def _pods(graph: InferenceGraph) -> int:
    return sum(max(service.replicas, 0) * service.nodes for service in graph.services)


def _kept(graph: InferenceGraph, lives: Slice, most_pods: int) -> Mapping[str, int]:
    """Service -> how many of the replicas that it asks for exist."""
    return {service.name: min(max(service.replicas, 0), _existing(service, graph, lives, most_pods)) for service in graph.services}


def _existing(service: GraphService, graph: InferenceGraph, lives: Slice, most_pods: int) -> int:
    """How many replicas a service has now."""
    if service.is_multinode:
        return next_index(service, lives, min(MOST_INSTANCES, most_pods // service.nodes))
    if service.spec.replicas is None:
        return service.replicas
    live = lives.objects.get(kinds.DEPLOYMENT.id(graph.namespace, service_name(graph, service)))
    return count(get(live.body, ("spec", "replicas"), 1)) if live is not None else 0


def _sizes(lives: Slice) -> Mapping[str, int]:
    """Service -> the nodes of the widest one of its LeaderWorkerSets."""
    sizes: dict[str, int] = {}
    for live in lives.of(kinds.LEADER_WORKER_SET.name):
        service = live.labels.get(COMPONENT, "")
        sizes[service] = max(sizes.get(service, 0), count(get(live.body, ("spec", "leaderWorkerTemplate", "size"), 1)))
    return sizes


def _indices(lives: Slice) -> Mapping[str, list[int]]:
    """Service -> the indices of its LeaderWorkerSets."""
    indices: dict[str, list[int]] = {}
    for live in lives.of(kinds.LEADER_WORKER_SET.name):
        service, index = live.labels.get(COMPONENT, ""), names.index_in(live.labels.get(INSTANCE, ""))
        if index is not None:
            indices.setdefault(service, []).append(index)
    return indices
