"""Graph executor rules: the admission rules for what names the executor of vLLM, and the version of a runtime or of an operator."""

from collections.abc import Iterator, Mapping
from typing import Final

from resources.admission.graph_rules import service_path
from resources.dynamo.backends.executor import BACKEND, ORIGIN, executor_named
from resources.dynamo.model.graph import InferenceGraph
from resources.dynamo.model.runtime import MUST_BE_SEMVER, version_of
from resources.schema.issues import ErrorType, Issue, Path

MUST_BE_EXECUTOR: Final = 'must be "mp" or "ray"'


def issues(graph: InferenceGraph) -> Iterator[Issue]:
    """The issues of a graph. Annotations matter from the third form of pods on: graphs of older ones may have had any value."""
    for service in graph.services:
        version = service.spec.runtime_version_override
        if version and version_of(version) is None:
            yield Issue((*service_path(service.name), "runtimeVersionOverride"), ErrorType.INVALID, MUST_BE_SEMVER, version)
    if not graph.knows_ranks:
        return
    yield from _annotations(("metadata", "annotations"), graph.annotations)
    for service in graph.services:
        yield from _annotations((*service_path(service.name), "annotations"), service.spec.annotations)
        if (extra := service.spec.extra_pod_metadata) is not None:
            yield from _annotations((*service_path(service.name), "extraPodMetadata", "annotations"), extra.annotations)
        for number, role in enumerate(service.spec.roles):
            if role.pod_template is not None and (metadata := role.pod_template.metadata) is not None:
                path = (*service_path(service.name), "roles", number, "podTemplate", "metadata", "annotations")
                yield from _annotations(path, metadata.annotations)


def _annotations(path: Path, annotations: Mapping[str, str]) -> Iterator[Issue]:
    backend, origin = annotations.get(BACKEND), annotations.get(ORIGIN)
    if backend and executor_named(backend) is None:
        yield Issue((*path, BACKEND), ErrorType.INVALID, MUST_BE_EXECUTOR, backend)
    if origin and version_of(origin) is None:
        yield Issue((*path, ORIGIN), ErrorType.INVALID, MUST_BE_SEMVER, origin)
