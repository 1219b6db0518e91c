"""PersistentVolumeClaims: those that a graph creates, and those that the pods of its services have as volumes and that do not exist."""

from collections.abc import Collection, Iterator
from typing import Final

from engine.resource import Policy, Want
from resources.base import kinds
from resources.base.fields import manifest, mapping, mappings, omitted_fields
from resources.dynamo.model.graph import GraphService, InferenceGraph
from resources.dynamo.objects.labels import own_labels

POLICY: Final = Policy(create_only=True, omitted=omitted_fields(kinds.PVC))
"""The spec of a claim cannot be changed, except its size, which other programs or users may expand."""


def created_claims(graph: InferenceGraph, foreign: Collection[str]) -> Iterator[Want]:
    """The claims of `spec.pvcs` with `create: true`, except those that exist and are not the graph's own (`foreign`): these are used."""
    for entry in graph.pvcs:
        if not entry.name or not entry.create or entry.name in foreign:
            continue
        spec = {
            "accessModes": [entry.volume_access_mode],
            "resources": {"requests": {"storage": str(entry.size)}},
            "storageClassName": entry.storage_class,
        }
        body = manifest(kinds.PVC, graph.namespace, entry.name, own_labels(graph), spec=spec)
        id = kinds.PVC.id(graph.namespace, entry.name)
        yield Want(id, f"claim {entry.name} of spec.pvcs", (graph.owner,), body=body, policy=POLICY)


def missing_claims(graph: InferenceGraph, existing: Collection[str]) -> dict[str, str]:
    """Service -> why its pods cannot start: they have claims as volumes that do not exist and that the graph does not create.

    `existing` has the names of all claims in the graph's namespace, with any owner. Services without such a problem are left out.
    """
    available = {*existing, *(entry.name for entry in graph.pvcs if entry.create)}
    missing = {service.name: [name for name in mounted_claims(service) if name not in available] for service in graph.services}
    return {service: _reason(names, graph) for service, names in missing.items() if names}


def mounted_claims(service: GraphService) -> tuple[str, ...]:
    """The names of the claims that the pods of a service have as volumes, each once: those of `volumeMounts`, then those of pod specs."""
    mounts = (mount.name for mount in service.spec.volume_mounts)
    specs = (service.of(role).extra_pod_spec for role in service.roles)
    volumes = (mapping(volume.get("persistentVolumeClaim")).get("claimName") for spec in specs for volume in mappings(spec.get("volumes")))
    return tuple(dict.fromkeys(name for name in (*mounts, *volumes) if name and isinstance(name, str)))


def _reason(names: list[str], graph: InferenceGraph) -> str:
    """The reason. A graph of v1beta1 has no `spec.pvcs`."""
    subject, it = (f"PersistentVolumeClaim {names[0]}", "it") if len(names) == 1 else (f"PersistentVolumeClaims {', '.join(names)}", "them")
    verb = "does" if len(names) == 1 else "do"
    if graph.is_written_as_v1beta1:
        return f"{subject} {verb} not exist; create {it}"
    return f"{subject} {verb} not exist, and spec.pvcs does not create {it}; create {it}, or add {it} there"
