"""Volumes: the volume claims, the shared memory and the compilation cache of a service."""

from msgspec import Struct

from engine.quantity import amount
from engine.resource import Body
from resources.dynamo.backends.faults import PodFault
from resources.dynamo.backends.port import FrameworkBackend
from resources.dynamo.backends.volume_names import volume_name
from resources.dynamo.model.graph import GraphService
from resources.dynamo.pods.fields import Path
from resources.schema.dynamo import ServiceVolumeMount, SharedMemory

MEMORY = "shared-memory"
MEMORY_PATH = "/dev/shm"
MEMORY_SIZE = "8Gi"


class ServiceVolumes(Struct, frozen=True):
    """What a service's volumes add to its pods."""

    volumes: tuple[Body, ...]
    mounts: tuple[Body, ...]
    cache: str
    """The mount path of the compilation cache; empty without one."""


def service_volumes(service: GraphService, backend: FrameworkBackend, path: Path) -> ServiceVolumes:
    """The volumes of a service and their mounts. Raises `PodFault` for an entry without a name or a mount point that it needs."""
    claims: dict[str, Body] = {}
    mounts: list[Body] = []
    caches: list[str] = []
    for index, entry in enumerate(service.spec.volume_mounts):
        below, name = (*path, "volumeMounts", index), entry.name
        if not name:
            raise PodFault((*below, "name"), "volumeMount.name is required when volumeMounts is set")
        mount_path = _mount_path(service, backend, entry, below)
        claims[name] = {"name": volume_name(name), "persistentVolumeClaim": {"claimName": name}}
        mounts.append({"name": volume_name(name), "mountPath": mount_path})
        caches += [mount_path] if entry.use_as_compilation_cache else []
    memory, memory_mount = _shared_memory(service.spec.shared_memory or SharedMemory(), path)
    return ServiceVolumes((*claims.values(), *memory), (*mounts, *memory_mount), next(iter(caches), ""))


def _mount_path(service: GraphService, backend: FrameworkBackend, entry: ServiceVolumeMount, path: Path) -> str:
    if entry.mount_point:
        return entry.mount_point
    if not entry.use_as_compilation_cache:
        raise PodFault((*path, "mountPoint"), "volumeMount.mountPoint is required when useAsCompilationCache is false")
    if not backend.cache_directory:
        reason = "volumeMount with useAsCompilationCache=true requires an explicit mountPoint for backend framework"
        raise PodFault((*path, "mountPoint"), f"{reason} {service.framework} (no default available)")
    return backend.cache_directory


def _shared_memory(memory: SharedMemory, path: Path) -> tuple[list[Body], list[Body]]:
    if memory.disabled:
        return [], []
    size = str(memory.size or MEMORY_SIZE)
    if amount(size) is None:
        raise PodFault((*path, "sharedMemory", "size"), f"{size!r:.100} is no quantity")
    return [{"name": MEMORY, "emptyDir": {"medium": "Memory", "sizeLimit": size}}], [{"name": MEMORY, "mountPath": MEMORY_PATH}]
