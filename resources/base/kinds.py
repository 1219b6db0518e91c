"""Kinds: every kind of object that the engine reads or writes."""

from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace

from engine.ids import NAMESPACE as NAMESPACE
from engine.ids import RESOURCE_QUOTA as RESOURCE_QUOTA
from engine.ids import Kind

GROVE_GROUP: Final = "grove.io"
SCHEDULER_GROUP: Final = "scheduler.grove.io"
"""The API groups of Grove's kinds."""

PODCLIQUESET: Final = Kind(GROVE_GROUP, "v1alpha1", "PodCliqueSet", "podcliquesets", status=True)
PODCLIQUE: Final = Kind(GROVE_GROUP, "v1alpha1", "PodClique", "podcliques", status=True)
SCALING_GROUP: Final = Kind(GROVE_GROUP, "v1alpha1", "PodCliqueScalingGroup", "podcliquescalinggroups", status=True)
TOPOLOGY_BINDING: Final = Kind(GROVE_GROUP, "v1alpha1", "ClusterTopologyBinding", "clustertopologybindings", namespaced=False, status=True)
PODGANG: Final = Kind(SCHEDULER_GROUP, "v1alpha1", "PodGang", "podgangs", status=True)
PODGANG_MAP: Final = Kind(GROVE_GROUP, "v1alpha1", "PodGangMap", "podgangmaps")
"""How Grove's operator v0.1.0-alpha.12 and later divides a replica into PodGangs. The engine makes none."""

POD: Final = Kind("", "v1", "Pod", "pods", status=True)
SERVICE: Final = Kind("", "v1", "Service", "services", status=True)
SERVICE_ACCOUNT: Final = Kind("", "v1", "ServiceAccount", "serviceaccounts")
SECRET: Final = Kind("", "v1", "Secret", "secrets")
CONFIG_MAP: Final = Kind("", "v1", "ConfigMap", "configmaps")
EVENT: Final = Kind("", "v1", "Event", "events")
LIMIT_RANGE: Final = Kind("", "v1", "LimitRange", "limitranges")
NODE: Final = Kind("", "v1", "Node", "nodes", namespaced=False, status=True)
ROLE: Final = Kind("rbac.authorization.k8s.io", "v1", "Role", "roles")
ROLE_BINDING: Final = Kind("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings")
AUTOSCALER: Final = Kind("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", status=True)
RESOURCE_CLAIM: Final = Kind("resource.k8s.io", "v1", "ResourceClaim", "resourceclaims", status=True)
RESOURCE_CLAIM_TEMPLATE: Final = Kind("resource.k8s.io", "v1", "ResourceClaimTemplate", "resourceclaimtemplates")
DEVICE_CLASS: Final = Kind("resource.k8s.io", "v1", "DeviceClass", "deviceclasses", namespaced=False)
RESOURCE_SLICE: Final = Kind("resource.k8s.io", "v1", "ResourceSlice", "resourceslices", namespaced=False)
PVC: Final = Kind("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", status=True)
INGRESS: Final = Kind("networking.k8s.io", "v1", "Ingress", "ingresses", status=True)
DEPLOYMENT: Final = Kind("apps", "v1", "Deployment", "deployments", status=True)
DAEMON_SET: Final = Kind("apps", "v1", "DaemonSet", "daemonsets", status=True)
LEASE: Final = Kind("coordination.k8s.io", "v1", "Lease", "leases")
CRD: Final = Kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False, status=True)

