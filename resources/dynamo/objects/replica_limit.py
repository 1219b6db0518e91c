"""Replica limit: how many replicas services of a graph without Grove get, and on how many nodes. Only growth is limited."""

from collections import Counter
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from engine.observed import Observed, Slice
from engine.paths import get
from resources.base import kinds, labels, names
from resources.base.fields import count
from resources.dynamo.model.graph import GraphService, InferenceGraph
from resources.dynamo.model.names import grove_target
from resources.dynamo.objects.pod_template import COMPONENT, INSTANCE
from resources.dynamo.objects.scaling_adapter import with_replicas
from resources.dynamo.objects.service import service_name
from resources.ports.configuration import ONLY

MOST_INSTANCES: Final = 10_000
"""The highest number of LeaderWorkerSets of one graph: no replica is added beyond it."""


class Allowed(Struct, frozen=True):
    """What a service gets that does not get all that it asks for."""

    replicas: int
    nodes: int
    """The nodes of each replica."""


class _Running(Struct, frozen=True):
    """What a service has now; a replica that is lost before another one counts."""

    replicas: int
    nodes: int
    """The nodes of its widest replica."""
    pods: int
    """Its pods, whatever runs them: those of a set and of a Deployment are counted as well as those of LeaderWorkerSets."""
    instances: int
    """How many of its replicas are LeaderWorkerSets."""


def instance_count(graph: InferenceGraph) -> int:
    """How many LeaderWorkerSets a graph asks for: one for each replica of each service on several nodes."""
    return sum(max(service.replicas, 0) for service in graph.services if service.is_multinode)


def pod_count(graph: InferenceGraph) -> int:
    """How many pods a graph asks for."""
    return sum(map(_asked, graph.services))


