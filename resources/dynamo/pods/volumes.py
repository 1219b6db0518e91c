"""Volumes: the volume claims, the shared memory and the compilation cache of a service."""

from typing import Any

from msgspec import Struct

from engine.quantity import amount
from engine.resource import Body
from resources.dynamo.backends.faults import PodFault
from resources.dynamo.backends.port import FrameworkBackend
from resources.dynamo.backends.volume_names import volume_name
from resources.dynamo.model.graph import GraphService
from resources.dynamo.pods.fields import Path, map_at, maps_at, text_at

MEMORY = "shared-memory"
MEMORY_PATH = "/dev/shm"
MEMORY_SIZE = "8Gi"
CACHE = "useAsCompilationCache"


class ServiceVolumes(Struct, frozen=True):
    """What a service's volumes add to its pods."""

    volumes: tuple[Body, ...]
    mounts: tuple[Body, ...]
    cache: str
    """The mount path of the compilation cache; empty without one."""


def service_volumes(service: GraphService, backend: FrameworkBackend, path: Path) -> ServiceVolumes:
    """The volumes of a service and their mounts. Raises `PodFault` for an entry without a name or a mount point that it needs."""
    entries = maps_at(service.body, path, "volumeMounts")
    claims: dict[str, Body] = {}
    mounts: list[Body] = []
    caches: list[str] = []
    for index, entry in enumerate(entries):
        below = (*path, "volumeMounts", index)
        name = text_at(entry, below, "name")
        if not name:
            raise PodFault((*below, "name"), "volumeMount.name is required when volumeMounts is set")
        mount_path = _mount_path(service, backend, entry, below)
        claims[name] = {"name": volume_name(name), "persistentVolumeClaim": {"claimName": name}}
        mounts.append({"name": volume_name(name), "mountPath": mount_path})
        caches += [mount_path] if entry.get(CACHE) else []
    memory, memory_mount = _shared_memory(service.body, path)
    return ServiceVolumes((*claims.values(), *memory), (*mounts, *memory_mount), next(iter(caches), ""))


def _mount_path(service: GraphService, backend: FrameworkBackend, entry: Body, path: Path) -> str:
    mount_path = text_at(entry, path, "mountPoint")
    if mount_path:
        return mount_path
    if not entry.get(CACHE):
        raise PodFault((*path, "mountPoint"), "volumeMount.mountPoint is required when useAsCompilationCache is false")
    if not backend.cache_directory:
        reason = "volumeMount with useAsCompilationCache=true requires an explicit mountPoint for backend framework"
        raise PodFault((*path, "mountPoint"), f"{reason} {service.framework} (no default available)")
    return backend.cache_directory


def _shared_memory(service: Body, path: Path) -> tuple[list[Body], list[Body]]:
    memory = map_at(service, path, "sharedMemory")
    if memory.get("disabled"):
        return [], []
    size: Any = memory.get("size") or MEMORY_SIZE
    if not isinstance(size, str | int) or isinstance(size, bool) or amount(str(size)) is None:
        raise PodFault((*path, "sharedMemory", "size"), f"{size!r:.100} is no quantity")
    return [{"name": MEMORY, "emptyDir": {"medium": "Memory", "sizeLimit": str(size)}}], [{"name": MEMORY, "mountPath": MEMORY_PATH}]
