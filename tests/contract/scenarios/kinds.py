"""Kinds: what the server makes of each built-in kind that matters here."""

from typing import Any

from tests.contract.scenario import Scenario, Step
from tests.contract.scenarios.bodies import NS

RBAC = "/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}"
HPAS = "/apis/autoscaling/v2/namespaces/{ns}/horizontalpodautoscalers"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases"
EVENTS = "/apis/events.k8s.io/v1/namespaces/{ns}/events"
RESOURCES = "/apis/resource.k8s.io/v1"


def made(api_version: str, kind: str, name: str, **fields: Any) -> dict[str, Any]:
    """Any object."""
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **fields}


SERVICES = Scenario(
    "services",
    (
        Step(
            "headless",
            "POST",
            f"{NS}/services",
            made("v1", "Service", "headless", spec={"clusterIP": "None", "selector": {"a": "b"}, "publishNotReadyAddresses": True}),
        ),
        Step(
            "with ports", "POST", f"{NS}/services", made("v1", "Service", "plain", spec={"ports": [{"port": 80}], "selector": {"a": "b"}})
        ),
        Step("without ports", "POST", f"{NS}/services", made("v1", "Service", "none", spec={"selector": {"a": "b"}})),
        Step("two nameless ports", "POST", f"{NS}/services", made("v1", "Service", "two", spec={"ports": [{"port": 80}, {"port": 81}]})),
        Step("a bad name", "POST", f"{NS}/services", made("v1", "Service", "9a", spec={"clusterIP": "None"})),
        Step("a bad type", "POST", f"{NS}/services", made("v1", "Service", "bad", spec={"type": "Magic", "ports": [{"port": 80}]})),
        Step("its selector", "PATCH", f"{NS}/services/headless", {"spec": {"selector": {"a": "c"}}}, "merge"),
        Step(
            "its address stays",
            "PATCH",
            f"{NS}/services/headless",
            {"spec": {"clusterIP": "10.0.0.77", "clusterIPs": ["10.0.0.77"]}},
            "merge",
        ),
        Step("replaced without an address", "PUT", f"{NS}/services/plain", made("v1", "Service", "plain", spec={"ports": [{"port": 81}]})),
        Step("deleted", "DELETE", f"{NS}/services/headless"),
    ),
)

SECRETS = Scenario(
    "secrets",
    (
        Step("an account", "POST", f"{NS}/serviceaccounts", made("v1", "ServiceAccount", "sa")),
        Step("a secret", "POST", f"{NS}/secrets", made("v1", "Secret", "s", stringData={"a": "b"}, data={"c": "ZA=="})),
        Step(
            "a token for the account",
            "POST",
            f"{NS}/serviceaccounts/sa/token",
            made("authentication.k8s.io/v1", "TokenRequest", "sa", spec={}),
        ),
        Step(
            "a token for nobody",
            "POST",
            f"{NS}/serviceaccounts/none/token",
            made("authentication.k8s.io/v1", "TokenRequest", "none", spec={}),
        ),
        Step("no base64", "POST", f"{NS}/secrets", made("v1", "Secret", "t", data={"c": "%"})),
        Step("a token of nobody", "POST", f"{NS}/secrets", made("v1", "Secret", "t", type="kubernetes.io/service-account-token")),
        Step("its type stays", "PATCH", f"{NS}/secrets/s", {"type": "other"}, "merge"),
        Step("a bad key", "POST", f"{NS}/secrets", made("v1", "Secret", "t", stringData={"a b": "c"})),
        Step("an account goes", "DELETE", f"{NS}/serviceaccounts/sa"),
        Step("a secret goes", "DELETE", f"{NS}/secrets/s"),
    ),
)

_RULE = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
_REFERENCE = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"}
ROLES = Scenario(
    "roles",
    (
        Step("a role", "POST", f"{RBAC}/roles", made("rbac.authorization.k8s.io/v1", "Role", "r", rules=[_RULE])),
        Step(
            "a rule without verbs",
            "POST",
            f"{RBAC}/roles",
            made("rbac.authorization.k8s.io/v1", "Role", "s", rules=[{"apiGroups": [""], "resources": ["pods"]}]),
        ),
        Step(
            "a rule without resources",
            "POST",
            f"{RBAC}/roles",
            made("rbac.authorization.k8s.io/v1", "Role", "s", rules=[{"apiGroups": [""], "verbs": ["get"]}]),
        ),
        Step("a name with a slash", "POST", f"{RBAC}/roles", made("rbac.authorization.k8s.io/v1", "Role", "a:b", rules=[_RULE])),
        Step(
            "a binding",
            "POST",
            f"{RBAC}/rolebindings",
            made(
                "rbac.authorization.k8s.io/v1",
                "RoleBinding",
                "b",
                roleRef=_REFERENCE,
                subjects=[{"kind": "ServiceAccount", "name": "x", "namespace": "{ns}"}],
            ),
        ),
        Step("points there for ever", "PATCH", f"{RBAC}/rolebindings/b", {"roleRef": {"name": "other"}}, "merge"),
        Step(
            "to no role",
            "POST",
            f"{RBAC}/rolebindings",
            made("rbac.authorization.k8s.io/v1", "RoleBinding", "c", roleRef={"kind": "Magic", "name": ""}),
        ),
        Step("made by PUT", "PUT", f"{RBAC}/roles/put", made("rbac.authorization.k8s.io/v1", "Role", "put", rules=[_RULE])),
        Step("deleted", "DELETE", f"{RBAC}/roles/r"),
    ),
)

_TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
AUTOSCALERS = Scenario(
    "autoscalers",
    (
        Step(
            "an autoscaler",
            "POST",
            HPAS,
            made("autoscaling/v2", "HorizontalPodAutoscaler", "h", spec={"scaleTargetRef": _TARGET, "maxReplicas": 5}),
        ),
        Step(
            "with its own measures",
            "POST",
            HPAS,
            made(
                "autoscaling/v2",
                "HorizontalPodAutoscaler",
                "m",
                spec={
                    "scaleTargetRef": _TARGET,
                    "minReplicas": 2,
                    "maxReplicas": 5,
                    "metrics": [
                        {"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1024Mi"}}}
                    ],
                },
            ),
        ),
        Step(
            "upside down",
            "POST",
            HPAS,
            made("autoscaling/v2", "HorizontalPodAutoscaler", "x", spec={"scaleTargetRef": _TARGET, "minReplicas": 5, "maxReplicas": 2}),
        ),
        Step(
            "of nothing",
            "POST",
            HPAS,
            made("autoscaling/v2", "HorizontalPodAutoscaler", "x", spec={"scaleTargetRef": {"kind": "", "name": ""}, "maxReplicas": 0}),
        ),
        Step("wider", "PATCH", f"{HPAS}/h", {"spec": {"maxReplicas": 7}}, "merge"),
        Step("its status", "PATCH", f"{HPAS}/h/status", {"status": {"desiredReplicas": 3}}, "merge"),
    ),
)

LEASING = Scenario(
    "leases",
    (
        Step(
            "a lease",
            "POST",
            LEASES,
            made(
                "coordination.k8s.io/v1",
                "Lease",
                "l",
                spec={"holderIdentity": "me", "leaseDurationSeconds": 15, "renewTime": "2026-01-01T00:00:00.000000Z"},
            ),
            keep={"rv": "metadata.resourceVersion"},
        ),
        Step(
            "renewed",
            "PUT",
            f"{LEASES}/l",
            {
                **made("coordination.k8s.io/v1", "Lease", "l", spec={"holderIdentity": "me", "leaseDurationSeconds": 15}),
                "metadata": {"name": "l", "resourceVersion": "{rv}"},
            },
        ),
        Step(
            "too late",
            "PUT",
            f"{LEASES}/l",
            {
                **made("coordination.k8s.io/v1", "Lease", "l", spec={"holderIdentity": "you", "leaseDurationSeconds": 15}),
                "metadata": {"name": "l", "resourceVersion": "{rv}"},
            },
        ),
        Step("without a revision", "PUT", f"{LEASES}/l", made("coordination.k8s.io/v1", "Lease", "l", spec={"holderIdentity": "you"})),
        Step("no seconds", "POST", LEASES, made("coordination.k8s.io/v1", "Lease", "m", spec={"leaseDurationSeconds": 0})),
    ),
)

_ABOUT = {"apiVersion": "v1", "kind": "Pod", "name": "p", "namespace": "{ns}"}
EVENTS_TOLD = Scenario(
    "events",
    (
        Step(
            "an old event",
            "POST",
            f"{NS}/events",
            made(
                "v1",
                "Event",
                "old",
                involvedObject=_ABOUT,
                reason="Why",
                message="Because",
                type="Normal",
                source={"component": "c"},
                count=1,
            ),
        ),
        Step(
            "a new event",
            "POST",
            EVENTS,
            made(
                "events.k8s.io/v1",
                "Event",
                "new",
                regarding=_ABOUT,
                reason="Why",
                note="Because",
                type="Normal",
                action="Do",
                reportingController="example.com/c",
                reportingInstance="c-1",
                eventTime="2026-01-01T00:00:00.000000Z",
            ),
        ),
        Step("the new one in the old form", "GET", f"{NS}/events/new"),
        Step("the old one in the new form", "GET", f"{EVENTS}/old"),
        Step("about the pod", "GET", f"{NS}/events?fieldSelector=involvedObject.name%3Dp,reason%3DWhy"),
        Step("counted", "PATCH", f"{NS}/events/old", {"count": 2}, "merge"),
    ),
)

