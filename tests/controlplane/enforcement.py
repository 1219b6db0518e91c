"""Enforcement: policies, quotas and Pod Security take effect a moment after they were stored. These wait for it, by dry runs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from engine.errors import ClusterError
from engine.ids import Kind
from providers.kubernetes.client import KubernetesClient
from resources.base import kinds
from tests.waiting import eventually

Body = Mapping[str, Any]

POLICY: Final = Kind("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicy", "validatingadmissionpolicies", namespaced=False)
BINDING: Final = Kind(
    "admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", namespaced=False
)
REPLICATION_CONTROLLER: Final = Kind("", "v1", "ReplicationController", "replicationcontrollers")
CONTAINER: Final = {"name": "main", "image": "probe:2"}
POD: Final[Body] = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe"}, "spec": {"containers": [CONTAINER]}}
SERVICE: Final[Body] = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "probe"}, "spec": {"ports": [{"port": 80}]}}
CONTROLLER: Final[Body] = {
    "apiVersion": "v1",
    "kind": "ReplicationController",
    "metadata": {"name": "probe"},
    "spec": {"replicas": 0, "selector": {"a": "b"}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": POD["spec"]}},
}
DEPLOYMENT: Final[Body] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "probe"},
    "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": CONTROLLER["spec"]["template"]},
}
INGRESS: Final[Body] = {
    "apiVersion": "networking.k8s.io/v1",
    "kind": "Ingress",
    "metadata": {"name": "probe"},
    "spec": {"defaultBackend": {"service": {"name": "probe", "port": {"number": 80}}}},
}
LEADER_WORKER_SET: Final[Body] = {
    "apiVersion": "leaderworkerset.x-k8s.io/v1",
    "kind": "LeaderWorkerSet",
    "metadata": {"name": "probe"},
    "spec": {"leaderWorkerTemplate": {"size": 1, "workerTemplate": {"spec": POD["spec"]}}},
}


@dataclass(frozen=True)
class Policy:
    """A policy of an administrator against new objects of one kind in one namespace."""

    name: str
    namespace: str
    kind: Kind
    condition: str
    """What must hold of them, in CEL."""
    message: str
    refused: Body = field(default_factory=lambda: POD)
    """An object for which it does not hold."""

    async def enforce(self, client: KubernetesClient) -> None:
        """Store and bind it, and wait until the server refuses what it should."""
        selector = {"matchLabels": {"kubernetes.io/metadata.name": self.namespace}}
        rules = [{"apiGroups": [self.kind.group], "apiVersions": ["*"], "operations": ["CREATE"], "resources": [self.kind.plural]}]
        spec = {
            "failurePolicy": "Fail",
            "matchConstraints": {"namespaceSelector": selector, "resourceRules": rules},
            "validations": [{"expression": self.condition, "message": self.message}],
        }
        await client.create(POLICY, "", {"metadata": {"name": self.name}, "spec": spec})
        bound = {"policyName": self.name, "validationActions": ["Deny"]}
        await client.create(BINDING, "", {"metadata": {"name": self.name}, "spec": bound})
        await until_refused(client, self.kind, self.namespace, self.refused, self.message)

    async def lift(self, client: KubernetesClient) -> None:
        """Delete it, and wait until the server accepts what it refused."""
        for kind in (BINDING, POLICY):
            await client.delete(kind, "", self.name)
        await eventually(lambda: _is_accepted(client, self.kind, self.namespace, self.refused))


async def limit_pods(client: KubernetesClient, namespace: str, name: str, pods: int, used: int = 0, cpu: int | None = None) -> None:
    """Store a quota of so many pods, with the status that its controller would write, and wait until the server enforces it.

    With `cpu` it is also one of so many CPUs, of which none are used. It forbids ReplicationControllers, by which the wait recognises it.
    """
    cpus = {"requests.cpu": str(cpu)} if cpu is not None else {}
    hard = {"pods": str(pods), "replicationcontrollers": "0", **cpus}
    status = {"status": {"hard": hard, "used": {"pods": str(used), "replicationcontrollers": "0", **dict.fromkeys(cpus, "0")}}}
    await client.create(kinds.RESOURCE_QUOTA, namespace, {"metadata": {"name": name}, "spec": {"hard": hard}})
    await client.patch(kinds.RESOURCE_QUOTA, namespace, name, status, subresource="status")
    await until_refused(client, REPLICATION_CONTROLLER, namespace, CONTROLLER, f"exceeded quota: {name}")


async def forbid_privileged_pods(client: KubernetesClient, namespace: str) -> None:
    """Enforce the Pod Security standard `baseline` in a namespace, and wait until the server does."""
    await client.patch(kinds.NAMESPACE, "", namespace, {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "baseline"}}})
    privileged = {**POD, "spec": {"containers": [{**CONTAINER, "securityContext": {"privileged": True}}]}}
    await until_refused(client, kinds.POD, namespace, privileged, "violates PodSecurity")


async def require_restricted_pods(client: KubernetesClient, namespace: str) -> None:
    """Enforce the Pod Security standard `restricted` in a namespace, and wait until the server does."""
    await client.patch(kinds.NAMESPACE, "", namespace, {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}})
    await until_refused(client, kinds.POD, namespace, POD, 'violates PodSecurity "restricted')


async def until_refused(client: KubernetesClient, kind: Kind, namespace: str, body: Body, words: str) -> None:
    """Wait until the server refuses to create an object, with these words."""

    async def is_refused() -> bool:
        return words in await refusal(client, kind, namespace, body)

    await eventually(is_refused)


async def refusal(client: KubernetesClient, kind: Kind, namespace: str, body: Body) -> str:
    """Why the server would not create an object; empty if it would."""
    try:
        await client.trying().create(kind, namespace, body)
    except ClusterError as error:
        return str(error)
    return ""


async def _is_accepted(client: KubernetesClient, kind: Kind, namespace: str, body: Body) -> bool:
    return not await refusal(client, kind, namespace, body)
