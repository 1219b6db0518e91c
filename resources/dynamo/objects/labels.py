"""Labels of the objects that a graph owns, and labels and annotations of its pods."""

from typing import Final

from resources.base.labels import GRAPH_MANAGER, LONGEST_VALUE, MANAGED_BY, PART_OF
from resources.dynamo.model.generation import GENERATION, generation_of
from resources.dynamo.model.graph import GraphService, InferenceGraph, Role
from resources.dynamo.model.names import SUFFIXES, component, shortened

SELECTOR: Final = "nvidia.com/selector"
GRAPH_NAME: Final = "nvidia.com/dynamo-graph-deployment-name"
NAMESPACE: Final = "nvidia.com/dynamo-namespace"
COMPONENT_TYPE: Final = "nvidia.com/dynamo-component-type"
SUB_COMPONENT_TYPE: Final = "nvidia.com/dynamo-sub-component-type"
METRICS_ENABLED: Final = "nvidia.com/metrics-enabled"


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
