"""Readiness on the component path: the state of each service, from its LeaderWorkerSets or its Deployment."""

from collections.abc import Callable
from typing import Final

from engine.conditions import find
from engine.ids import ResourceId
from engine.observed import Live
from engine.report.printable import clipped
from engine.resource import Body
from resources.base import kinds
from resources.base.fields import count, mapping, mappings
from resources.dynamo.model.graph import GraphService, InferenceGraph
from resources.dynamo.model.state import NOT_FOUND, ServiceState
from resources.dynamo.objects.component_names import instance_name
from resources.dynamo.objects.service import service_name
from resources.ports.scheduler import refusal_of

FindLive = Callable[[ResourceId], Live | None]

SETS_NOT_READY: Final = "Some LeaderWorkerSets are not ready"
DEPLOYMENT_NOT_READY: Final = "Deployment is not ready"
WORDS: Final = 300
"""How many characters of a refusal are quoted: a status has room for those of all services."""


def component_states(graph: InferenceGraph, find: FindLive) -> tuple[ServiceState, ...]:
    """The state of every service, in the order of the graph. `find` returns the live object of an identity, None if it does not exist."""
    return tuple(
        _of_sets(graph, service, find) if service.is_multinode else _of_deployment(graph, service, find) for service in graph.services
    )


def _of_sets(graph: InferenceGraph, service: GraphService, find: FindLive) -> ServiceState:
    """The sums over the LeaderWorkerSets of all replicas. The service is ready if all of them are; with 0 replicas it is ready."""
    ids = [kinds.LEADER_WORKER_SET.id(graph.namespace, instance_name(graph, service, index)) for index in range(service.replicas)]
    lives = [find(id) for id in ids]
    statuses = [mapping(live.body.get("status")) for live in lives if live is not None]
    details = [detail for id, live in zip(ids, lives, strict=True) if (detail := _set_detail(id, live))]
    return ServiceState(
        service=service.name,
        component_kind=kinds.LEADER_WORKER_SET.name,
        component_name=instance_name(graph, service, 0),
        replicas=sum(count(status.get("replicas")) for status in statuses),
        updated_replicas=sum(count(status.get("updatedReplicas")) for status in statuses),
        ready_replicas=sum(count(status.get("readyReplicas")) for status in statuses),
        reason=f"{SETS_NOT_READY}: {', '.join(details)}" if details else "",
        exists=bool(statuses),
        has_room=not details or not any(_is_unplaced(id, find) for id in ids),
    )


def _is_unplaced(id: ResourceId, find: FindLive) -> bool:
    """Whether the scheduler of its PodGroup has found no nodes for a LeaderWorkerSet."""
    groups = (find(kind.id(id.namespace, id.name)) for kind in (kinds.POD_GROUP, kinds.VOLCANO_POD_GROUP))
    return any(group is not None and refusal_of(group) for group in groups)


def _set_detail(id: ResourceId, live: Live | None) -> str:
    """Why a LeaderWorkerSet is not ready; empty if its groups are ready and its condition `Available` is true."""
    subject = f"leaderworkerset/{id.name}"
    if live is None:
        return f"{subject}: {NOT_FOUND}"
    status = mapping(live.body.get("status"))
    desired, ready = count(mapping(live.body.get("spec")).get("replicas")), count(status.get("readyReplicas"))
    if desired == 0:
        return ""
    if ready < desired:
        return f"{subject}: desired={desired}, ready={ready}"
    return _unavailable(subject, live, status)


def _of_deployment(graph: InferenceGraph, service: GraphService, find: FindLive) -> ServiceState:
    """The counts of the Deployment. It is ready if all its pods are updated and available."""
    id = kinds.DEPLOYMENT.id(graph.namespace, service_name(graph, service))
    live = find(id)
    status = mapping(live.body.get("status")) if live else {}
    detail = _deployment_detail(service, id, live, status)
    is_paused = live is not None and mapping(live.body.get("spec")).get("paused") is True
    is_updated = count(status.get("updatedReplicas")) >= count(status.get("replicas"))
    is_current = live is not None and count(status.get("observedGeneration")) >= live.generation
    return ServiceState(
        service=service.name,
        component_kind=id.kind,
        component_name=id.name,
        replicas=count(status.get("replicas")),
        updated_replicas=count(status.get("updatedReplicas")),
        ready_replicas=count(status.get("readyReplicas")),
        available_replicas=count(status.get("availableReplicas")),
        reason=f"{DEPLOYMENT_NOT_READY}: {detail}" if detail else "",
        exists=live is not None,
        is_paused=is_paused and bool(detail) and not (is_updated and is_current),
    )


def _deployment_detail(service: GraphService, id: ResourceId, live: Live | None, status: Body) -> str:
    subject = f"deployment/{id.name}"
    if service.replicas == 0:
        return ""
    if live is None:
        return f"{subject}: {NOT_FOUND}"
    spec = mapping(live.body.get("spec"))
    desired = service.replicas if not service.is_scaled_by_others else count(spec.get("replicas"))
    if desired == 0:
        return ""
    for field, word in (("updatedReplicas", "updated"), ("availableReplicas", "available")):
        if (number := count(status.get(field))) < desired:
            is_current = status.get("observedGeneration", live.generation) == live.generation
            refusal = _refusal(status) if is_current else ""
            return f"{subject}: its pods are refused: {refusal}" if refusal else f"{subject}: desired={desired}, {word}={number}"
    if (outdated := count(status.get("replicas")) - count(status.get("updatedReplicas"))) > 0:
        return f"{subject}: desired={desired}, outdated={outdated}"
    return _unavailable(subject, live, status)


def _refusal(status: Body) -> str:
    """With which words the API server refuses pods to the controller of a Deployment, in short; empty if it does not."""
    failure = find(mappings(status.get("conditions")), "ReplicaFailure") or {}
    is_refused = failure.get("status") == "True" and failure.get("reason") == "FailedCreate"
    return clipped(str(failure.get("message") or ""), WORDS) if is_refused else ""


def _unavailable(subject: str, live: Live, status: Body) -> str:
    """Why an object whose counts suffice is not ready: its status is that of an earlier generation, or it is not available."""
    if "observedGeneration" in status and count(status.get("observedGeneration")) < live.generation:
        return f"{subject}: its latest change is not observed yet"
    is_available = any(entry.get("type") == "Available" and entry.get("status") == "True" for entry in mappings(status.get("conditions")))
    return "" if is_available else f"{subject}: condition Available is not True"
