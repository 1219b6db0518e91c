"""Labels of the objects that a graph owns, and labels and annotations of its pods."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from resources.base.labels import GRAPH_MANAGER, LONGEST_VALUE, MANAGED_BY, PART_OF
from resources.dynamo.model.framework import SUB_TYPES
from resources.dynamo.model.generation import GENERATION, generation_of
from resources.dynamo.model.graph import GraphService, InferenceGraph, Role
from resources.dynamo.model.names import SUFFIXES, clique_names, component, shortened

SELECTOR: Final = "nvidia.com/selector"
GRAPH_NAME: Final = "nvidia.com/dynamo-graph-deployment-name"
NAMESPACE: Final = "nvidia.com/dynamo-namespace"
COMPONENT_TYPE: Final = "nvidia.com/dynamo-component-type"
SUB_COMPONENT_TYPE: Final = "nvidia.com/dynamo-sub-component-type"
METRICS_ENABLED: Final = "nvidia.com/metrics-enabled"


class ServiceTypes(NamedTuple):
    """The component type and the sub-component type of a service, as spelled; empty if there is none."""

    component: str
    sub_component: str

    @property
    def meaning(self) -> "ServiceTypes":
        """The same types as v1beta1 means them: in lower case, and `decode` as a worker with that sub-component type."""
        kind, sub = self.component.lower(), self.sub_component.lower()
        return ServiceTypes("worker", kind) if kind in SUB_TYPES and sub in ("", kind) else ServiceTypes(kind, sub)


def types_shown(labels: Mapping[str, str]) -> ServiceTypes:
    """The types that the labels of a pod show."""
    return ServiceTypes(labels.get(COMPONENT_TYPE, ""), labels.get(SUB_COMPONENT_TYPE, ""))


def as_running(graph: InferenceGraph, running: Mapping[str, ServiceTypes]) -> InferenceGraph:
    """The graph whose services have their types as their running pods show them, where they mean the same: a graph that is rewritten in the
    other API version, which spells them otherwise, keeps its pods. `running`: clique or group, or service in lower case -> its types."""
    services = tuple(_as_running(service, shown) if (shown := _shown(graph, service, running)) else service for service in graph.services)
    is_same = all(service is before for service, before in zip(services, graph.services, strict=True))
    return graph if is_same else InferenceGraph(graph.id, graph.annotations, graph.spec, services, graph.api_version, graph.faults)


def _shown(graph: InferenceGraph, service: GraphService, running: Mapping[str, ServiceTypes]) -> ServiceTypes | None:
    return running.get(clique_names(graph, service).base) or running.get(service.key)


def _as_running(service: GraphService, shown: ServiceTypes) -> GraphService:
    specified = ServiceTypes(service.spec.component_type or "", service.spec.sub_component_type or "")
    if shown == specified or shown.meaning != specified.meaning:
        return service
    types = {"component_type": shown.component or None, "sub_component_type": shown.sub_component or None}
    return GraphService(service.name, service.spec.model_copy(update=types), service.framework, service.envs)


def own_labels(graph: InferenceGraph) -> dict[str, str]:
    """The labels by which the objects of a graph are recognised. Pods never carry them: there these keys belong to Grove."""
    return {MANAGED_BY: GRAPH_MANAGER, PART_OF: graph.name}


def pod_labels(graph: InferenceGraph, service: GraphService, role: Role) -> dict[str, str]:
    """The labels of the pods of one role: generated ones, overridden by the service's `labels`, then by `extraPodMetadata.labels`."""
    generated = {SELECTOR: selector(graph, service, role), GRAPH_NAME: graph.name, NAMESPACE: graph.dynamo_namespace}
    if kind := service.spec.component_type:
        generated[COMPONENT_TYPE] = kind
    if kind := service.spec.sub_component_type:
        generated[SUB_COMPONENT_TYPE] = kind
    if generation := generation_of(graph, service):
        generated[GENERATION] = generation
    if graph.metrics_enabled:
        generated[METRICS_ENABLED] = "true"
    extra = service.of(role).spec.extra_pod_metadata
    return {**generated, **service.spec.labels, **(extra.labels if extra is not None else {})}


def pod_annotations(service: GraphService, role: Role) -> dict[str, str]:
    """The annotations of the pods of one role: the service's `annotations`, overridden by `extraPodMetadata.annotations`."""
    spec = service.of(role).spec
    return {**spec.annotations, **(spec.extra_pod_metadata.annotations if spec.extra_pod_metadata is not None else {})}


def selector(graph: InferenceGraph, service: GraphService, role: Role) -> str:
    """The value of the selector label: `<graph>-<service>`, with `-ldr` or `-wkr` for several nodes; the names in full if they fit."""
    return shortened(f"{component(graph, service)}{SUFFIXES[role]}", LONGEST_VALUE)
