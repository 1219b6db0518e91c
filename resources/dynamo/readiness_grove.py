"""Readiness on the Grove path: the state of each service, from the object that Grove makes of it."""

from collections.abc import Callable, Iterable
from typing import Final

from msgspec.structs import replace

from engine.ids import ResourceId
from engine.observed import Live
from engine.paths import get
from engine.resource import Body
from resources.base import labels
from resources.base.fields import count, mapping, mappings
from resources.dynamo.model.graph import GraphService, InferenceGraph
from resources.dynamo.model.state import NOT_FOUND, ServiceState
from resources.dynamo.objects.scaling import target_id

Find = Callable[[ResourceId], Live | None]

UNSCHEDULABLE: Final = "Unschedulable"
"""The reason with which a scheduler reports that it has found no node."""
PREFIXES: Final = {True: "pcsg", False: "podclique"}
"""How reasons name the object of a service on several nodes, and of another."""


def service_states(graph: InferenceGraph, find: Find, pods: Callable[[], Iterable[Live]] = tuple) -> tuple[ServiceState, ...]:
    """The state of every service, in the order of the graph. `find` returns the live object of an identity, None if it does not exist.

    `pods` returns the pods of the graph; they are read only while a service is not ready.
    """
    states = tuple(_state(service, id, find(id)) for service in graph.services for id in (target_id(graph, service),))
    if all(state.is_ready or not state.exists for state in states):
        return states
    unplaced = _without_nodes(pods())
    return tuple(replace(state, has_room=state.is_ready or state.component_name not in unplaced) for state in states)


def _without_nodes(pods: Iterable[Live]) -> frozenset[str]:
    """The names of the PodCliques and scaling groups of pods for which the scheduler has found no node."""
    waiting = [pod for pod in pods if not get(pod.body, ("spec", "nodeName")) and _is_unschedulable(pod)]
    return frozenset(pod.labels[key] for pod in waiting for key in (labels.PODCLIQUE, labels.SCALING_GROUP) if key in pod.labels)


def _is_unschedulable(pod: Live) -> bool:
    conditions = mappings(mapping(pod.body.get("status")).get("conditions"))
    return any(each.get("status") == "False" and each.get("reason") == UNSCHEDULABLE for each in conditions)


def _state(service: GraphService, id: ResourceId, live: Live | None) -> ServiceState:
    """A service on several nodes is ready if all replicas of its group are available, another if all its pods are ready."""
    body = live.body if live else {}
    status = mapping(body.get("status"))
    usable = count(status.get("availableReplicas" if service.is_multinode else "readyReplicas"))
    return ServiceState(
        service=service.name,
        component_kind=id.kind,
        component_name=id.name,
        replicas=count(status.get("replicas")),
        updated_replicas=count(status.get("updatedReplicas")),
        ready_replicas=None if service.is_multinode else usable,
        available_replicas=usable if service.is_multinode else None,
        reason=_reason(service, id, body, usable),
        exists=live is not None,
    )


def _reason(service: GraphService, id: ResourceId, body: Body, usable: int) -> str:
    """Why the service is not ready; empty if it is. One with 0 replicas is, whatever exists."""
    if service.replicas == 0:
        return ""
    subject = f"{PREFIXES[service.is_multinode]}/{id.name}"
    if not body:
        return f"{subject}: {NOT_FOUND}"
    desired = _desired(service, body)
    counted = "available" if service.is_multinode else "ready"
    return "" if desired == usable else f"{subject}: desired={desired}, {counted}={usable}"


def _desired(service: GraphService, body: Body) -> int:
    """The replicas that the graph names, else those of the object, which autoscalers and users may set."""
    return service.replicas if not service.is_scaled_by_others else count(mapping(body.get("spec")).get("replicas"))
