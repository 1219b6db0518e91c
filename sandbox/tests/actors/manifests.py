"""Manifests for the tests of the actors."""

from collections.abc import Mapping, Sequence
from typing import Any

from resources.base.labels import PODCLIQUE, PODGANG


def pod(
    name: str,
    *,
    gpus: int = 0,
    gang: str = "",
    clique: str = "",
    node: str = "",
    after: Sequence[str] = (),
    annotations: Mapping[str, str] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """A pod of one container in namespace `ml`; `after` are the arguments of its start-order waiter, one per parent."""
    labels = {key: value for key, value in ((PODGANG, gang), (PODCLIQUE, clique)) if value}
    resources = {"requests": {"nvidia.com/gpu": str(gpus)}, "limits": {"nvidia.com/gpu": str(gpus)}} if gpus else {}
    body: dict[str, Any] = {"containers": [{"name": "main", "image": "server:1", "resources": resources}], **spec}
    if node:
        body["nodeName"] = node
    if after:
        body["initContainers"] = [{"name": "grove-initc", "image": "waiter:1", "args": list(after)}]
    metadata = {"name": name, "namespace": "ml", "labels": labels, "annotations": dict(annotations or {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": body}


def gang(name: str, groups: Mapping[str, tuple[int, Sequence[str]]]) -> dict[str, Any]:
    """A PodGang in namespace `ml`: minimum and pods of each pod group."""
    groups_ = [
        {"name": group, "minReplicas": minimum, "podReferences": [{"namespace": "ml", "name": pod} for pod in pods]}
        for group, (minimum, pods) in groups.items()
    ]
    metadata = {"name": name, "namespace": "ml"}
    return {"apiVersion": "scheduler.grove.io/v1alpha1", "kind": "PodGang", "metadata": metadata, "spec": {"podgroups": groups_}}


def node(name: str, *, gpus: int = 8, labels: Mapping[str, str] | None = None, taints: Sequence[Mapping[str, str]] = ()) -> dict[str, Any]:
    """A Ready node with no simulated kubelet."""
    room = {"cpu": "64", "memory": "512Gi", "nvidia.com/gpu": str(gpus), "pods": "110"}
    status = {"capacity": room, "allocatable": room, "conditions": [{"type": "Ready", "status": "True"}]}
    spec = {"taints": list(taints)} if taints else {}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": dict(labels or {})}, "spec": spec, "status": status}
