"""Services on the Grove path: one for each frontend, by which clients reach it."""

from collections.abc import Iterator
from typing import Final

from engine.resource import Hold, Policy, Want, held
from resources.base import kinds
from resources.base.fields import manifest, mappings, omitted_fields
from resources.dynamo.model.graph import GraphService, InferenceGraph, Orchestrator, about_service
from resources.dynamo.model.names import component, set_name, shortened
from resources.dynamo.objects.component_names import name_fault
from resources.dynamo.objects.labels import SELECTOR, own_labels, pod_labels
from resources.dynamo.pods.builder import PodFault, built_pod
from resources.ports.configuration import DynamoSettings
from resources.schema.formats import LONGEST_LABEL

FRONTEND: Final = "frontend"
HTTP: Final = 8000
HTTP_NAME: Final = "http"
"""The port of a frontend's Service, and its name."""
POLICY: Final = Policy(exact=(("spec", "selector"),), omitted=omitted_fields(kinds.SERVICE))
"""The selector is compared as a whole: on the component path the Service of the same name selects by other labels."""


def frontend_services(graph: InferenceGraph, settings: DynamoSettings) -> Iterator[Want | Hold]:
    """The Service of each frontend. It selects the pods of the service, of several nodes the leader's.

    Where the name that results cannot be that of a Service, it is held with the reason.
    """
    for service in frontends(graph):
        name = service_name(graph, service)
        body = manifest(
            kinds.SERVICE,
            graph.namespace,
            name,
            own_labels(graph),
            spec={
                "selector": {SELECTOR: pod_labels(graph, service, service.roles[0])[SELECTOR]},
                "ports": [{"name": HTTP_NAME, "port": HTTP, "targetPort": _target(graph, service, settings), "protocol": "TCP"}],
            },
        )
        resource = Want(
            kinds.SERVICE.id(graph.namespace, name), f"Service of frontend {service.name}", (graph.owner,), body=body, policy=POLICY
        )
        fault = name_fault(name) or _headless_fault(graph, name)
        yield held(resource, fault, blocked=True) if fault else resource


def _headless_fault(graph: InferenceGraph, name: str) -> str:
    """Why the PodCliqueSet leaves no room for a Service of this name; empty if it does. Its replica 0 has a headless Service."""
    return (
        f"the name {name!r} is that of the headless Service of the PodCliqueSet; rename the service"
        if name == f"{set_name(graph)}-0"
        else ""
    )


def frontends(graph: InferenceGraph) -> tuple[GraphService, ...]:
    """The services of the component type `frontend`."""
    return tuple(service for service in graph.services if service.component_type == FRONTEND)


def service_name(graph: InferenceGraph, service: GraphService) -> str:
    """`<graph>-<service>` in lower case, on both paths; shortened if the name of a Service cannot be that long."""
    return shortened(component(graph, service), LONGEST_LABEL)


def service_notes(graph: InferenceGraph) -> tuple[str, ...]:
    """The settings of services for which no Service is created."""
    return tuple(
        about_service(service, f"spec.services[{service.name}].modelRef: no Service for the model's endpoints is created", "modelRef")
        for service in graph.services
        if service.spec.model_ref is not None
    )


def _target(graph: InferenceGraph, service: GraphService, settings: DynamoSettings) -> int | str:
    """The port of the container: by its name where a container has a port of that name, so that its number may be any; else by number."""
    try:
        spec = built_pod(graph, service, service.roles[0], Orchestrator.GROVE, settings).spec
    except PodFault:
        return HTTP_NAME
    ports = [port for container in mappings(spec.get("containers")) for port in mappings(container.get("ports"))]
    return HTTP_NAME if any(port.get("name") == HTTP_NAME for port in ports) else HTTP
