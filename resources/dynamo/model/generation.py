"""Generation: the suffix of the Dynamo namespace by which the workers of a graph before and after an edit are told apart, on request.

All services of the types worker, prefill and decode have one generation: an edit of one of them replaces the pods of all.
"""

from typing import Final

from engine.canonical import digest
from resources.base.labels import ENABLED, WORKER_SUFFIX
from resources.dynamo.model.framework import WORKERS
from resources.dynamo.model.graph import GraphService, InferenceGraph

SUFFIX_VARIABLE: Final = "DYN_NAMESPACE_WORKER_SUFFIX"
"""What Dynamo appends to the namespace of a worker; a frontend serves every namespace that begins with its own."""
GENERATION: Final = "nvidia.com/dynamo-worker-hash"
"""The label of the pods of workers with their generation."""
LENGTH: Final = 8
NO_PART: Final = frozenset({"replicas", "minAvailable", "scalingAdapter", "labels", "annotations", "extraPodMetadata"})
"""The fields of a service that are no part of its generation: with them, its workers do the same."""


def generation_of(graph: InferenceGraph, service: GraphService) -> str:
    """The generation of a worker, eight characters; empty for other services, and in graphs that do not ask for it."""
    if graph.annotations.get(WORKER_SUFFIX) != ENABLED or not _is_worker(service):
        return ""
    return graph.memo.recall("generation", (), lambda: _generation(graph))


def _is_worker(service: GraphService) -> bool:
    return service.component_type in WORKERS


def _generation(graph: InferenceGraph) -> str:
    workers = [service for service in graph.services if _is_worker(service)]
    specs = {
        each.name: {
            "spec": {field: value for field, value in each.spec.body().items() if field not in NO_PART},
            "envs": list(each.envs),
            "framework": str(each.framework),
        }
        for each in workers
    }
    return digest([specs, graph.form.value])[:LENGTH]
