"""Graph warnings: what is admitted in a DynamoGraphDeployment although its author probably meant something else."""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from engine.resource import Body
from resources.admission import annotation_rules
from resources.admission.graph_provider_rules import DISAGGREGATED_SETS
from resources.admission.graph_rules import quote, service_field, service_path
from resources.base import names
from resources.base.fields import mapping, mappings
from resources.base.labels import GRAPH_SCHEDULER, OTHER_VERSION, POD_FORM, SPREAD, VLLM_EXECUTORS, WORKER_SUFFIX, WRITTEN_AS
from resources.dynamo.backends.executor import BACKEND, ORIGIN
from resources.dynamo.backends.parallelism import mismatch
from resources.dynamo.model.form import PROVIDER
from resources.dynamo.model.framework import OTHERS, WORKERS, Framework
from resources.dynamo.model.graph import (
    ENABLE_GROVE,
    ENABLE_METRICS,
    KAI_QUEUE,
    VOLCANO_QUEUE,
    GraphService,
    InferenceGraph,
    Role,
    about_service,
)
from resources.dynamo.model.pod_template import MAIN
from resources.dynamo.model.runtime import runtime_of
from resources.dynamo.objects.components import component_notes
from resources.dynamo.objects.ingress import ingress_notes
from resources.dynamo.objects.pod_template import DISCOVERY_OFF, STRATEGY
from resources.dynamo.objects.podcliqueset import UPDATE_STRATEGY, set_notes
from resources.dynamo.objects.service import service_notes
from resources.dynamo.pods.defaults import PLANNER_ACCOUNT
from resources.dynamo.pods.role_paths import role_path
from resources.dynamo.versions.api_versions import ALPHA_ONLY
from resources.ports.configuration import Configuration
from resources.schema.dynamo import DynamoGraphDeployment, ExtraPodMetadata, GraphServiceSpec
from resources.schema.dynamo_parts import TemplateMetadata
from resources.schema.issues import Located, Path, spelled
from resources.schema.meta import ObjectMeta
from resources.schema.unknown_fields import nearest_name

KEYS: Final = frozenset(
    (
        *(ENABLE_GROVE, KAI_QUEUE, ENABLE_METRICS, STRATEGY, DISCOVERY_OFF, POD_FORM, SPREAD, PROVIDER, ALPHA_ONLY, OTHER_VERSION),
        *(BACKEND, ORIGIN, VLLM_EXECUTORS, WORKER_SUFFIX, VOLCANO_QUEUE, UPDATE_STRATEGY, DISAGGREGATED_SETS, GRAPH_SCHEDULER),
        WRITTEN_AS,
    )
)
"""The annotations that are read from graphs alone."""
AUTOSCALING = (
    "is deprecated and ignored. Use DynamoGraphDeploymentScalingAdapter with HPA, KEDA, or Planner for autoscaling instead. "
    "See docs/kubernetes/autoscaling.md"
)


def warnings(graph: InferenceGraph) -> Iterator[str]:
    """Warnings about the settings of one version of a graph."""
    for service in graph.services:
        yield from _service(service)
        yield from _runtime(graph, service)


def mistyped(model: DynamoGraphDeployment, configuration: Configuration) -> Iterator[Located]:
    """A warning for each annotation and label of a graph or a service whose key is a typing error of a known one."""
    return annotation_rules.mistyped(_written_keys(model), annotation_rules.known_keys(configuration) | KEYS)


def _written_keys(model: DynamoGraphDeployment) -> Iterator[Path]:
    for path, holder in _with_keys(model):
        for field, keys in (("annotations", holder.annotations), ("labels", holder.labels)):
            yield from ((*path, field, key) for key in keys or ())


def _with_keys(model: DynamoGraphDeployment) -> Iterator[tuple[Path, ObjectMeta | GraphServiceSpec | ExtraPodMetadata | TemplateMetadata]]:
    """The parts of a graph that have annotations and labels."""
    yield ("metadata",), model.metadata
    for name, service in model.spec.services.items():
        yield service_path(name), service
        if service.extra_pod_metadata is not None:
            yield (*service_path(name), "extraPodMetadata"), service.extra_pod_metadata
        for number, role in enumerate(service.roles):
            if role.pod_template is not None and role.pod_template.metadata is not None:
                yield (*service_path(name), "roles", number, "podTemplate", "metadata"), role.pod_template.metadata


def notes(graph: InferenceGraph, configuration: Configuration) -> Iterator[str]:
    """What becomes of a graph without issues and is not evident: shortened names, and settings that have no effect."""
    if graph.may_use_grove:
        yield from set_notes(graph)
    else:
        yield from _scaled_down(graph)
        yield from component_notes(graph)
    yield from ingress_notes(graph, configuration.dynamo)
    yield from service_notes(graph)


