"""To alpha: the spec of a v1beta1 graph as one of v1alpha1, without what annotations keep besides (`converted`).

Values of a wrong shape are left out or passed on: `resources.schema` reports them.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from engine.quantity import is_zero
from engine.resource import Body
from resources.base.fields import mapping, mappings
from resources.base.labels import SPREAD
from resources.base.names import NVIDIA_GPU

MAIN: Final = "main"
SHARED_MEMORY: Final = "/dev/shm"
SAME_OF_GRAPH: Final = (
    "backendFramework",
    "annotations",
    "labels",
    "priorityClassName",
    "topologyConstraint",
    "restart",
    "providerOverride",
    "experimental",
)
"""The fields of a spec that both versions have alike."""
SAME_OF_COMPONENT: Final = (
    "replicas",
    "minAvailable",
    "multinode",
    "roles",
    "topologyConstraint",
    "providerOverride",
    "runtimeVersionOverride",
    "modelRef",
    "globalDynamoNamespace",
    "eppConfig",
)
"""The fields of a component that both versions have alike."""
SUB_TYPES: Final = ("prefill", "decode")
"""The types of v1beta1 that are workers with a sub-component type in v1alpha1."""
EXPERIMENTAL: Final = ("gpuMemoryService", "failover", "checkpoint")
"""The fields of a service that are experimental in v1beta1."""
FOR_US: Final = ("nvidia.com/deployment-strategy", "nvidia.com/enable-metrics", "nvidia.com/disable-image-pull-secret-discovery", SPREAD)
"""Annotations that say what is made of a service, and are none of its pods."""
PROBES: Final = ("livenessProbe", "readinessProbe")
HANDLERS: Final = frozenset({"exec", "grpc", "httpGet", "tcpSocket"})


def alpha_spec(spec: Any) -> dict[str, Any]:
    """The spec of v1alpha1 that means the same."""
    spec = mapping(spec)
    services = {str(component["name"]): service_of(component) for component in mappings(spec.get("components")) if component.get("name")}
    fields = {**_given(spec, SAME_OF_GRAPH), **({"envs": spec["env"]} if spec.get("env") is not None else {})}
    return {**fields, "services": services} if spec.get("components") is not None else fields


def service_of(component: Body) -> dict[str, Any]:
    """The service that a component is."""
    service = _given(component, SAME_OF_COMPONENT)
    service |= types_of(component.get("type"))
    service |= _pods(mapping(component.get("podTemplate")))
    service |= _shared_memory(component)
    if cache := mapping(component.get("compilationCache")):
        path = {"mountPoint": cache["mountPath"]} if cache.get("mountPath") else {}
        service["volumeMounts"] = [{"name": cache.get("pvcName", ""), **path, "useAsCompilationCache": True}]
    if component.get("scalingAdapter") is not None:
        service["scalingAdapter"] = {"enabled": True}
    if component.get("frontendSidecar"):
        service["frontendSidecar"] = {"container": component["frontendSidecar"]}
    return {**service, **_experimental(mapping(component.get("experimental")))}


def types_of(type_: Any) -> dict[str, Any]:
    """The component type and the sub-component type of a type of v1beta1."""
    if type_ in SUB_TYPES:
        return {"componentType": "worker", "subComponentType": type_}
    return {"componentType": type_} if type_ else {}


def main_of(component: Body) -> Body | None:
    """The container `main` of a component; None if it has none."""
    containers = mappings(mapping(mapping(component.get("podTemplate")).get("spec")).get("containers"))
    return next((container for container in containers if container.get("name") == MAIN), None)


def _given(holder: Body, fields: tuple[str, ...]) -> dict[str, Any]:
    return {field: holder[field] for field in fields if holder.get(field) is not None}


def _pods(template: Body) -> dict[str, Any]:
    """The fields of a service for its pods: the main container's where v1alpha1 has fields of the service, the rest in `extraPodSpec`."""
    spec, metadata = mapping(template.get("spec")), mapping(template.get("metadata"))
    service = dict(_metadata(metadata))
    containers = spec.get("containers")
    others = [each for each in containers if mapping(each).get("name") != MAIN] if isinstance(containers, list) else []
    extra = {field: value for field, value in spec.items() if field != "containers"}
    if others:
        extra["containers"] = others
    main = next((each for each in mappings(containers) if each.get("name") == MAIN), None)
    if main is not None:
        of_service, container = _main(main)
        service |= of_service
        extra["mainContainer"] = container
    return {**service, "extraPodSpec": extra} if extra else service


def _metadata(metadata: Body) -> Iterator[tuple[str, Any]]:
    """Labels and annotations of pods; annotations that say what is made of a service are those of the service."""
    annotations = mapping(metadata.get("annotations"))
    if own := {key: value for key, value in annotations.items() if key in FOR_US}:
        yield "annotations", own
    pods = {"labels": metadata.get("labels"), "annotations": {key: value for key, value in annotations.items() if key not in own}}
    if given := {field: value for field, value in pods.items() if value}:
        yield "extraPodMetadata", given


def _main(main: Body) -> tuple[dict[str, Any], dict[str, Any]]:
    """The fields of the service that come from the container `main`, and what is left of it."""
    container = {field: value for field, value in main.items() if field != "name"}
    service: dict[str, Any] = {}
    if isinstance(container.get("env"), list):
        service["envs"] = container.pop("env")
    for probe in PROBES:
        if not HANDLERS.isdisjoint(mapping(container.get(probe))):  # Without a handler it changes the default one.
            service[probe] = container.pop(probe)
    limits = mapping(mapping(main.get("resources")).get("limits"))
    if NVIDIA_GPU in limits and isinstance(limits[NVIDIA_GPU], str | int) and not isinstance(limits[NVIDIA_GPU], bool):
        service["resources"] = {"limits": {"gpu": str(limits[NVIDIA_GPU])}}
        rest = {key: value for key, value in limits.items() if key != NVIDIA_GPU}
        resources = {**{key: value for key, value in main["resources"].items() if key != "limits"}, **({"limits": rest} if rest else {})}
        container.pop("resources")
        container |= {"resources": resources} if resources else {}
    return service, container


def _shared_memory(component: Body) -> dict[str, Any]:
    """The field for /dev/shm. A container that mounts something there itself needs no volume."""
    size = component.get("sharedMemorySize")
    if size is None:
        mounts = mappings(mapping(main_of(component)).get("volumeMounts"))
        has_own = any(str(mount.get("mountPath", "")).rstrip("/") == SHARED_MEMORY for mount in mounts)
        return {"sharedMemory": {"disabled": True}} if has_own else {}
    return {"sharedMemory": {"disabled": True} if is_zero(size) else {"size": size}}


def _experimental(experimental: Mapping[str, Any]) -> dict[str, Any]:
    """The experimental fields; those that v1alpha1 has no field for stay together."""
    rest = {field: value for field, value in experimental.items() if field not in EXPERIMENTAL}
    return {**_given(experimental, EXPERIMENTAL), **({"experimental": rest} if rest else {})}
