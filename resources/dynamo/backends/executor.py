"""Executor: by what the nodes of a vLLM service on several nodes join: Ray, or vLLM's own executor `mp`; and why."""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Final

from msgspec import Struct

from engine.report.printable import printable
from resources.base.fields import mapping
from resources.base.labels import VLLM_BACKEND, VLLM_EXECUTORS
from resources.dynamo.backends.parallelism import framework_words
from resources.dynamo.backends.written_flags import EXECUTOR, written_flags
from resources.dynamo.model.framework import Framework
from resources.dynamo.model.graph import GraphService, InferenceGraph
from resources.dynamo.model.names import clique_names
from resources.dynamo.model.runtime import runtime_of, version_of

BACKEND: Final = VLLM_BACKEND
ORIGIN: Final = "nvidia.com/dynamo-operator-origin-version"
"""The annotation of a graph with the version of Dynamo's operator that made it."""
MP_IS_DEFAULT: Final = (1, 0, 0)
"""The version of the operator from which `mp` is the default."""
HAS_NO_RAY: Final = (1, 3, 0)
"""The version from which Dynamo's images have no Ray."""
SIDE_CHANNEL: Final = "VLLM_NIXL_SIDE_CHANNEL_HOST"
"""The variable with the address of a pod by which others reach its KV cache. Every pod on several nodes has it with `mp`."""
HYBRID_LOAD_BALANCING: Final = "--data-parallel-hybrid-lb"


class Executor(StrEnum):
    """The executors that join nodes."""

    RAY = "ray"
    MP = "mp"


class ExecutorChoice(Struct, frozen=True):
    """The executor of a service."""

    executor: Executor
    why: str
    """The reason, as the end of a sentence."""


def executor_of(graph: InferenceGraph, service: GraphService) -> ExecutorChoice:
    """The executor of a vLLM service on several nodes: the first that an annotation, its command, what runs, or its origin names.

    In the first two forms of pods it is always Ray.
    """
    if service.is_of_role:  # Both roles have one executor: that of the leader's template.
        service = next(each for each in graph.services if each.name == service.name)
    if not graph.knows_ranks and not service.templates:
        return ExecutorChoice(Executor.RAY, "it is that of the form of its pods")
    return graph.memo.recall(("executor", service.name), (), lambda: _executor_of(graph, service))


def distributed_services(graph: InferenceGraph) -> Iterator[GraphService]:
    """The vLLM services on several nodes: those that have an executor."""
    return (service for service in graph.services if service.is_multinode and service.framework is Framework.VLLM)


def executor_record(graph: InferenceGraph) -> str:
    """The executors of all services as the graph records them; empty if there are none."""
    return ",".join(f"{service.key}={executor_of(graph, service).executor}" for service in distributed_services(graph))


def annotation_of(graph: InferenceGraph, service: GraphService, key: str) -> str:
    """The value of an annotation of the pods of a service, else of its graph; empty without one."""
    spec = service.leading.spec
    of_pods = {**spec.annotations, **(spec.extra_pod_metadata.annotations if spec.extra_pod_metadata is not None else {})}
    return of_pods.get(key) or graph.annotations.get(key) or ""


def executor_named(value: object) -> Executor | None:
    """The executor of this name, in any case; None if it is none of the two."""
    text = str(value or "").lower()
    return next((executor for executor in Executor if executor == text), None)


def without_ray(graph: InferenceGraph, service: GraphService) -> str:
    """The image of a service that has no Ray, with its version; empty if it has Ray, or is not one of Dynamo's own."""
    runtime = runtime_of(graph, service)
    is_known = runtime.image.name == "vllm-runtime" and runtime.is_at_least(*HAS_NO_RAY) and not runtime.is_assumed
    return f"{runtime.image.name}:{runtime.image.tag}" if is_known else ""


def _executor_of(graph: InferenceGraph, service: GraphService) -> ExecutorChoice:
    if executor := executor_named(annotation_of(graph, service, BACKEND)):
        return ExecutorChoice(executor, f"the annotation {BACKEND} says so")
    written = written_flags(framework_words(service.main_container, service.framework))
    if executor := executor_named(written.value(EXECUTOR)):
        return ExecutorChoice(executor, f"its command has {EXECUTOR} {executor}")
    if executor := executor_named(_recorded(graph, service)):
        return ExecutorChoice(executor, "it runs so already")
    origin = annotation_of(graph, service, ORIGIN)
    if (version := version_of(origin)) is not None and version >= MP_IS_DEFAULT:
        return ExecutorChoice(Executor.MP, f"it was made by version {printable(origin)} of Dynamo's operator")
    if graph.is_written_as_v1beta1:
        return ExecutorChoice(Executor.MP, "it is written as v1beta1")
    if image := without_ray(graph, service):
        return ExecutorChoice(Executor.MP, f"the image {printable(image)} has no Ray")
    return ExecutorChoice(Executor.RAY, f"nothing asks for mp; the annotation {BACKEND}: mp does")


def _recorded(graph: InferenceGraph, service: GraphService) -> str:
    """What the graph records, by the name of the service or, where it was read from what runs, of its clique."""
    entries = (entry.partition("=") for entry in graph.annotations.get(VLLM_EXECUTORS, "").split(","))
    record = {name: value for name, _, value in entries}
    return record.get(service.key) or record.get(clique_names(graph, service).base) or ""


def running_executor(pod: Mapping[str, object]) -> Executor | None:
    """The executor that a pod spec of a leader or a worker shows; None if it shows none."""
    containers = pod.get("containers")
    for container in map(mapping, containers if isinstance(containers, list | tuple) else ()):
        line = " ".join(map(str, (*(container.get("command") or ()), *(container.get("args") or ()))))
        if "ray start" in line:
            return Executor.RAY
        names = {mapping(env).get("name") for env in container.get("env") or ()}
        if SIDE_CHANNEL in names or f"{EXECUTOR} {Executor.MP}" in line:
            return Executor.MP
        if HYBRID_LOAD_BALANCING in line:
            return Executor.RAY
    return None
