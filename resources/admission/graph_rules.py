"""Graph rules: the admission rules for one version of a DynamoGraphDeployment, besides those about its pods (`graph_objects`).

The messages that Dynamo's operator has are its own, and name the field themselves.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

from engine.quantity import amount, is_zero
from engine.report.printable import clipped
from resources.admission import metadata_rules
from resources.dynamo.model.framework import Framework
from resources.dynamo.model.graph import GraphService, InferenceGraph, whole_amount
from resources.dynamo.objects.component_service import object_names
from resources.schema.dynamo import GraphServiceSpec, GraphVolumeClaim
from resources.schema.formats import LABEL, label_faults, value_faults
from resources.schema.issues import MAX_VALUE, ErrorType, Issue, Path, duplicates

MOST_NODES: Final = 10_000
"""The largest number of nodes of one replica. The command of its leader names all of them."""
ACCESS_MODES: Final = ("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod")
"""How nodes and pods may mount a claim."""
LONGEST_MESSAGE: Final = 800
"""The largest number of characters of a message that names its field itself."""


class SentenceIssue(Issue, frozen=True):
    """An issue whose message names the field itself, as Dynamo's operator words it."""

    @property
    def detail(self) -> str:
        """The message."""
        return clipped(self.message, LONGEST_MESSAGE)

    def __str__(self) -> str:
        """The message."""
        return self.detail


def issues(graph: InferenceGraph) -> Iterator[Issue]:
    """The issues of a graph that has the right shape and its defaults, on create and on update."""
    if not graph.services:
        yield sentence(("spec", "services"), "spec.services must have at least one service")
    for number, claim in enumerate(graph.pvcs):
        yield from _claim(number, claim)
    yield from duplicates(((*("spec", "pvcs"), number, "name"), claim.name) for number, claim in enumerate(graph.pvcs) if claim.name)
    yield from _equal_names(graph)
    yield from _namespaces(graph)
    for service, fault in graph.faults:
        path = (*service_path(service), "extraPodSpec", "mainContainer")
        yield sentence(path, f"failed to determine backend framework for service {quote(service)}: {fault}")
    undetermined = dict(graph.faults)
    for graph_service in graph.services:
        yield from _service(graph, graph_service, has_framework=graph_service.name not in undetermined)


def service_path(service: str) -> Path:
    """The path of a service."""
    return "spec", "services", service


def service_field(service: str) -> str:
    """The path of a service as Dynamo's operator writes it, e.g. `spec.services[decode]`."""
    return f"spec.services[{quote(service)}]"


def quote(name: str) -> str:
    """A name within a message: clipped and printable."""
    return clipped(name, MAX_VALUE)


def sentence(path: Path, message: str) -> Issue:
    """An issue at that path whose message names the field itself."""
    return SentenceIssue(path, ErrorType.INVALID, message)


def _claim(number: int, claim: GraphVolumeClaim) -> Iterator[Issue]:
    path: Path = ("spec", "pvcs", number)
    if not claim.name:
        yield sentence((*path, "name"), f"spec.pvcs[{number}].name is required")
    if claim.create:
        size = "" if _is_absent(claim.size) else claim.size
        needed = {"storageClass": claim.storage_class, "size": size, "volumeAccessMode": claim.volume_access_mode}
        for field in (field for field, value in needed.items() if not value):
            yield sentence((*path, field), f"spec.pvcs[{number}].{field} is required when create is true")
        if (mode := claim.volume_access_mode) and mode not in ACCESS_MODES:
            known = ", ".join(f'"{each}"' for each in ACCESS_MODES)
            yield Issue((*path, "volumeAccessMode"), ErrorType.UNSUPPORTED, f"supported values: {known}", mode)
        if size and (amount(str(size)) or 0) < 0:
            yield Issue((*path, "size"), ErrorType.INVALID, "must be greater than zero", size)


def _equal_names(graph: InferenceGraph) -> Iterator[Issue]:
    """Services whose names differ only in case, because the names of their objects are in lower case; or whose objects would have equal
    names once these are shortened or end in a role."""
    first: dict[str, str] = {}
    owners: dict[tuple[str, str], str] = {}
    for service in graph.services:
        path = service_path(service.name)
        if service.key in first:
            message = f"differs from the service {quote(first[service.key])} in case only, and names of objects are in lower case"
            yield Issue(path, ErrorType.DUPLICATE, message, service.name)
            continue
        first[service.key] = service.name
        taken = {named: owners[named] for named in object_names(graph, service) if named in owners}
        for (kind, name), other in list(taken.items())[:1]:
            message = f"its {kind} would have the name of that of the service {quote(other)}, {quote(name)}: rename one of them"
            yield Issue(path, ErrorType.DUPLICATE, message, service.name)
        owners.update(dict.fromkeys(object_names(graph, service), service.name))


