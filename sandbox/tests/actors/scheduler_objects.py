"""Manifests of Volcano and KAI for the tests of the scheduler."""

from collections.abc import Mapping, Sequence
from typing import Any

from sandbox.tests.actors.manifests import pod

VOLCANO, KAI = "scheduling.volcano.sh/v1beta1", "scheduling.run.ai/v2alpha2"


def volcano_pod(name: str, group: str, *, gpus: int = 4, **spec: Any) -> dict[str, Any]:
    """A pod that Volcano places together with its group."""
    return pod(name, gpus=gpus, annotations={"scheduling.k8s.io/group-name": group}, schedulerName="volcano", **spec)


def kai_pod(name: str, group: str, *, gpus: int = 4, subgroup: str = "", **spec: Any) -> dict[str, Any]:
    """A pod that KAI places together with its group."""
    body = pod(name, gpus=gpus, annotations={"pod-group-name": group}, schedulerName="kai-scheduler", **spec)
    return {**body, "metadata": {**body["metadata"], "labels": {"kai.scheduler/subgroup-name": subgroup} if subgroup else {}}}


def volcano_group(name: str, minimum: int, **spec: Any) -> dict[str, Any]:
    """One of Volcano's PodGroups."""
    return {"apiVersion": VOLCANO, "kind": "PodGroup", "metadata": {"name": name}, "spec": {"minMember": minimum, **spec}}


def volcano_queue(name: str, gpus: int) -> dict[str, Any]:
    """One of Volcano's queues with so many GPUs at most."""
    spec = {"capability": {"nvidia.com/gpu": str(gpus)}}
    return {"apiVersion": VOLCANO, "kind": "Queue", "metadata": {"name": name}, "spec": spec}


def kai_group(name: str, queue: str = "team", **spec: Any) -> dict[str, Any]:
    """One of KAI's PodGroups."""
    return {"apiVersion": KAI, "kind": "PodGroup", "metadata": {"name": name}, "spec": {"queue": queue, **spec}}


def kai_queue(name: str, *, parent: str = "", limit: float = -1) -> dict[str, Any]:
    """One of KAI's queues with so many GPUs at most."""
    resource = {"quota": -1, "overQuotaWeight": 1, "limit": -1}
    resources = {"gpu": {**resource, "limit": limit}, "cpu": resource, "memory": resource}
    spec = {"resources": resources} | ({"parentQueue": parent} if parent else {})
    return {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": name}, "spec": spec}


def topology(name: str, levels: Sequence[str]) -> dict[str, Any]:
    """One of KAI's Topologies: labels of nodes, the widest first."""
    spec: Mapping[str, Any] = {"levels": [{"nodeLabel": level} for level in levels]}
    return {"apiVersion": "kai.scheduler/v1alpha1", "kind": "Topology", "metadata": {"name": name}, "spec": spec}
