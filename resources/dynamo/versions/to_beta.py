"""To beta: the spec of a v1alpha1 graph as one of v1beta1, and what v1beta1 has no field for.

Values of a wrong shape are left out or passed on: `resources.schema` reports them.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from engine.resource import Body
from resources.base.fields import mapping, mappings
from resources.base.names import NVIDIA_GPU
from resources.dynamo.backends.volume_names import volume_name
from resources.dynamo.model.framework import SUB_TYPES
from resources.dynamo.model.pod_template import MAIN, PROBES
from resources.dynamo.versions.to_alpha import EXPERIMENTAL, SAME_OF_COMPONENT, SAME_OF_GRAPH, types_of

TYPES: Final = frozenset({"frontend", "worker", *SUB_TYPES, "planner", "epp"})
ONLY_ALPHA: Final = ("dynamoNamespace", "autoscaling", "ingress", "serviceName")
"""The fields of a service that v1beta1 does not have."""


def beta_spec(spec: Any) -> dict[str, Any]:
    """The spec of v1beta1 that means the same; components are sorted by name."""
    spec = mapping(spec)
    fields = {field: spec[field] for field in SAME_OF_GRAPH if spec.get(field) is not None}
    if spec.get("envs") is not None:
        fields["env"] = spec["envs"]
    shared = frozenset(str(env.get("name")) for env in mappings(spec.get("envs")))
    components = [component_of(str(name), mapping(service), shared) for name, service in sorted(mapping(spec.get("services")).items())]
    return {**fields, "components": components} if spec.get("services") is not None else fields


def alpha_only(spec: Any) -> dict[str, Any]:
    """The fields of a spec of v1alpha1 that v1beta1 has none for, as a spec of v1alpha1 with nothing else."""
    spec = mapping(spec)
    services = {name: rest for name, service in mapping(spec.get("services")).items() if (rest := _rest(mapping(service)))}
    pvcs = {"pvcs": spec["pvcs"]} if spec.get("pvcs") is not None else {}
    return {**pvcs, **({"services": services} if services else {})}


def restored(spec: dict[str, Any], saved: Body, types: Mapping[str, Any]) -> dict[str, Any]:
    """A translated spec of v1alpha1 with the fields that were saved (`alpha_only`); `types`: component -> its type in v1beta1.

    Only fields that v1beta1 has none for are taken, and those of services that there still are.
    """
    services = {
        name: {**service, **_restored(mapping(mapping(saved.get("services")).get(name)), types.get(name))}
        for name, service in mapping(spec.get("services")).items()
    }
    pvcs = {"pvcs": saved["pvcs"]} if saved.get("pvcs") is not None else {}
    return {**spec, **pvcs, **({"services": services} if services else {})}


def component_of(name: str, service: Body, shared: frozenset[str]) -> dict[str, Any]:
    """The component that a service is. `shared`: the names of the variables of the graph, which win over those of `mainContainer`."""
    component: dict[str, Any] = {"name": name, **({"type": type_} if (type_ := type_of(service)) else {})}
    component |= {field: service[field] for field in SAME_OF_COMPONENT if service.get(field) is not None}
    memory = mapping(service.get("sharedMemory"))
    if memory.get("disabled"):
        component["sharedMemorySize"] = "0"
    elif memory.get("size") is not None:
        component["sharedMemorySize"] = memory["size"]
    cache = next((mount for mount in mappings(service.get("volumeMounts")) if mount.get("useAsCompilationCache")), None)
    if cache is not None:
        path = {"mountPath": cache["mountPoint"]} if cache.get("mountPoint") else {}
        component["compilationCache"] = {"pvcName": cache.get("name", ""), **path}
    if mapping(service.get("scalingAdapter")).get("enabled"):
        component["scalingAdapter"] = {}
    if sidecar := mapping(service.get("frontendSidecar")).get("container"):
        component["frontendSidecar"] = sidecar
    experimental = {**mapping(service.get("experimental")), **{field: service[field] for field in EXPERIMENTAL if service.get(field)}}
    if experimental:
        component["experimental"] = experimental
    template = _template(service, shared, cache)
    return {**component, "podTemplate": template} if template else component


def type_of(service: Body) -> str:
    """The type in v1beta1; empty if none means the same."""
    kind, sub = (str(service.get(field) or "").lower() for field in ("componentType", "subComponentType"))
    if kind == "worker" and sub in SUB_TYPES:
        return sub
    return kind if kind in TYPES and kind else ""


def _rest(service: Body) -> dict[str, Any]:
    """The fields of a service that v1beta1 has none for; of its types those that their translation would spell otherwise."""
    rest = {field: service[field] for field in ONLY_ALPHA if service.get(field) is not None}
    types = {field: service[field] for field in ("componentType", "subComponentType") if service.get(field) is not None}
    if types != types_of(type_of(service)):
        rest |= types
    requested = mapping(mapping(service.get("resources")).get("requests")).get("gpu")
    return {**rest, "resources": {"requests": {"gpu": requested}}} if requested is not None else rest


def _restored(saved: Body, type_: Any) -> dict[str, Any]:
    """The fields that are taken from what was saved for a service. Types count while the component has the type that they are."""
    fields = {field: saved[field] for field in ONLY_ALPHA if saved.get(field) is not None}
    types = {field: saved[field] for field in ("componentType", "subComponentType") if saved.get(field)}
    return {**fields, **types} if types and type_of(saved) == (type_ or "") else fields


def requested_gpus(saved: Body, service: str) -> Any:
    """The number of GPUs that a service only counts with, from what was saved; None if there is none."""
    resources = mapping(mapping(mapping(saved.get("services")).get(service)).get("resources"))
    return mapping(resources.get("requests")).get("gpu")


def _template(service: Body, shared: frozenset[str], cache: Body | None) -> dict[str, Any]:
    """The pod template: metadata, and a pod spec with the container `main` first."""
    extra = mapping(service.get("extraPodSpec"))
    mounts = [mount for mount in mappings(service.get("volumeMounts")) if mount is not cache and mount.get("name")]
    main = _main(service, mapping(extra.get("mainContainer")), shared, mounts)
    spec = {field: value for field, value in extra.items() if field not in ("mainContainer", "containers")}
    if main or extra.get("containers"):
        spec["containers"] = [*([{"name": MAIN, **main}] if main else []), *_entries(extra.get("containers"))]
    volumes = [{"name": volume_name(name), "persistentVolumeClaim": {"claimName": name}} for name in dict.fromkeys(map(_name, mounts))]
    if volumes:
        spec["volumes"] = [*_entries(extra.get("volumes")), *volumes]
    metadata = _metadata(service)
    return {**({"metadata": metadata} if metadata else {}), **({"spec": spec} if spec else {})}


def _metadata(service: Body) -> dict[str, Any]:
    own = mapping(service.get("extraPodMetadata"))
    both = {field: {**mapping(service.get(field)), **mapping(own.get(field))} for field in ("labels", "annotations")}
    return {field: value for field, value in both.items() if value}


def _main(service: Body, container: Body, shared: frozenset[str], mounts: Sequence[Body]) -> dict[str, Any]:
    """The container `main`, without its name."""
    main = {field: value for field, value in container.items() if field not in ("name", "env", "resources")}
    if env := _env(container.get("env"), service.get("envs"), shared):
        main["env"] = env
    if secret := service.get("envFromSecret"):
        main["envFrom"] = [*_entries(container.get("envFrom")), {"secretRef": {"name": secret}}]
    main |= {probe: service[probe] for probe in PROBES if service.get(probe) is not None}
    if resources := _resources(mapping(container.get("resources")), mapping(service.get("resources"))):
        main["resources"] = resources
    if mounts:
        added = [{"name": volume_name(_name(mount)), "mountPath": mount.get("mountPoint", "")} for mount in mounts]
        main["volumeMounts"] = [*_entries(container.get("volumeMounts")), *added]
    return main


def _env(of_container: Any, of_service: Any, shared: frozenset[str]) -> list[Any]:
    """The variables of a component: those of the service, and those of the container that neither it nor the graph overrides."""
    own = _entries(of_service)
    names = shared | {str(env.get("name")) for env in mappings(own)}
    return [*(env for env in mappings(of_container) if str(env.get("name")) not in names), *own]


def _resources(of_container: Body, of_service: Body) -> dict[str, Any]:
    """The resources of the container, and over them the amounts of the service."""
    resources = dict(of_container)
    for kind in ("limits", "requests"):
        if amounts := dict(_amounts(mapping(of_service.get(kind)), with_gpus=kind == "limits")):
            resources[kind] = {**mapping(of_container.get(kind)), **amounts}
    claims = [*_entries(of_container.get("claims")), *_entries(of_service.get("claims"))]
    return {**resources, **({"claims": claims} if claims else {})}


def _amounts(amounts: Body, *, with_gpus: bool) -> Iterator[tuple[str, Any]]:
    yield from ((field, amounts[field]) for field in ("cpu", "memory") if amounts.get(field))
    if with_gpus and amounts.get("gpu"):
        yield str(amounts.get("gpuType") or NVIDIA_GPU), amounts["gpu"]
    yield from mapping(amounts.get("custom")).items()


def _entries(value: Any) -> list[Any]:
    """The entries of a list; none if the value is no list."""
    return list(value) if isinstance(value, list | tuple) else []


def _name(mount: Body) -> str:
    return str(mount.get("name", ""))
