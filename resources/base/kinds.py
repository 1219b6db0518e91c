"""Kinds: every kind of object that the engine reads or writes."""

from typing import Final

from engine.ids import Kind

GROVE: Final = "grove.io"
SCHEDULER: Final = "scheduler.grove.io"

PODCLIQUESET: Final = Kind(GROVE, "v1alpha1", "PodCliqueSet", "podcliquesets", status=True)
PODCLIQUE: Final = Kind(GROVE, "v1alpha1", "PodClique", "podcliques", status=True)
SCALING_GROUP: Final = Kind(GROVE, "v1alpha1", "PodCliqueScalingGroup", "podcliquescalinggroups", status=True)
TOPOLOGY_BINDING: Final = Kind(GROVE, "v1alpha1", "ClusterTopologyBinding", "clustertopologybindings", namespaced=False, status=True)
PODGANG: Final = Kind(SCHEDULER, "v1alpha1", "PodGang", "podgangs", status=True)

POD: Final = Kind("", "v1", "Pod", "pods", status=True)
SERVICE: Final = Kind("", "v1", "Service", "services", status=True)
SERVICE_ACCOUNT: Final = Kind("", "v1", "ServiceAccount", "serviceaccounts")
SECRET: Final = Kind("", "v1", "Secret", "secrets")
EVENT: Final = Kind("", "v1", "Event", "events")
NAMESPACE: Final = Kind("", "v1", "Namespace", "namespaces", namespaced=False, status=True)
NODE: Final = Kind("", "v1", "Node", "nodes", namespaced=False, status=True)
ROLE: Final = Kind("rbac.authorization.k8s.io", "v1", "Role", "roles")
ROLE_BINDING: Final = Kind("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings")
AUTOSCALER: Final = Kind("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", status=True)
RESOURCE_CLAIM: Final = Kind("resource.k8s.io", "v1", "ResourceClaim", "resourceclaims", status=True)
RESOURCE_CLAIM_TEMPLATE: Final = Kind("resource.k8s.io", "v1", "ResourceClaimTemplate", "resourceclaimtemplates")
DEVICE_CLASS: Final = Kind("resource.k8s.io", "v1", "DeviceClass", "deviceclasses", namespaced=False)
RESOURCE_SLICE: Final = Kind("resource.k8s.io", "v1", "ResourceSlice", "resourceslices", namespaced=False)
DEPLOYMENT: Final = Kind("apps", "v1", "Deployment", "deployments", status=True)
DAEMON_SET: Final = Kind("apps", "v1", "DaemonSet", "daemonsets", status=True)
LEASE: Final = Kind("coordination.k8s.io", "v1", "Lease", "leases")
CRD: Final = Kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False, status=True)

OLDER_DEVICES: Final = ("v1beta2", "v1beta1")
"""Other versions of resource.k8s.io, the newest first, in which the fields that we read are the same."""
OLDER: Final = {RESOURCE_CLAIM: OLDER_DEVICES, RESOURCE_CLAIM_TEMPLATE: OLDER_DEVICES}
"""Versions in which these kinds are read, but never written, on a server without v1."""

OURS: Final = (PODCLIQUESET, PODCLIQUE, SCALING_GROUP, TOPOLOGY_BINDING, PODGANG)
"""The custom resources of Grove: their CRDs are generated from `resources.schema`."""

KINDS: Final = (
    *OURS,
    POD,
    SERVICE,
    SERVICE_ACCOUNT,
    SECRET,
    EVENT,
    NAMESPACE,
    NODE,
    ROLE,
    ROLE_BINDING,
    AUTOSCALER,
    RESOURCE_CLAIM,
    RESOURCE_CLAIM_TEMPLATE,
    DEVICE_CLASS,
    RESOURCE_SLICE,
    DEPLOYMENT,
    DAEMON_SET,
    LEASE,
    CRD,
)
"""All kinds of this module, Grove's first."""
