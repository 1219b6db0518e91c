"""To alpha: the spec of a v1beta1 graph as one of v1alpha1, without what annotations keep besides (`converted`).

Values of a wrong shape are left out or passed on: `resources.schema` reports them.
"""

from collections.abc import Mapping
from typing import Any, Final

from engine.quantity import is_zero
from engine.resource import Body
from resources.base.fields import mapping, mappings
from resources.dynamo.model.framework import SUB_TYPES
from resources.dynamo.model.pod_template import mounts_shared_memory, service_fields

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
EXPERIMENTAL: Final = ("gpuMemoryService", "failover", "checkpoint")
"""The fields of a service that are experimental in v1beta1."""


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
    service |= service_fields(mapping(component.get("podTemplate")))
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


def _given(holder: Body, fields: tuple[str, ...]) -> dict[str, Any]:
    return {field: holder[field] for field in fields if holder.get(field) is not None}


def _shared_memory(component: Body) -> dict[str, Any]:
    """The field for /dev/shm. A container that mounts something there itself needs no volume."""
    size = component.get("sharedMemorySize")
    if size is None:
        return {"sharedMemory": {"disabled": True}} if mounts_shared_memory(mapping(component.get("podTemplate"))) else {}
    return {"sharedMemory": {"disabled": True} if is_zero(size) else {"size": size}}


def _experimental(experimental: Mapping[str, Any]) -> dict[str, Any]:
    """The experimental fields; those that v1alpha1 has no field for stay together."""
    rest = {field: value for field, value in experimental.items() if field not in EXPERIMENTAL}
    return {**_given(experimental, EXPERIMENTAL), **({"experimental": rest} if rest else {})}
