"""Restart: `spec.restart` asks to replace the pods of all services once, one service after another or all at once.

The id of the request becomes an annotation of the pods and stays there; the status records which request was the last one. A new graph,
and one whose id was there before an engine that restarts, has nothing to restart: its id counts as carried out.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import Struct

from engine.conditions import READY, find, is_true
from engine.observed import Live, Observed
from engine.paths import get
from engine.resource import Body
from resources.base import kinds, labels
from resources.base.fields import annotations_of, mapping, mappings
from resources.dynamo.model.graph import GraphService, InferenceGraph, Orchestrator
from resources.dynamo.model.names import clique_names, grove_target
from resources.dynamo.model.state import ServiceState
from resources.dynamo.objects.component_names import instance_name
from resources.dynamo.objects.service import service_name
from resources.ports.configuration import ONLY
from resources.schema.dynamo import ExtraPodMetadata

RESTARTED_AT: Final = "nvidia.com/restartAt"
"""The annotation of pods with the id of the last restart of their service."""
PARALLEL: Final = "Parallel"
COMPLETED, RESTARTING, PENDING, SUPERSEDED = "Completed", "Restarting", "Pending", "Superseded"


class RestartRequest(Struct, frozen=True):
    """What a graph asks for."""

    id: str = ""
    """The id of the restart that is to be carried out; empty if there is none."""
    recorded: str | None = None
    """The id that the status is to record; None if the graph has never had one."""
    is_withdrawn: bool = False
    """Whether that one was not carried out completely, and is no longer asked for."""


class Restarting(Struct, frozen=True):
    """How far a restart is."""

    graph: InferenceGraph
    """The graph with the ids in the annotations of its pods."""
    status: Body | None
    """`status.restart`; None if there is nothing to say."""


def request_of(observed: Observed, graph: InferenceGraph) -> RestartRequest:
    """The restart that a graph asks for. One that has begun goes on, whatever the status says."""
    root = observed.root
    asked = graph.spec.restart.id if graph.spec.restart is not None else ""
    last = mapping(mapping(root.body.get("status")).get("restart"))
    known = last.get("observedID")
    if not asked:
        return RestartRequest(recorded=known if isinstance(known, str) else None, is_withdrawn=last.get("phase") != COMPLETED)
    if isinstance(known, str):
        return RestartRequest("" if known == asked and last.get("phase") == COMPLETED else asked, asked)
    return RestartRequest(asked if _is_edited(observed, asked) or asked in _ids_of_pods(observed) else "", asked)


def restart(
    observed: Observed, graph: InferenceGraph, request: RestartRequest, orchestrator: Orchestrator, states: Iterable[ServiceState]
) -> Restarting:
    """The graph with the restart as far as it may be now; pods keep the annotation of their last one."""
    live = {service.name: _live_annotation(observed, graph, service, orchestrator) for service in graph.services}
    known = tuple(states)
    ready = {state.service for state in known if state.is_ready and state.updated_replicas >= state.replicas}
    empty = {state.service for state in known if state.is_ready and not state.replicas}
    ids = {name: value for name, value in live.items() if value}
    waiting: list[str] = []
    is_sequential = not _is_parallel(graph)
    for service in _in_order(graph, live) if request.id else ():
        if live[service.name] == request.id:
            is_done = service.name in empty or (service.name in ready and _has_new_pods(observed, graph, service, orchestrator, request.id))
        elif live[service.name] is None or not (waiting and is_sequential):
            ids[service.name], is_done = request.id, live[service.name] is None and service.name in empty
        else:
            continue
        waiting += [] if is_done else [service.name]
    return Restarting(_annotated(graph, ids), _status(request, waiting, exists=any(value is not None for value in live.values())))


def _status(request: RestartRequest, waiting: list[str], *, exists: bool) -> Body | None:
    if request.recorded is None:
        return None
    phase = RESTARTING if exists else PENDING
    if not waiting:
        phase = SUPERSEDED if request.is_withdrawn else COMPLETED
    return {"observedID": request.recorded, "phase": phase, **({"inProgress": sorted(waiting)} if waiting else {})}


def _is_edited(observed: Observed, asked: str) -> bool:
    """Whether the id came with an edit that no status has reported yet; not if the graph is new."""
    root = observed.root
    conditions = mapping(root.body.get("status")).get("conditions")
    ready = find(mappings(conditions or ()), READY)
    if labels.GRAPH_FINALIZER not in (root.body["metadata"].get("finalizers") or ()) or ready is None:
        return False
    reported = ready.get("observedGeneration")
    is_behind = isinstance(reported, int) and reported < root.generation
    return is_behind or get(root.body, ("spec", "restart", "id")) != asked


def _is_parallel(graph: InferenceGraph) -> bool:
    strategy = graph.spec.restart.strategy if graph.spec.restart is not None else None
    return strategy is not None and strategy.type == PARALLEL


def _in_order(graph: InferenceGraph, live: Mapping[str, str | None]) -> list[GraphService]:
    """The services that have pods, as they are to be restarted; those that the order does not name follow by their names."""
    strategy = graph.spec.restart.strategy if graph.spec.restart is not None else None
    order = list(strategy.order) if strategy is not None else []
    ranks = {name: rank for rank, name in reversed(list(enumerate(order)))}
    services = (service for service in graph.services if service.replicas > 0 or live[service.name] is not None)
    return sorted(services, key=lambda service: (ranks.get(service.name, len(ranks) + 1), service.name))


def _annotated(graph: InferenceGraph, ids: Mapping[str, str]) -> InferenceGraph:
    """The graph whose pods have these annotations, the same object for the same ids. An annotation that its author sets wins."""
    own = {service.name for service in graph.services if RESTARTED_AT in _own_annotations(service)}
    added = tuple(sorted((name, id) for name, id in ids.items() if name not in own))
    if not added:
        return graph

    def made() -> InferenceGraph:
        given = dict(added)
        services = (_with_id(service, given[service.name]) if service.name in given else service for service in graph.services)
        return InferenceGraph(graph.id, graph.annotations, graph.spec, tuple(services), graph.api_version, graph.faults)

    return graph.memo.recall(("restarted", added), (), made)


def _own_annotations(service: GraphService) -> Mapping[str, str]:
    spec = service.leading.spec
    return {**spec.annotations, **(spec.extra_pod_metadata.annotations if spec.extra_pod_metadata is not None else {})}


def _with_id(service: GraphService, id: str) -> GraphService:
    extra = service.spec.extra_pod_metadata or ExtraPodMetadata()
    metadata = extra.model_copy(update={"annotations": {**extra.annotations, RESTARTED_AT: id}})
    return GraphService(service.name, service.spec.model_copy(update={"extra_pod_metadata": metadata}), service.framework, service.envs)


def _ids_of_pods(observed: Observed) -> set[str]:
    """The ids in the templates of everything that runs services of a graph."""
    cliques = (clique for each in observed.nested.values() for clique in _cliques(each.root))
    own = (live for kind in (kinds.DEPLOYMENT, kinds.LEADER_WORKER_SET) for live in observed.slice(ONLY).of(kind.name))
    return {str(mapping(each.get("annotations")).get(RESTARTED_AT, "")) for each in cliques} | set(map(_annotation, own)) - {""}


def _cliques(root: Live) -> Iterable[Body]:
    return mappings(get(root.body, ("spec", "template", "cliques"), ()))


def _live_annotation(observed: Observed, graph: InferenceGraph, service: GraphService, orchestrator: Orchestrator) -> str | None:
    """The id in the pod template of a service that runs; empty without one, None if nothing runs it."""
    if orchestrator is Orchestrator.GROVE:
        name = clique_names(graph, service).clique(service.roles[0])
        cliques = (each for nested in observed.nested.values() for each in _cliques(nested.root) if each.get("name") == name)
        return next((str(mapping(each.get("annotations")).get(RESTARTED_AT, "")) for each in cliques), None)
    id = (
        kinds.LEADER_WORKER_SET.id(graph.namespace, instance_name(graph, service, 0))
        if service.is_multinode
        else kinds.DEPLOYMENT.id(graph.namespace, service_name(graph, service))
    )
    live = observed.slice(ONLY).objects.get(id)
    return None if live is None else _annotation(live)


def _annotation(component: Live) -> str:
    """The id in the pod template of a Deployment or a LeaderWorkerSet; empty without one."""
    path = ("template",) if component.id.kind == kinds.DEPLOYMENT.name else ("leaderWorkerTemplate", "leaderTemplate")
    template: Any = mapping(get(component.body, ("spec", *path), {}))
    return str(annotations_of(template).get(RESTARTED_AT, ""))


def _has_new_pods(observed: Observed, graph: InferenceGraph, service: GraphService, orchestrator: Orchestrator, id: str) -> bool:
    """Whether all pods of a service on Grove have been made since, and are ready. The status of a component says so itself."""
    if orchestrator is not Orchestrator.GROVE:
        return True
    key, target = labels.SCALING_GROUP if service.is_multinode else labels.PODCLIQUE, grove_target(graph, service)
    pods = (pod for nested in observed.nested.values() for part in nested.slices.values() for pod in part.of(kinds.POD.name))
    own = [pod for pod in pods if pod.labels.get(key) == target]
    return bool(own) and all(annotations_of(pod.body).get(RESTARTED_AT) == id and _is_ready(pod) for pod in own)


def _is_ready(pod: Live) -> bool:
    """Whether a pod is ready, or has completed."""
    status = mapping(pod.body.get("status"))
    return status.get("phase") == "Succeeded" or is_true(mappings(status.get("conditions") or ()), READY)
