"""Services on the component path: one for each service of a graph, and a second one for a frontend."""

from collections.abc import Iterator, Sequence

from engine.resource import Body, Hold, Want, held
from resources.base import kinds, labels
from resources.base.fields import manifest, mapping, mappings
from resources.dynamo.model.graph import GraphService, InferenceGraph, Role
from resources.dynamo.model.names import clique_names
from resources.dynamo.objects.component_names import instance_name, name_fault, public_service_name
from resources.dynamo.objects.labels import own_labels
from resources.dynamo.objects.pod_template import ROLE, identity_labels
from resources.dynamo.objects.service import FRONTEND, HTTP, POLICY, service_name

SYSTEM = 9090
"""The port of every service but a frontend, on which Dynamo answers for health and metrics."""

COMPONENT_SERVICE = "dynamo-component-service"
"""The value of `app.kubernetes.io/component` of these Services."""


def component_services(graph: InferenceGraph, service: GraphService, template: Body) -> Iterator[Want | Hold]:
    """The Services of one service. `template` is the pod template of its leader or only pod, empty if it cannot be built.

    A frontend has a second Service, unless another service's has its name.
    """
    containers = mappings(mapping(template.get("spec")).get("containers"))
    yield _service(graph, service, service_name(graph, service), containers)
    if service.component_type == FRONTEND and not missing_public_service(graph, service):
        yield _service(graph, service, public_service_name(graph, service), containers)


def missing_public_service(graph: InferenceGraph, service: GraphService) -> str:
    """The name of a frontend's second Service that is not made, because another service's has it; empty if it is made, or not needed."""
    public = public_service_name(graph, service)
    return public if service.component_type == FRONTEND and public in service_names(graph) else ""


def service_names(graph: InferenceGraph) -> frozenset[str]:
    """The names of the Services of all services, without the second ones."""
    return frozenset(service_name(graph, service) for service in graph.services)


def object_names(graph: InferenceGraph, service: GraphService) -> Iterator[tuple[str, str]]:
    """Kind and name of the objects of a service whose names are shortened, or end in its role: those of LeaderWorkerSets for replica
    numbers of up to four digits."""
    for role in service.roles if graph.may_use_grove and service.replicas > 0 else ():
        yield kinds.PODCLIQUE.name, clique_names(graph, service).clique(role)
    yield kinds.SERVICE.name, service_name(graph, service)
    if service.component_type == FRONTEND:
        yield f"second {kinds.SERVICE.name}", public_service_name(graph, service)
    for index in (0, 10, 100, 1000) if service.is_multinode else ():
        yield kinds.LEADER_WORKER_SET.name, instance_name(graph, service, index)


def _service(graph: InferenceGraph, service: GraphService, name: str, containers: Sequence[Body]) -> Want | Hold:
    """A Service of the pods of a service; of several nodes it selects the leader, the only pod that answers requests."""
    port_name, port = ("http", HTTP) if service.component_type == FRONTEND else ("system", SYSTEM)
    role = {ROLE: str(Role.LEADER)} if service.is_multinode else {}
    target: int | str = port_name if _has_port(containers, port_name) else port
    body = manifest(
        kinds.SERVICE,
        graph.namespace,
        name,
        {**identity_labels(graph, service), labels.COMPONENT: COMPONENT_SERVICE, **own_labels(graph)},
        spec={
            "selector": {**identity_labels(graph, service), **role},
            "ports": [{"name": port_name, "port": port, "targetPort": target, "protocol": "TCP"}],
        },
    )
    resource = Want(kinds.SERVICE.id(graph.namespace, name), f"Service of {service.name}", (graph.owner,), body=body, policy=POLICY)
    fault = name_fault(name)
    return held(resource, fault, blocked=True) if fault else resource


def _has_port(containers: Sequence[Body], name: str) -> bool:
    return any(port.get("name") == name for container in containers for port in mappings(container.get("ports")))