def _namespaces(graph: InferenceGraph) -> Iterator[Issue]:
    """Services whose Dynamo namespace is not that of the first service that names one."""
    for service in graph.services:
        own = service.spec.dynamo_namespace
        if own and own != graph.dynamo_namespace:
            shared = quote(graph.dynamo_namespace)
            yield sentence(
                (*service_path(service.name), "dynamoNamespace"),
                f"{service_field(service.name)}.dynamoNamespace: namespace mismatch for component {quote(service.name)}: "
                f"graph uses namespace {shared} but component specifies {quote(own)}",
            )


def _service(graph: InferenceGraph, service: GraphService, *, has_framework: bool) -> Iterator[Issue]:
    path, field, spec = service_path(service.name), service_field(service.name), service.spec
    if service.replicas < 0:
        yield sentence((*path, "replicas"), f"{field}.replicas must be non-negative")
    if service.nodes > MOST_NODES:
        yield Issue((*path, "multinode", "nodeCount"), ErrorType.INVALID, f"must be at most {MOST_NODES}", service.nodes)
    if spec.ingress is not None and spec.ingress.enabled and not spec.ingress.host:
        yield sentence((*path, "ingress", "host"), f"{field}.ingress.host is required when ingress is enabled")
    yield from _mounts(path, field, service, has_framework=has_framework)
    if spec.shared_memory is not None and not spec.shared_memory.disabled and _is_absent(spec.shared_memory.size):
        yield sentence((*path, "sharedMemory", "size"), f"{field}.sharedMemory.size is required when disabled is false")
    yield from _gpus(path, service)
    yield from _names(service)
    yield from _metadata(path, spec)


def _mounts(path: Path, field: str, service: GraphService, *, has_framework: bool) -> Iterator[Issue]:
    """The issues of volume mounts. A cache may do without a path where the framework has a default: vLLM; not judged if none is found."""
    for number, mount in enumerate(service.spec.volume_mounts):
        place, where = (*path, "volumeMounts", number), f"{field}.volumeMounts[{number}]"
        if not mount.name:
            yield sentence((*place, "name"), f"{where}: volumeMount.name is required when volumeMounts is set")
        if mount.mount_point:
            continue
        if not mount.use_as_compilation_cache:
            yield sentence((*place, "mountPoint"), f"{where}.mountPoint is required when useAsCompilationCache is false")
        elif has_framework and service.framework is not Framework.VLLM:
            yield sentence(
                (*place, "mountPoint"),
                f"{where}: volumeMount with useAsCompilationCache=true requires an explicit mountPoint "
                f"for backend framework {service.framework} (no default available)",
            )


def _gpus(path: Path, service: GraphService) -> Iterator[Issue]:
    """The numbers of GPUs: whole, and given for a multinode TensorRT-LLM service, because `mpirun` starts one process for each."""
    amounts = {"limits": service.gpu_amount("limits"), "requests": service.gpu_amount("requests")}
    broken = [kind for kind, value in amounts.items() if value and amount(value) is not None and whole_amount(value) is None]
    for kind in broken:
        yield Issue((*path, "resources", kind, "gpu"), ErrorType.INVALID, "must be a whole number of GPUs", amounts[kind])
    starts_processes = service.is_multinode and service.framework is Framework.TRTLLM and not service.templates
    if starts_processes and not service.requested_gpus and not broken:
        message = "the number of GPUs of each node: mpirun starts one process of TensorRT-LLM for each GPU"
        yield Issue((*path, "resources", "limits", "gpu"), ErrorType.REQUIRED, message)


def _names(service: GraphService) -> Iterator[Issue]:
    if not re.fullmatch(LABEL, service.key):
        message = f"names of objects contain it in lower case: {label_faults(service.key)[-1]}"
        yield Issue(service_path(service.name), ErrorType.INVALID, message, service.name)


def _metadata(path: Path, spec: GraphServiceSpec) -> Iterator[Issue]:
    """The issues of labels and annotations that a service gives to its objects and pods."""
    for field, holder in (("", spec), ("extraPodMetadata", spec.extra_pod_metadata), ("ingress", spec.ingress)):
        if holder is not None:
            place = (*path, field) if field else path
            yield from metadata_rules.labels(holder.labels, (*place, "labels"))
            yield from metadata_rules.annotations(holder.annotations, (*place, "annotations"))
    of_labels = {
        "componentType": spec.component_type,
        "subComponentType": spec.sub_component_type,
        "dynamoNamespace": spec.dynamo_namespace,
    }
    for field, value in of_labels.items():
        for fault in value_faults(value or ""):
            yield Issue((*path, field), ErrorType.INVALID, f"as the value of a label: {fault}", value)


def _is_absent(quantity: Any) -> bool:
    return quantity in (None, "") or is_zero(quantity)