def allowed_replicas(graph: InferenceGraph, observed: Observed, most_pods: int) -> Mapping[str, Allowed]:
    """Service -> what it gets, of those services that do not get all that they ask for.

    What a service has now counts first, also where something else runs it from now on; what is left of `MOST_INSTANCES` and of
    `most_pods` is given to the services in their order. Running replicas that may not get more nodes keep those that they have. A service
    without a number, which others scale, asks for one replica.
    """
    if instance_count(graph) <= MOST_INSTANCES and pod_count(graph) <= most_pods:
        return {}
    in_sets = _pods_in_sets(observed)
    running = {service.name: _running(service, graph, observed.slice(ONLY), in_sets) for service in graph.services}
    left = most_pods - sum(min(_asked(service), running[service.name].pods) for service in graph.services)
    instances = MOST_INSTANCES - sum(min(max(service.replicas, 0), running[service.name].instances) for service in graph.services)
    allowed: dict[str, Allowed] = {}
    for service in graph.services:
        asked, now = max(service.replicas, 0), running[service.name]
        own, own_instances = min(_asked(service), now.pods), min(asked, now.instances)
        room, room_instances = own + max(left, 0), own_instances + max(instances, 0)
        kept = min(asked, now.replicas)
        is_widened = kept * service.nodes <= room and (now.nodes > 1 or not service.is_multinode or kept <= room_instances)
        fitting = min(asked, room // service.nodes, room_instances)
        if not is_widened and now.nodes == 1 and fitting * service.nodes > kept:
            is_widened, kept = True, fitting  # In place of a Deployment, fewer replicas with as many pods.
        nodes = service.nodes if is_widened else min(service.nodes, now.nodes)
        replicas = min(asked, max(kept, room // nodes))
        if nodes > 1:
            replicas = min(replicas, room_instances)
            instances -= replicas - own_instances
        left -= max(0, replicas * nodes - own)
        if (replicas, nodes) != (asked, service.nodes):
            allowed[service.name] = Allowed(replicas, nodes)
    return allowed


def limited(graph: InferenceGraph, allowed: Mapping[str, Allowed]) -> InferenceGraph:
    """The graph whose services ask for what they get; the graph itself if they get everything, the same object for the same numbers."""
    limits = [(service, allowed[service.name]) for service in graph.services if service.name in allowed]
    graph = with_replicas(graph, {service.name: limit.replicas for service, limit in limits if limit.replicas != service.replicas})
    nodes = {service.name: limit.nodes for service, limit in limits if limit.nodes != service.nodes}

    def made() -> InferenceGraph:
        services = tuple(_with_nodes(each, nodes.get(each.name, each.nodes)) for each in graph.services)
        return InferenceGraph(graph.id, graph.annotations, graph.spec, services, graph.api_version, graph.faults)

    return graph.memo.recall("on fewer nodes", tuple(nodes.items()), made) if nodes else graph


def limited_text(graph: InferenceGraph, allowed: Mapping[str, Allowed], most_pods: int) -> str:
    """What is not created of a graph, given what is; empty if everything is."""
    about = [_about(service, allowed[service.name]) for service in graph.services if service.name in allowed]
    text = (
        "a graph without Grove may have {pods} pods (limits.set.pods) and {most} LeaderWorkerSets: {about}. What exists stays. "
        "Scale it in, or raise the limits of the operator configuration"
    )
    return text.format(pods=most_pods, most=MOST_INSTANCES, about="; ".join(about)) if about else ""


def next_index(service: GraphService, lives: Slice) -> int:
    """The index after the highest one of the LeaderWorkerSets of a service, as `existing` says; 0 if it has none."""
    return lives.index("next instances", _next_indices).get(service.name, 0)


def _about(service: GraphService, allowed: Allowed) -> str:
    asks, gets = f"service {service.name} asks for {service.replicas} replicas", f"gets {allowed.replicas}"
    if allowed.nodes == service.nodes:
        return f"{asks} and {gets}"
    return f"{asks} on {service.nodes} nodes each and {gets} on {allowed.nodes}"


def _asked(service: GraphService) -> int:
    """How many pods a service asks for."""
    return max(service.replicas, 0) * service.nodes


def _with_nodes(service: GraphService, nodes: int) -> GraphService:
    multinode = service.spec.multinode
    if multinode is None or nodes == service.nodes:
        return service
    kept = multinode.model_copy(update={"node_count": nodes}) if nodes > 1 else None
    return GraphService(service.name, service.spec.model_copy(update={"multinode": kept}), service.framework, service.envs)


def _running(service: GraphService, graph: InferenceGraph, lives: Slice, in_sets: Mapping[str, int]) -> _Running:
    """What a service has now. `in_sets`: the pods in sets of the graph, as `_pods_in_sets` counts them."""
    instances, nodes = next_index(service, lives), lives.index("sizes", _sizes).get(service.name, 1)
    live = lives.objects.get(kinds.DEPLOYMENT.id(graph.namespace, service_name(graph, service)))
    alone = count(get(live.body, ("spec", "replicas"), 1)) if live is not None else 0
    in_set = in_sets.get(grove_target(graph, service), 0)
    pods = max(instances * nodes, alone, in_set)
    if service.spec.replicas is None and not service.is_multinode:
        return _Running(1, 1, max(pods, 1), instances)
    if instances:
        return _Running(instances, nodes, pods, instances)
    if alone:
        return _Running(alone, 1, pods, 0)
    return _Running(-(-in_set // service.nodes), service.nodes, pods, 0)


def _pods_in_sets(observed: Observed) -> Mapping[str, int]:
    """PodClique or scaling group -> how many pods it asks for, if a set runs the graph."""
    pods: Counter[str] = Counter()
    for live in (live for inner in observed.nested.values() for part in inner.slices.values() for live in part.of(kinds.PODCLIQUE.name)):
        pods[live.labels.get(labels.SCALING_GROUP) or live.id.name] += count(get(live.body, ("spec", "replicas"), 1))
    return pods


def _sizes(lives: Slice) -> Mapping[str, int]:
    """Service -> the nodes of the widest one of its LeaderWorkerSets, two at least: what another writer made of one is repaired."""
    sizes: dict[str, int] = {}
    for live in lives.of(kinds.LEADER_WORKER_SET.name):
        service = live.labels.get(COMPONENT, "")
        sizes[service] = max(sizes.get(service, 2), count(get(live.body, ("spec", "leaderWorkerTemplate", "size"), 1)))
    return sizes


def _next_indices(lives: Slice) -> Mapping[str, int]:
    """Service -> the index after its highest one."""
    indices: dict[str, list[int]] = {}
    for live in lives.of(kinds.LEADER_WORKER_SET.name):
        service, index = live.labels.get(COMPONENT, ""), names.index_in(live.labels.get(INSTANCE, ""))
        if index is not None:
            indices.setdefault(service, []).append(index)
    return {service: names.existing(each, MOST_INSTANCES) for service, each in indices.items()}
