"""Builders of sets with GPUs and of ComputeDomains."""

from collections.abc import Mapping
from typing import Any

from providers.fabrics.nvidia.names import AUTO, COMPUTE_DOMAIN, GPU, NAMED
from tests.builders import clique, podcliqueset

OPTED_OUT = {AUTO: "disabled"}
OURS = "grove.io/computedomain-finalizer"
Body = dict[str, Any]


def gpus(amount: str = "8", *, resource: str = GPU, kind: str = "limits") -> Body:
    """A pod spec of one container that requests accelerators."""
    return {"containers": [{"name": "main", "image": "example/model:1", "resources": {kind: {resource: amount}}}]}


def gpu(name: str = "worker", replicas: int = 1, **more: Any) -> Body:
    """A clique with GPUs."""
    return clique(name, replicas, pod_spec=more.pop("pod_spec", None) or gpus(), **more)


def said(manifest: Body, annotations: Mapping[str, str]) -> Body:
    """The set with these annotations."""
    return {**manifest, "metadata": {**manifest["metadata"], "annotations": dict(annotations)}}


def auto(replicas: int = 1, *cliques: Body, name: str = "demo", **more: Any) -> Body:
    """A set with a domain for each replica."""
    return said(podcliqueset(name, *(cliques or (gpu(),)), replicas=replicas, **more), {AUTO: "enabled"})


def named(domain: str, name: str = "demo", replicas: int = 1, **more: Any) -> Body:
    """A set whose workers join a named domain, and whose frontend joins none."""
    cliques = (gpu(annotations={NAMED: domain}), clique("frontend"))
    return said(podcliqueset(name, *cliques, replicas=replicas, **more), OPTED_OUT)


def computedomain(name: str, template: str = "", **metadata: Any) -> Body:
    """A ComputeDomain as a user writes it."""
    return {
        "apiVersion": COMPUTE_DOMAIN.api_version,
        "kind": COMPUTE_DOMAIN.name,
        "metadata": {"name": name, "namespace": "default", **metadata},
        "spec": {"numNodes": 0, "channel": {"resourceClaimTemplate": {"name": template or name}}},
    }