DYNAMO_GRAPH: Final = Kind("nvidia.com", "v1alpha1", "DynamoGraphDeployment", "dynamographdeployments", status=True)
DYNAMO_GRAPH_V1BETA1: Final = Kind("nvidia.com", "v1beta1", "DynamoGraphDeployment", "dynamographdeployments", status=True)
"""The same kind in its newer version. The engine reads and writes the version that it can list first."""
SCALING_ADAPTER: Final = Kind(
    "nvidia.com",
    "v1alpha1",
    "DynamoGraphDeploymentScalingAdapter",
    "dynamographdeploymentscalingadapters",
    status=True,
    newer=("v1beta1",),
)
"""The number of replicas of a service of a graph, for autoscalers."""
LEADER_WORKER_SET: Final = Kind("leaderworkerset.x-k8s.io", "v1", "LeaderWorkerSet", "leaderworkersets", status=True)
VOLCANO_POD_GROUP: Final = Kind("scheduling.volcano.sh", "v1beta1", "PodGroup", "podgroups", ambiguous=True)
VOLCANO_QUEUE: Final = Kind("scheduling.volcano.sh", "v1beta1", "Queue", "queues", namespaced=False, status=True, ambiguous=True)
POD_GROUP: Final = Kind("scheduling.k8s.io", "v1beta1", "PodGroup", "podgroups", status=True, ambiguous=True)
WORKLOAD: Final = Kind("scheduling.k8s.io", "v1beta1", "Workload", "workloads")
COMPOSITE_POD_GROUP: Final = Kind("scheduling.k8s.io", "v1alpha3", "CompositePodGroup", "compositepodgroups", status=True)
"""Kubernetes' own kinds for gangs."""
KAI_POD_GROUP: Final = Kind("scheduling.run.ai", "v2alpha2", "PodGroup", "podgroups", status=True, ambiguous=True)
KAI_QUEUE: Final = Kind("scheduling.run.ai", "v2", "Queue", "queues", namespaced=False, status=True, ambiguous=True)
KAI_TOPOLOGY: Final = Kind("kai.scheduler", "v1alpha1", "Topology", "topologies", namespaced=False)

OLDER_RESOURCE_VERSIONS: Final = ("v1beta2", "v1beta1")
"""Older versions of resource.k8s.io, the newest first, in which the fields that the engine reads are the same."""
OLDER: Final = dict.fromkeys((RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE, DEVICE_CLASS), OLDER_RESOURCE_VERSIONS)
"""Kind -> the versions in which it is read, but never written, on a server without v1."""

OURS: Final = (PODCLIQUESET, PODCLIQUE, SCALING_GROUP, TOPOLOGY_BINDING, PODGANG)
"""The custom resources of Grove."""
DEFINED: Final = (*OURS, DYNAMO_GRAPH, SCALING_ADAPTER)
"""The custom resources whose CRDs are generated from `resources.schema`."""

KINDS: Final = (
    *OURS,
    PODGANG_MAP,
    POD,
    SERVICE,
    SERVICE_ACCOUNT,
    SECRET,
    CONFIG_MAP,
    EVENT,
    NAMESPACE,
    RESOURCE_QUOTA,
    LIMIT_RANGE,
    NODE,
    ROLE,
    ROLE_BINDING,
    AUTOSCALER,
    RESOURCE_CLAIM,
    RESOURCE_CLAIM_TEMPLATE,
    DEVICE_CLASS,
    RESOURCE_SLICE,
    PVC,
    INGRESS,
    DEPLOYMENT,
    DAEMON_SET,
    LEASE,
    CRD,
    DYNAMO_GRAPH,
    SCALING_ADAPTER,
    LEADER_WORKER_SET,
    POD_GROUP,
    WORKLOAD,
    COMPOSITE_POD_GROUP,
    VOLCANO_POD_GROUP,
    VOLCANO_QUEUE,
    KAI_POD_GROUP,
    KAI_QUEUE,
    KAI_TOPOLOGY,
)
"""All kinds of this module, Grove's first."""

ON_REQUEST: Final = frozenset(kind.key for kind in (POD_GROUP, WORKLOAD, COMPOSITE_POD_GROUP))
"""The keys of the kinds of Kubernetes that it serves only if an administrator asks for them."""

NEWER: Final = {DYNAMO_GRAPH: (DYNAMO_GRAPH_V1BETA1,)}
"""Kind -> the same kind in the other versions that the engine reads and writes, where a server does not serve the first one."""


def newer(kind: Kind) -> tuple[Kind, ...]:
    """The kind in each of the newer versions in which the engine reads and writes it."""
    return NEWER.get(kind, ()) or tuple(replace(kind, version=version, newer=()) for version in kind.newer)


def version_of_kind(kind: Kind, body: Any) -> Kind:
    """The kind in the version that an object names, if the engine reads it; else the kind itself."""
    version = body.get("apiVersion") if isinstance(body, Mapping) else None
    return next((newer for newer in NEWER.get(kind, ()) if newer.api_version == version), kind)


def unread(kind: Kind) -> str:
    """What is in the set of unserved kinds if a kind is read and written in a newer version than its own."""
    return f"{kind.key}/{kind.version}"


WRITES: Final = ("create", "patch", "delete")
"""The verbs with which most objects are written."""
