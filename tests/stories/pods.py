"""Pods, as stories look at them: what they run, which unit they belong to, and whether they serve."""

from collections.abc import Iterable, Mapping
from typing import Any

from engine.conditions import is_true

Pod = Mapping[str, Any]


def running(version: int, **more: Any) -> dict[str, Any]:
    """A pod spec of a certain version."""
    return {"containers": [{"name": "main", "image": f"example/worker:{version}", **more}]}


def asking(cpu: int) -> dict[str, Any]:
    """A pod spec that needs so many CPUs."""
    return running(1, resources={"requests": {"cpu": str(cpu)}})


def is_ready(pod: Pod) -> bool:
    """Whether it serves, and stays."""
    return not is_leaving(pod) and is_true((pod.get("status") or {}).get("conditions") or (), "Ready")


def is_leaving(pod: Pod) -> bool:
    """Whether it is being deleted."""
    return "deletionTimestamp" in pod["metadata"]


def is_bound(pod: Pod) -> bool:
    """Whether it has a node."""
    return bool(pod["spec"].get("nodeName"))


def label(body: Pod, name: str) -> str:
    """One of our labels."""
    return str(body["metadata"]["labels"].get(f"grove.io/{name}", ""))


def clique_of(pod: Pod) -> str:
    """The PodClique that it is in."""
    return label(pod, "podclique")


def unit_of(pod: Pod) -> str:
    """What an update takes as a whole: the pod itself, or the replica of the scaling group that it is in."""
    group = label(pod, "podcliquescalinggroup")
    return f"{group}/{label(pod, 'podcliquescalinggroup-replica-index')}" if group else str(pod["metadata"]["name"])


def images(pods: Iterable[Pod]) -> set[str]:
    """What runs."""
    return {pod["spec"]["containers"][0]["image"] for pod in pods}
