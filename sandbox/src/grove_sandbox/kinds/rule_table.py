"""The rules of every built-in kind, in one table."""

from grove_sandbox.kinds import crds
from grove_sandbox.kinds.autoscaler import AUTOSCALER
from grove_sandbox.kinds.namespace import NAMESPACE
from grove_sandbox.kinds.plain import (
    ADMISSION_POLICY,
    CLAIM,
    CLAIM_TEMPLATE,
    ENDPOINT_SLICE,
    INGRESS,
    LEASE,
    NODE,
    PRIORITY,
    VOLUME_CLAIM,
    WEBHOOKS,
)
from grove_sandbox.kinds.pod import POD
from grove_sandbox.kinds.pod_groups import COMPOSITE_POD_GROUP, POD_GROUP, WORKLOAD
from grove_sandbox.kinds.rbac import BINDING, ROLE
from grove_sandbox.kinds.rules import Rules
from grove_sandbox.kinds.secret import CONFIG_MAP, SECRET, SERVICE_ACCOUNT
from grove_sandbox.kinds.service import SERVICE
from grove_sandbox.kinds.workload import CRON_JOB, DAEMON_SET, DEPLOYMENT, JOB, POD_TEMPLATE, REPLICA_SET, STATEFUL_SET

PLAIN = Rules()
CUSTOM = Rules(generation=(), unconditional=False)
"""The rules of custom objects."""

RULES: dict[tuple[str, str], Rules] = {
    ("", "ConfigMap"): CONFIG_MAP,
    ("", "Event"): Rules(creates_on_put=True),
    ("", "Endpoints"): Rules(creates_on_put=True),
    ("", "LimitRange"): Rules(creates_on_put=True),
    ("", "Namespace"): NAMESPACE,
    ("", "Node"): NODE,
    ("", "PersistentVolumeClaim"): VOLUME_CLAIM,
    ("", "Pod"): POD,
    ("", "PodTemplate"): POD_TEMPLATE,
    ("", "Secret"): SECRET,
    ("", "Service"): SERVICE,
    ("", "ServiceAccount"): SERVICE_ACCOUNT,
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): WEBHOOKS,
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): WEBHOOKS,
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"): ADMISSION_POLICY,
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"): Rules(generation=("spec",), unconditional=False),
    ("apiextensions.k8s.io", "CustomResourceDefinition"): crds.CRD,
    ("apps", "DaemonSet"): DAEMON_SET,
    ("apps", "Deployment"): DEPLOYMENT,
    ("apps", "ReplicaSet"): REPLICA_SET,
    ("apps", "StatefulSet"): STATEFUL_SET,
    ("autoscaling", "HorizontalPodAutoscaler"): AUTOSCALER,
    ("batch", "CronJob"): CRON_JOB,
    ("batch", "Job"): JOB,
    ("coordination.k8s.io", "Lease"): LEASE,
    ("discovery.k8s.io", "EndpointSlice"): ENDPOINT_SLICE,
    ("events.k8s.io", "Event"): Rules(creates_on_put=True),
    ("networking.k8s.io", "Ingress"): INGRESS,
    ("policy", "PodDisruptionBudget"): Rules(generation=("spec",), unconditional=False),
    ("rbac.authorization.k8s.io", "ClusterRole"): ROLE,
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): BINDING,
    ("rbac.authorization.k8s.io", "Role"): ROLE,
    ("rbac.authorization.k8s.io", "RoleBinding"): BINDING,
    ("resource.k8s.io", "DeviceClass"): Rules(generation=("spec",), returns_deleted=True),
    ("resource.k8s.io", "ResourceClaim"): CLAIM,
    ("resource.k8s.io", "ResourceClaimTemplate"): CLAIM_TEMPLATE,
    ("resource.k8s.io", "ResourceSlice"): Rules(generation=("spec",), returns_deleted=True),
    ("scheduling.k8s.io", "CompositePodGroup"): COMPOSITE_POD_GROUP,
    ("scheduling.k8s.io", "PodGroup"): POD_GROUP,
    ("scheduling.k8s.io", "PriorityClass"): PRIORITY,
    ("scheduling.k8s.io", "Workload"): WORKLOAD,
}
