"""Instance limit: how many LeaderWorkerSets a graph without Grove gets. Those that exist stay, and are made again if they are lost."""

from collections.abc import Mapping
from typing import Final

from engine.observed import Slice
from resources.base import kinds, names
from resources.dynamo.model.graph import GraphService, InferenceGraph
from resources.dynamo.objects.pod_template import COMPONENT, INSTANCE

MOST_INSTANCES: Final = 10_000
"""The highest number of LeaderWorkerSets of one graph: no replica is added beyond it."""


def instance_count(graph: InferenceGraph) -> int:
    """How many LeaderWorkerSets a graph asks for: one for each replica of each service on several nodes."""
    return sum(max(service.replicas, 0) for service in graph.services if service.is_multinode)


def created_instances(graph: InferenceGraph, lives: Slice) -> Mapping[str, int]:
    """Service -> how many of its replicas get a LeaderWorkerSet, of those services that do not get all that they ask for.

    What exists counts first; what is left of `MOST_INSTANCES` is given to the services in their order.
    """
    if instance_count(graph) <= MOST_INSTANCES:
        return {}
    services = [service for service in graph.services if service.is_multinode]
    kept = {service.name: min(max(service.replicas, 0), next_index(service, lives)) for service in services}
    left = max(0, MOST_INSTANCES - sum(kept.values()))
    created: dict[str, int] = {}
    for service in services:
        added = min(left, max(service.replicas, 0) - kept[service.name])
        left -= added
        if kept[service.name] + added < service.replicas:
            created[service.name] = kept[service.name] + added
    return created


def limited_text(graph: InferenceGraph, created: Mapping[str, int]) -> str:
    """What is not created of a graph, given what is; empty if everything is."""
    about = [
        f"service {service.name} asks for {service.replicas} replicas and gets {created[service.name]}"
        for service in graph.services
        if service.name in created
    ]
    text = "a graph without Grove may have {most} LeaderWorkerSets: {about}. What exists stays. Scale it in"
    return text.format(most=MOST_INSTANCES, about="; ".join(about)) if about else ""


def next_index(service: GraphService, lives: Slice) -> int:
    """The index after the highest one of the LeaderWorkerSets of a service, as `existing` says; 0 if it has none."""
    return lives.index("next instances", _next_indices).get(service.name, 0)


def _next_indices(lives: Slice) -> Mapping[str, int]:
    """Service -> the index after its highest one."""
    indices: dict[str, list[int]] = {}
    for live in lives.of(kinds.LEADER_WORKER_SET.name):
        service, index = live.labels.get(COMPONENT, ""), names.index_in(live.labels.get(INSTANCE, ""))
        if index is not None:
            indices.setdefault(service, []).append(index)
    return {service: names.existing(each, MOST_INSTANCES) for service, each in indices.items()}
