"""Objects of a cluster with ComputeDomains, in as few words as a test needs."""

from typing import Any

from engine.observed import Live, live
from providers.fabrics.nvidia.names import (
    CHANNEL,
    COMPUTE_DOMAIN,
    DOMAIN_LABEL,
    DRIVER,
    DRIVER_FINALIZER,
    FINALIZER,
    NVLINK_CLIQUE_LABEL,
    TARGET_LABEL,
)

Body = dict[str, Any]
BORN = "2026-01-01T00:00:00Z"


def made(api: str, kind: str, name: str, namespace: str = "", **more: Any) -> Live:
    """Any object; `metadata` is merged into its metadata, other arguments are its other fields."""
    metadata = {"name": name, "uid": f"uid-{name}", "creationTimestamp": BORN} | ({"namespace": namespace} if namespace else {})
    metadata |= more.pop("metadata", {})
    return live({"apiVersion": api, "kind": kind, "metadata": metadata, **more})


def domain(name: str = "demo-0", *nodes: Body, namespace: str = "default", mode: bool = True, **metadata: Any) -> Live:
    """A domain with both finalizers, the status Ready, and these nodes."""
    channel: Body = {"resourceClaimTemplate": {"name": name}} | ({"allocationMode": "Single"} if mode else {})
    given = {"finalizers": [FINALIZER, DRIVER_FINALIZER], "labels": {"app.kubernetes.io/managed-by": "grove-operator"}} | metadata
    spec, status = {"numNodes": 0, "channel": channel}, {"status": "Ready", "nodes": list(nodes)}
    return made(COMPUTE_DOMAIN.api_version, "ComputeDomain", name, namespace, metadata=given, spec=spec, status=status)


def joined(name: str, clique: str = "c.1", status: str = "Ready") -> Body:
    """An entry of a domain's nodes."""
    return {"name": name, "ipAddress": "10.0.0.1", "cliqueID": clique, "index": 0, "status": status}


def template(name: str = "demo-0", uid: str = "uid-demo-0", namespace: str = "default", target: str = "Workload", **metadata: Any) -> Live:
    """A ResourceClaimTemplate of the driver; without a uid, of another owner."""
    labels = {DOMAIN_LABEL: uid, TARGET_LABEL: target} if uid else {}
    given = {"labels": labels, "finalizers": [DRIVER_FINALIZER]} | metadata
    return made("resource.k8s.io/v1", "ResourceClaimTemplate", name, namespace, metadata=given, spec={})


def claim(pod: str, node: str = "", uid: str = "uid-demo-0", namespace: str = "default") -> Live:
    """A pod's claim on a domain, and the node whose channel is allocated to it."""
    config = [{"opaque": {"driver": DRIVER, "parameters": {"domainID": uid}}}]
    results = [{"driver": DRIVER, "pool": node, "device": CHANNEL}]
    status = {"allocation": {"devices": {"results": results}}, "reservedFor": [{"resource": "pods", "name": pod}]} if node else {}
    spec = {"devices": {"config": config}}
    return made("resource.k8s.io/v1", "ResourceClaim", f"{pod}-claim", namespace, spec=spec, status=status)


def pod(name: str = "p", node: str = "", phase: str = "Pending", message: str = "", **spec: Any) -> Live:
    """A pod that claims `demo-0`; `message` says why it is not scheduled."""
    claims = [{"name": "mnnvl-claim", "resourceClaimTemplateName": "demo-0"}]
    conditions = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}] if message else []
    body = {"resourceClaims": claims} | ({"nodeName": node} if node else {}) | spec
    return made("v1", "Pod", name, "default", spec=body, status={"phase": phase, "conditions": conditions})


def daemon(node: str, ready: bool = True, uid: str = "uid-demo-0") -> Live:
    """A domain's daemon on a node."""
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True" if ready else "False"}]}
    return made(
        "v1", "Pod", f"daemon-{node}", "dra-driver", metadata={"labels": {DOMAIN_LABEL: uid}}, spec={"nodeName": node}, status=status
    )


