"""Pod templates of the component path: the pod of a role with the labels and annotations by which Services and gangs recognise it."""

from collections.abc import Mapping
from typing import Any

from engine.canonical import digest
from resources.dynamo.model.graph import ENABLE_METRICS, GraphService, InferenceGraph, Orchestrator, Role
from resources.dynamo.objects.labels import (
    COMPONENT_TYPE,
    GRAPH_NAME,
    METRICS_ENABLED,
    NAMESPACE,
    SELECTOR,
    pod_annotations,
    pod_labels,
)
from resources.dynamo.pods.builder import built_pod
from resources.ports.configuration import DynamoSettings

COMPONENT = "nvidia.com/dynamo-component"
ROLE = "role"
INSTANCE = "instance-id"

STRATEGY = "nvidia.com/deployment-strategy"
DISCOVERY_OFF = "nvidia.com/disable-image-pull-secret-discovery"

TEMPLATE_HASH = "nvidia.com/dynamo-template-hash"
"""The label of a workload object with the hash of its pod templates as we computed them, before a server filled in its defaults."""

_FOR_US = frozenset({STRATEGY, ENABLE_METRICS, DISCOVERY_OFF})
"""Annotations of services that tell us what to make. They are not copied to pods: changing one must not restart them."""


def identity_labels(graph: InferenceGraph, service: GraphService) -> dict[str, str]:
    """The labels that identify the pods and objects of a service. Users cannot override them: Services select by them."""
    type_label = {COMPONENT_TYPE: service.spec.component_type} if service.spec.component_type else {}
    return {GRAPH_NAME: graph.name, COMPONENT: service.name, NAMESPACE: graph.dynamo_namespace, **type_label}


def object_labels(graph: InferenceGraph, service: GraphService) -> dict[str, str]:
    """The labels of a workload object: the user's labels of the service, overridden by those that identify it."""
    return {**service.spec.labels, **identity_labels(graph, service)}


def object_annotations(service: GraphService) -> dict[str, str]:
    """The annotations of a workload object: the user's annotations of the service."""
    return dict(service.spec.annotations)


def pod_template(graph: InferenceGraph, service: GraphService, role: Role, settings: DynamoSettings) -> dict[str, Any]:
    """The pod template of a role, with the ServiceAccount `default` unless the service names another.

    Raises `PodFault` if the manifest describes no such pod.
    """
    spec = dict(built_pod(graph, service, role, Orchestrator.COMPONENTS, settings).spec)
    spec["serviceAccountName"] = spec.get("serviceAccountName") or "default"
    if graph.spec.priority_class_name:
        spec["priorityClassName"] = spec.get("priorityClassName") or graph.spec.priority_class_name
    metadata: dict[str, Any] = {"labels": {**_labels(graph, service, role), ROLE: str(role)}}
    if annotations := _annotations(service, role):
        metadata["annotations"] = annotations
    return {"metadata": metadata, "spec": spec}


def template_hash(*templates: Mapping[str, Any]) -> str:
    """The value of `TEMPLATE_HASH` for these templates."""
    return digest(templates)[:32]


def _labels(graph: InferenceGraph, service: GraphService, role: Role) -> dict[str, str]:
    """The labels of all pods of a role. Without the selector label: the Deployment adds its own, a LeaderWorkerSet needs none."""
    labels = {**pod_labels(graph, service, role), **identity_labels(graph, service)}
    del labels[SELECTOR]
    if object_annotations(service.of(role)).get(ENABLE_METRICS) == "false":
        labels.pop(METRICS_ENABLED, None)
    return labels


def _annotations(service: GraphService, role: Role) -> dict[str, str]:
    return {key: value for key, value in pod_annotations(service, role).items() if key not in _FOR_US}
