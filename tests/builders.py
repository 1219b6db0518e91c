"""Builders: manifests for tests, in as few words as a test needs."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from engine.focus import EVERYTHING, Focus
from engine.ids import ResourceId
from engine.intent import Intent, Record, Removal
from engine.proposal import proposed_root

Body = dict[str, Any]


def clique(name: str, replicas: int = 1, **spec: Any) -> Body:
    """An entry of `spec.template.cliques`, with one container."""
    labels = spec.pop("labels", None)
    annotations = spec.pop("annotations", None)
    shared = spec.pop("resourceSharing", None)
    pod_spec = spec.pop("pod_spec", None) or {"containers": [{"name": "main", "image": "example/worker:1"}]}
    entry: Body = {"name": name, "spec": {"roleName": name, "replicas": replicas, "podSpec": pod_spec, **spec}}
    extra = {"labels": labels, "annotations": annotations, "resourceSharing": shared}
    return entry | {key: value for key, value in extra.items() if value}


def claim_template(name: str, device_class: str = "gpu.example.com") -> Body:
    """An entry of `spec.template.resourceClaimTemplates`: one device of a class."""
    request = {"name": "device", "exactly": {"deviceClassName": device_class}}
    return {"name": name, "templateSpec": {"spec": {"devices": {"requests": [request]}}}}


def share(name: str, scope: str = "AllReplicas", **more: Any) -> Body:
    """An entry of `resourceSharing`."""
    return {"name": name, "scope": scope, **more}


def group(name: str, *cliques: str, replicas: int = 1, min_available: int = 1, **config: Any) -> Body:
    """An entry of `spec.template.podCliqueScalingGroups`."""
    return {"name": name, "cliqueNames": list(cliques), "replicas": replicas, "minAvailable": min_available, **config}


def podcliqueset(
    name: str = "demo", *cliques: Body, groups: tuple[Body, ...] = (), replicas: int = 1, namespace: str = "default", **template: Any
) -> Body:
    """A PodCliqueSet."""
    metadata = {"name": name, "namespace": namespace}
    inner = {"cliques": list(cliques) or [clique("worker", 2)], "podCliqueScalingGroups": list(groups), **template}
    return {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        "metadata": metadata,
        "spec": {"replicas": replicas, "template": inner},
    }


def applying(
    manifests: Iterable[Mapping[str, Any]], removals: Mapping[ResourceId, Removal] = MappingProxyType({}), record: Record | None = None
) -> Intent:
    """What a command with these manifests and removals asks for: to leave every other root alone; without any, all are concerned.

    `record`: where it notes what it works on.
    """
    bodies = tuple(manifests)
    roots = removals.keys() | {proposed_root(body).id for body in bodies}
    return Intent(bodies, Focus(frozenset(roots)) if roots else EVERYTHING, removals, record)