def daemon_set(uid: str = "uid-demo-0", name: str = "computedomain-daemon", **metadata: Any) -> Live:
    """A domain's DaemonSet."""
    given = {"labels": {DOMAIN_LABEL: uid}, "finalizers": [DRIVER_FINALIZER]} | metadata
    status = {"desiredNumberScheduled": 2, "currentNumberScheduled": 1, "numberReady": 1}
    return made("apps/v1", "DaemonSet", name, "dra-driver", metadata=given, status=status)


def event(about: str, reason: str, message: str, uid: str = "") -> Live:
    """A warning event about a pod."""
    involved = {"kind": "Pod", "name": about, "namespace": "default"} | ({"uid": uid} if uid else {})
    return made("v1", "Event", f"{about}.{reason}", "default", involvedObject=involved, reason=reason, message=message, type="Warning")


def node(name: str, uid: str = "", clique: str = "") -> Live:
    """A node with the label of a domain, of an NVLink clique, or of both."""
    labels = ({DOMAIN_LABEL: uid} if uid else {}) | ({NVLINK_CLIQUE_LABEL: clique} if clique else {})
    return made("v1", "Node", name, metadata={"labels": labels})


def inventory(node: str, *devices: str) -> Live:
    """The ResourceSlice of the driver for a node."""
    spec = {"driver": DRIVER, "nodeName": node, "pool": {"name": node}, "devices": [{"name": name} for name in devices or (CHANNEL,)]}
    return made("resource.k8s.io/v1", "ResourceSlice", f"{node}-slice", spec=spec)


def deployment(name: str, *containers: Body, ready: int = 1, **labels: str) -> Live:
    """A Deployment with these containers."""
    spec = {"replicas": 1, "template": {"spec": {"containers": list(containers) or [{"image": "example/driver:v0.4.0"}]}}}
    given = {"labels": {key.replace("_", "-"): value for key, value in labels.items()}}
    return made("apps/v1", "Deployment", name, "system", metadata=given, spec=spec, status={"readyReplicas": ready})


def of_chart(kind: str, component: str, *, name: str = "dra-driver-nvidia-gpu", namespace: str = "dra", nodes: int = 1) -> Live:
    """The Deployment or DaemonSet of a component, as the driver's chart of that name creates it: only the pods name the component."""
    container = {"name": "c", "image": "example/driver:v0.4.0"}
    pods = {"metadata": {"labels": {f"{name}-component": component}}, "spec": {"containers": [container]}}
    given = {"labels": {"app.kubernetes.io/name": name, "app.kubernetes.io/instance": "my-release"}}
    status = {"readyReplicas": nodes, "desiredNumberScheduled": nodes}
    return made("apps/v1", kind, f"{name}-{component}", namespace, metadata=given, spec={"replicas": 1, "template": pods}, status=status)


def definition(*, number: str = "optional", mode: bool = True, name: bool = True, served: str = "v1beta1", ok: bool = True) -> Live:
    """The CRD of ComputeDomains, as different releases of the driver install it."""
    inner: Body = {"resourceClaimTemplate": {"type": "object", "properties": {"name": {"type": "string"}} if name else {}}}
    inner |= {"allocationMode": {"type": "string"}} if mode else {}
    spec: Body = {"type": "object", "properties": {"numNodes": {"type": "integer"}, "channel": {"type": "object", "properties": inner}}}
    if number == "required":
        spec["required"] = ["numNodes", "channel"]
    elif number == "none":
        del spec["properties"]["numNodes"]
    else:
        spec["properties"]["numNodes"]["default"] = 0
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    status = {"conditions": [{"type": "Established", "status": "True" if ok else "False"}]}
    versions = [{"name": served, "served": True, "storage": True, "schema": schema}]
    crd = f"{COMPUTE_DOMAIN.plural}.{COMPUTE_DOMAIN.group}"
    return made("apiextensions.k8s.io/v1", "CustomResourceDefinition", crd, spec={"versions": versions}, status=status)
