"""Readiness on the Grove path: the state of each service, from the object that Grove makes of it."""

from collections.abc import Callable
from typing import Any, Final

from engine.ids import ResourceId
from engine.observed import Live
from engine.resource import Body
from resources.base.fields import mapping
from resources.dynamo.model.graph import GraphService, InferenceGraph
from resources.dynamo.model.state import NOT_FOUND, ServiceState
from resources.dynamo.objects.scaling import target_id

Find = Callable[[ResourceId], Live | None]

PREFIXES: Final = {True: "pcsg", False: "podclique"}
"""How reasons name the object of a service on several nodes, and of another."""


def service_states(graph: InferenceGraph, find: Find) -> tuple[ServiceState, ...]:
    """The state of every service, in the order of the graph. `find` returns the live object of an identity, None if it does not exist."""
    return tuple(_state(service, id, find(id)) for service in graph.services for id in (target_id(graph, service),))


def _state(service: GraphService, id: ResourceId, live: Live | None) -> ServiceState:
    """A service on several nodes is ready if all replicas of its group are available, another if all its pods are ready."""
    body = live.body if live else {}
    status = mapping(body.get("status"))
    usable = _count(status, "availableReplicas" if service.is_multinode else "readyReplicas")
    return ServiceState(
        service=service.name,
        component_kind=id.kind,
        component_name=id.name,
        replicas=_count(status, "replicas"),
        updated_replicas=_count(status, "updatedReplicas"),
        ready_replicas=None if service.is_multinode else usable,
        available_replicas=usable if service.is_multinode else None,
        reason=_reason(service, id, body, usable),
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
    """The replicas that the graph names, else those of the object, which autoscalers and people may set."""
    return service.replicas if service.spec.replicas is not None else _count(mapping(body.get("spec")), "replicas")


def _count(fields: Body, field: str) -> int:
    value: Any = fields.get(field)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
