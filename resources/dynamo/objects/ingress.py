"""Ingresses: one for each frontend that is exposed, on both paths."""

from collections.abc import Iterator
from typing import Any, Final

from engine.resource import Policy, Want
from resources.base import kinds
from resources.base.fields import manifest, omitted_fields
from resources.dynamo.model.graph import GraphService, InferenceGraph, about_service
from resources.dynamo.objects.labels import own_labels
from resources.dynamo.objects.service import FRONTEND, HTTP, frontends, service_name
from resources.ports.configuration import DynamoSettings
from resources.schema.dynamo import ServiceIngress

NOT_SET: Final = ServiceIngress()
POLICY: Final = Policy(owned=(("spec", "tls"),), omitted=omitted_fields(kinds.INGRESS))
"""A certificate that the service no longer names is removed from the Ingress."""


def ingresses(graph: InferenceGraph, settings: DynamoSettings) -> Iterator[Want]:
    """The Ingress of each exposed frontend: enabled, by itself or by an Ingress class in the settings, and with an Ingress class."""
    for service in frontends(graph):
        if _is_enabled(service, settings) and _ingress_class(service, settings):
            yield _ingress(graph, service, settings)


def ingress_notes(graph: InferenceGraph, settings: DynamoSettings) -> tuple[str, ...]:
    """The Ingress settings of services that have no effect, each with its field and the reason."""
    return tuple(note for service in graph.services for note in _notes(service, settings))


def ingress_host(graph: InferenceGraph, service: GraphService, settings: DynamoSettings) -> str:
    """The host of a service's Ingress: prefix and host, a dot and the suffix. The host is the graph's name if the service names none."""
    spec = _spec(service)
    host = f"{spec.host_prefix or ''}{spec.host or graph.name}"
    suffix = spec.host_suffix or settings.ingress_host_suffix
    return f"{host}.{suffix}" if suffix else host


def _ingress(graph: InferenceGraph, service: GraphService, settings: DynamoSettings) -> Want:
    name, host, ingress = service_name(graph, service), ingress_host(graph, service, settings), _spec(service)
    backend = {"service": {"name": name, "port": {"number": HTTP}}}
    spec: dict[str, Any] = {
        "ingressClassName": _ingress_class(service, settings),
        "rules": [{"host": host, "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}}],
    }
    if ingress.tls is not None and ingress.tls.secret_name:
        spec["tls"] = [{"hosts": [host], "secretName": ingress.tls.secret_name}]
    body = manifest(
        kinds.INGRESS,
        graph.namespace,
        name,
        {**ingress.labels, **own_labels(graph)},
        annotations=ingress.annotations,
        spec=spec,
    )
    id = kinds.INGRESS.id(graph.namespace, name)
    return Want(id, f"Ingress of frontend {service.name}", (graph.owner,), body=body, policy=POLICY)


def _spec(service: GraphService) -> ServiceIngress:
    return service.spec.ingress or NOT_SET


def _is_enabled(service: GraphService, settings: DynamoSettings) -> bool:
    """A frontend without Ingress settings is exposed wherever the settings have an Ingress class."""
    return bool(settings.ingress_class if service.spec.ingress is None else service.spec.ingress.enabled)


def _ingress_class(service: GraphService, settings: DynamoSettings) -> str:
    return _spec(service).ingress_controller_class_name or settings.ingress_class


def _notes(service: GraphService, settings: DynamoSettings) -> Iterator[str]:
    if not _spec(service).enabled:
        return
    field = f"spec.services[{service.name}].ingress"
    if service.component_type != FRONTEND:
        yield about_service(service, f"{field}: no Ingress is created, because the component type is not {FRONTEND}", "ingress")
        return
    if _spec(service).use_virtual_service:
        text = f"{field}.useVirtualService: VirtualServices are not supported, none is created"
        yield about_service(service, text, "ingress", "useVirtualService")
    if not _ingress_class(service, settings):
        text = f"{field}.ingressControllerClassName: no Ingress is created, because neither the service nor the configuration names a class"
        yield about_service(service, text, "ingress")
