"""Pod templates: a core/v1 PodTemplateSpec of a graph, whose container `main` runs the engine, as the fields of a service.

Values of a wrong shape are left out or passed on: `resources.schema` reports them.
"""

from collections.abc import Iterator
from typing import Any, Final

from engine.resource import Body
from resources.base.fields import mapping, mappings
from resources.base.labels import SPREAD
from resources.base.names import NVIDIA_GPU

MAIN: Final = "main"
SHARED_MEMORY: Final = "/dev/shm"
FOR_US: Final = ("nvidia.com/deployment-strategy", "nvidia.com/enable-metrics", "nvidia.com/disable-image-pull-secret-discovery", SPREAD)
"""Annotations that say what is made of a service, and are none of its pods."""
PROBES: Final = ("livenessProbe", "readinessProbe")
HANDLERS: Final = frozenset({"exec", "grpc", "httpGet", "tcpSocket"})


def main_of(template: Body) -> Body | None:
    """The container `main` of a template; None if it has none."""
    containers = mappings(mapping(template.get("spec")).get("containers"))
    return next((container for container in containers if container.get("name") == MAIN), None)


def mounts_shared_memory(template: Body) -> bool:
    """Whether the container `main` mounts something at /dev/shm itself, so that it needs no volume there."""
    mounts = mappings(mapping(main_of(template)).get("volumeMounts"))
    return any(str(mount.get("mountPath", "")).rstrip("/") == SHARED_MEMORY for mount in mounts)


def service_fields(template: Body) -> dict[str, Any]:
    """The fields of a service of v1alpha1 that mean the same: what a service has fields for, and the rest in `extraPodSpec`."""
    spec, metadata = mapping(template.get("spec")), mapping(template.get("metadata"))
    service = dict(_metadata(metadata))
    containers = spec.get("containers")
    others = [each for each in containers if mapping(each).get("name") != MAIN] if isinstance(containers, list) else []
    extra = {field: value for field, value in spec.items() if field != "containers"}
    if others:
        extra["containers"] = others
    main = main_of(template)
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
