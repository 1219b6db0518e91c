"""Builders: manifests for tests, in as few words as a test needs."""

from typing import Any

Body = dict[str, Any]


def clique(name: str, replicas: int = 1, **spec: Any) -> Body:
    """An entry of `spec.template.cliques`, with one container."""
    labels = spec.pop("labels", None)
    annotations = spec.pop("annotations", None)
    pod_spec = spec.pop("pod_spec", None) or {"containers": [{"name": "main", "image": "example/worker:1"}]}
    entry: Body = {"name": name, "spec": {"roleName": name, "replicas": replicas, "podSpec": pod_spec, **spec}}
    return entry | ({"labels": labels} if labels else {}) | ({"annotations": annotations} if annotations else {})


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