def _service(service: GraphService) -> Iterator[Located]:
    field, spec = service_field(service.name), service.spec
    if difference := mismatch(service):
        yield about_service(service, f"{field}: {difference}")
    if service.is_multinode and service.framework is not Framework.TRTLLM and not service.gpus and not _has_gpus(service.main_container):
        limit, path = _gpu_limit(service)
        text = "a service on several nodes usually has GPUs; without their number it is not compared with the parallel sizes of the command"
        yield Located(f"{field}.{limit}: {text}", path)
    if service.requested_gpus and service.gpus is None and not _has_gpus(service.main_container):
        text = "pods get GPUs by resources.limits.gpu only; a request counts the processes of TensorRT-LLM"
        yield about_service(service, f"{field}.resources.requests.gpu: {text}", "resources", "requests", "gpu")
    if service.component_type == "planner" and not service.extra_pod_spec.get("serviceAccountName"):
        text = f"planners run as the ServiceAccount {PLANNER_ACCOUNT}; neither it nor its roles are created, so it must exist"
        yield about_service(service, f"{field}: {text}")
    yield from _types(service)
    yield from dict.fromkeys(_pull_secrets(service))
    if spec.autoscaling is not None:
        yield about_service(service, f"{field}.autoscaling {AUTOSCALING}", "autoscaling")
    if spec.scaling_adapter is not None and not spec.scaling_adapter.enabled:
        text = f"{field}.scalingAdapter is off without enabled: true; the number of replicas is {field}.replicas"
        yield about_service(service, text, "scalingAdapter")
    if spec.global_dynamo_namespace is not None:
        text = f"{field}.globalDynamoNamespace is ignored: the Dynamo namespace is that of dynamoNamespace"
        yield about_service(service, text, "globalDynamoNamespace")


def _types(service: GraphService) -> Iterator[Located]:
    """A type that is nearly one of those with defaults: any is accepted. With another first letter it is another word, such as `encode`."""
    for key, written in (("componentType", service.spec.component_type), ("subComponentType", service.spec.sub_component_type)):
        kind = (written or "").lower()
        known = sorted(each for each in WORKERS | OTHERS if each[0] == kind[:1])
        if kind not in known and (near := nearest_name(kind, known)):
            text = f"{service_field(service.name)}.{key}: {quote(kind)} is none of the types with a meaning; did you mean {near}?"
            yield about_service(service, text, key)


def _pull_secrets(service: GraphService) -> Iterator[Located]:
    """A pull secret that is named more than once: pods name each once."""
    for role in service.roles:
        path = role_path(service, role, (*service_path(service.name), "extraPodSpec", "imagePullSecrets"))
        named = Counter(str(each.get("name")) for each in mappings(service.of(role).extra_pod_spec.get("imagePullSecrets")))
        for name in (name for name, times in named.items() if times > 1):
            yield Located(f"{spelled(path)}: {quote(name)} is named {named[name]} times; pods name it once", path)


def _gpu_limit(service: GraphService) -> tuple[str, Path]:
    """The field of a service with the GPUs of its leader, and its path."""
    path = (*service_path(service.name), "resources", "limits", "gpu")
    if not service.templates:
        return "resources.limits.gpu", path
    below = f"podTemplate.spec.containers[{MAIN}].resources.limits[{names.NVIDIA_GPU}]"
    return f"roles[{Role.LEADER}].{below}", role_path(service, Role.LEADER, path)


def _runtime(graph: InferenceGraph, service: GraphService) -> Iterator[Located]:
    """That the version of a worker's runtime is assumed, because nothing says it."""
    is_worker = service.is_multinode or service.component_type in WORKERS
    if graph.knows_ranks and is_worker and (runtime := runtime_of(graph, service)).is_assumed:
        tag = runtime.image.tag
        why = f"the tag {quote(tag)} of its image is no version" if tag else "its image has no tag"
        text = f"{why}, so the newest runtime is assumed; runtimeVersionOverride can name it"
        yield about_service(service, f"{service_field(service.name)}: {text}")


def _scaled_down(graph: InferenceGraph) -> Iterator[Located]:
    for service in graph.services:
        if service.replicas == 0:
            text = f"{service_field(service.name)}.replicas: with 0 replicas the service has no pods until it is scaled up"
            yield about_service(service, text, "replicas")


def _has_gpus(container: Body) -> bool:
    return bool(mapping(mapping(container.get("resources")).get("limits")).get(names.NVIDIA_GPU))