_CLAIM = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}]}}
CLAIMS = Scenario(
    "claims",
    (
        Step("a class", "POST", f"{RESOURCES}/deviceclasses", made("resource.k8s.io/v1", "DeviceClass", "{ns}.example.com", spec={})),
        Step(
            "a claim",
            "POST",
            f"{RESOURCES}/namespaces/{{ns}}/resourceclaims",
            made("resource.k8s.io/v1", "ResourceClaim", "c", spec=_CLAIM),
        ),
        Step(
            "its spec stays",
            "PATCH",
            f"{RESOURCES}/namespaces/{{ns}}/resourceclaims/c",
            {"spec": {"devices": {"requests": [{"name": "other", "exactly": {"deviceClassName": "x"}}]}}},
            "merge",
        ),
        Step(
            "a template",
            "POST",
            f"{RESOURCES}/namespaces/{{ns}}/resourceclaimtemplates",
            made("resource.k8s.io/v1", "ResourceClaimTemplate", "t", spec={"spec": _CLAIM}),
        ),
        Step(
            "a slice",
            "POST",
            f"{RESOURCES}/resourceslices",
            made(
                "resource.k8s.io/v1",
                "ResourceSlice",
                "{ns}-slice",
                spec={
                    "driver": "gpu.example.com",
                    "nodeName": "n",
                    "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1},
                    "devices": [{"name": "gpu-0"}],
                },
            ),
        ),
        Step("a claim goes", "DELETE", f"{RESOURCES}/namespaces/{{ns}}/resourceclaims/c"),
        Step("a template goes", "DELETE", f"{RESOURCES}/namespaces/{{ns}}/resourceclaimtemplates/t"),
        Step("a class goes", "DELETE", f"{RESOURCES}/deviceclasses/{{ns}}.example.com"),
        Step("a slice goes", "DELETE", f"{RESOURCES}/resourceslices/{{ns}}-slice"),
    ),
)

CLUSTER = Scenario(
    "cluster-kinds",
    (
        Step(
            "a node",
            "POST",
            "/api/v1/nodes",
            {**made("v1", "Node", "{ns}-node"), "status": {"allocatable": {"cpu": "4000m", "memory": "8192Mi"}}},
        ),
        Step(
            "its status",
            "PATCH",
            "/api/v1/nodes/{ns}-node/status",
            {
                "status": {
                    "conditions": [
                        {
                            "type": "Ready",
                            "status": "True",
                            "lastHeartbeatTime": "2026-01-01T00:00:00Z",
                            "lastTransitionTime": "2026-01-01T00:00:00Z",
                        }
                    ]
                }
            },
            "strategic",
        ),
        Step("cordoned", "PATCH", "/api/v1/nodes/{ns}-node", {"spec": {"unschedulable": True}}, "merge"),
        Step("a node goes", "DELETE", "/api/v1/nodes/{ns}-node"),
        Step(
            "a priority class",
            "POST",
            "/apis/scheduling.k8s.io/v1/priorityclasses",
            made("scheduling.k8s.io/v1", "PriorityClass", "{ns}-high", value=100),
        ),
        Step("a priority class goes", "DELETE", "/apis/scheduling.k8s.io/v1/priorityclasses/{ns}-high"),
        Step(
            "a cluster role",
            "POST",
            "/apis/rbac.authorization.k8s.io/v1/clusterroles",
            made("rbac.authorization.k8s.io/v1", "ClusterRole", "{ns}", rules=[_RULE]),
        ),
        Step("a cluster role goes", "DELETE", "/apis/rbac.authorization.k8s.io/v1/clusterroles/{ns}"),
        Step(
            "a budget",
            "POST",
            "/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets",
            made("policy/v1", "PodDisruptionBudget", "b", spec={"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}),
        ),
        Step(
            "a slice of endpoints",
            "POST",
            "/apis/discovery.k8s.io/v1/namespaces/{ns}/endpointslices",
            made(
                "discovery.k8s.io/v1",
                "EndpointSlice",
                "e",
                addressType="IPv4",
                endpoints=[{"addresses": ["10.1.2.3"]}],
                ports=[{"port": 80}],
            ),
        ),
        Step(
            "a stateful set",
            "POST",
            "/apis/apps/v1/namespaces/{ns}/statefulsets",
            made(
                "apps/v1",
                "StatefulSet",
                "s",
                spec={
                    "selector": {"matchLabels": {"a": "b"}},
                    "serviceName": "x",
                    "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
                },
            ),
        ),
        Step(
            "a job",
            "POST",
            "/apis/batch/v1/namespaces/{ns}/jobs",
            made(
                "batch/v1",
                "Job",
                "j",
                spec={"suspend": True, "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}},
            ),
        ),
        Step(
            "a policy",
            "POST",
            "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
            made(
                "admissionregistration.k8s.io/v1",
                "ValidatingAdmissionPolicy",
                "{ns}",
                spec={
                    "matchConstraints": {
                        "resourceRules": [
                            {"apiGroups": ["none.example.com"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["nones"]}
                        ]
                    },
                    "validations": [{"expression": "true"}],
                },
            ),
        ),
        Step("a policy goes", "DELETE", "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/{ns}"),
    ),
)

SCENARIOS = (SERVICES, SECRETS, ROLES, AUTOSCALERS, LEASING, EVENTS_TOLD, CLAIMS, CLUSTER)
