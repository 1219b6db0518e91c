"""What an API server refuses in pods, beyond types: each rule with its field and its message."""

from collections.abc import Iterator
from typing import Any

import pytest

from resources.base.kinds import PODCLIQUESET
from resources.schema.issues import shown
from resources.schema.pod_spec_rules import findings, is_fault, object_findings
from tests.controlplane.pod_trials import with_value
from tests.resources.manifests import clique, pcs

BASE: dict[str, Any] = {
    "containers": [{"name": "main", "image": "i"}],
    "volumes": [{"name": "data", "emptyDir": {}}],
    "resourceClaims": [{"name": "gpu", "resourceClaimName": "gpu"}],
}


def pod(**fields: Any) -> dict[str, Any]:
    """A valid pod spec with these fields; those of its container begin with an underscore."""
    container = {key[1:]: value for key, value in fields.items() if key.startswith("_")}
    return {
        **BASE,
        **{key: value for key, value in fields.items() if not key.startswith("_")},
        **({"containers": [{**BASE["containers"][0], **container}]} if container else {}),
    }


def faults(spec: Any) -> list[str]:
    """What the server would refuse, as text without the path of the container."""
    return [str(finding).replace("containers[0].", "") for finding in findings(spec)]


def init(**fields: Any) -> dict[str, Any]:
    """A pod spec with this init container."""
    return pod(initContainers=[{"name": "first", "image": "i", **fields}])


def projected(**source: Any) -> dict[str, Any]:
    """A pod spec with a projected volume of this source."""
    return pod(volumes=[{"name": "data", "projected": {"sources": [source]}}])


CERTIFICATE = {"signerName": "example.com/signer", "keyType": "ED25519", "keyPath": "key"}
EXEC = {"exec": {"command": ["true"]}}
TWICE = {"name": "main", "image": "i"}
CASES: list[tuple[dict[str, Any], str]] = [
    (pod(_image=None), "image: Required value"),
    (pod(_image=""), "image: Required value"),
    (pod(_image=" i"), 'image: Invalid value: " i": must not have leading or trailing whitespace'),
    (pod(containers=[TWICE, TWICE]), 'containers[1].name: Duplicate value: "main"'),
    (pod(initContainers=[TWICE]), 'initContainers[0].name: Duplicate value: "main"'),
    (pod(_livenessProbe={"periodSeconds": 5}), "livenessProbe: Required value: must specify a handler type"),
    (
        pod(_livenessProbe={**EXEC, "tcpSocket": {"port": 80}}),
        "livenessProbe.tcpSocket: Forbidden: may not specify more than 1 handler type",
    ),
    (pod(_livenessProbe={**EXEC, "successThreshold": 2}), "livenessProbe.successThreshold: Invalid value: 2: must be 1"),
    (pod(_livenessProbe={"exec": {}}), "livenessProbe.exec.command: Required value"),
    (
        pod(_livenessProbe={**EXEC, "periodSeconds": -1}),
        "livenessProbe.periodSeconds: Invalid value: -1: must be greater than or equal to 0",
    ),
    (
        pod(_readinessProbe={**EXEC, "terminationGracePeriodSeconds": 3}),
        "readinessProbe.terminationGracePeriodSeconds: Invalid value: 3: must not be set for readinessProbes",
    ),
    (pod(_lifecycle={"preStop": {}}), "lifecycle.preStop: Required value: must specify a handler type"),
    (
        pod(_lifecycle={"preStop": {"sleep": {"seconds": 31}}}),
        "lifecycle.preStop.sleep: Invalid value: 31: must be non-negative and less than terminationGracePeriodSeconds (30)",
    ),
    (
        init(livenessProbe=EXEC),
        "initContainers[0].livenessProbe: Forbidden: may not be set for init containers without restartPolicy=Always",
    ),
    (init(lifecycle={}), "initContainers[0].lifecycle: Forbidden: may not be set for init containers without restartPolicy=Always"),
    (
        init(restartPolicy="Sometimes"),
        'initContainers[0].restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "Never", "OnFailure"',
    ),
    (pod(_ports=[{"containerPort": 0}]), "ports[0].containerPort: Invalid value: 0: must be between 1 and 65535, inclusive"),
    (
        pod(_ports=[{"containerPort": 80, "name": "UPPER"}]),
        'ports[0].name: Invalid value: "UPPER": must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)',
    ),
    (pod(_ports=[{"containerPort": port, "name": "http"} for port in (80, 81)]), 'ports[1].name: Duplicate value: "http"'),
    (pod(_ports=[{"containerPort": port, "hostPort": 80} for port in (80, 81)]), 'ports[1].hostPort: Duplicate value: "TCP//80"'),
    (
        pod(hostNetwork=True, _ports=[{"containerPort": 80, "hostPort": 81}]),
        "ports[0].hostPort: Invalid value: 81: must match `containerPort` when `hostNetwork` is true",
    ),
    (
        pod(
            hostNetwork=True,
            containers=[{"name": name, "image": "i", "ports": [{"containerPort": 80}]} for name in ("a", "b")],
        ),
        'containers[1].ports[0].hostPort: Duplicate value: "TCP//80"',
    ),
    (
        pod(_env=[{"name": "A", "value": "1", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]),
        'env[0].valueFrom: Invalid value: "": may not be specified when `value` is not empty',
    ),
    (
        pod(_env=[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.nam"}}}]),
        'env[0].valueFrom.fieldRef.fieldPath: Unsupported value: "metadata.nam": supported values: "metadata.name", …',
    ),
    (pod(_env=[{"name": "A", "valueFrom": {"secretKeyRef": {"key": "k"}}}]), "env[0].valueFrom.secretKeyRef.name: Required value"),
    (
        pod(_env=[{"name": "A=B", "value": "1"}]),
        'env[0].name: Invalid value: "A=B": a valid environment variable name must consist only of printable ASCII characters …',
    ),
    (pod(_envFrom=[{"prefix": "A"}]), "envFrom[0]: Required value: must specify one of: `configMapRef` or `secretRef`"),
    (
        pod(_volumeMounts=[{"name": "dta", "mountPath": "/a"}]),
        'volumeMounts[0].name: Not found: "dta": the pod has no volume of this name; did you mean data? There is data',
    ),
    (pod(_volumeMounts=[{"name": "data", "mountPath": "/a"}] * 2), 'volumeMounts[1].mountPath: Invalid value: "/a": must be unique'),
    (
        pod(_volumeMounts=[{"name": "data", "mountPath": "/a", "subPath": "../b"}]),
        "volumeMounts[0].subPath: Invalid value: \"../b\": must not contain '..'",
    ),
    (
        pod(_volumeDevices=[{"name": "data", "devicePath": "/dev/a"}]),
        'volumeDevices[0].name: Invalid value: "data": can only use volume source type of PersistentVolumeClaim …',
    ),
    (
        pod(_resources={"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}),
        'resources.requests.cpu: Invalid value: "2": must be less than or equal to cpu limit of 1',
    ),
    (
        pod(_resources={"requests": {"nvidia.com/gpu": 1}, "limits": {"nvidia.com/gpu": 2}}),
        "resources.requests[nvidia.com/gpu]: Invalid value: 1: must be equal to nvidia.com/gpu limit of 2",
    ),
    (pod(_resources={"limits": {"nvidia.com/gpu": "1.5"}}), 'resources.limits[nvidia.com/gpu]: Invalid value: "1.5": must be an integer'),
    (
        pod(_resources={"requests": {"nvidia.com/gpu": 1}}),
        "resources.limits: Required value: Limit must be set for non overcommitable resources: nvidia.com/gpu",
    ),
    (pod(_resources={"limits": {"cpu": "-1"}}), 'resources.limits.cpu: Invalid value: "-1": must be greater than or equal to 0'),
    (
        pod(_resources={"limits": {"gpu": 1}}),
        'resources.limits.gpu: Invalid value: "gpu": must be a standard resource type or fully qualified',
    ),
    (pod(_resources={"limits": {"hugepages-2Mi": "4Mi"}}), "resources: Forbidden: HugePages require cpu or memory"),
    (
        pod(_resources={"claims": [{"name": "gpus"}]}),
        'resources.claims[0]: Not found: "gpus": must be one of the names in pod.spec.resourceClaims: gpu',
    ),
    (pod(_resources={"claims": [{"name": "gpu"}] * 2}), 'resources.claims[1]: Duplicate value: "gpu"'),
    (
        pod(resourceClaims=[{"name": "gpu"}]),
        "resourceClaims[0]: Required value: must specify one of: `resourceClaimName`, `resourceClaimTemplateName`",
    ),
    (pod(volumes=[{"name": "data"}, {"name": "data"}]), 'volumes[1].name: Duplicate value: "data"'),
    (
        pod(volumes=[{"name": "data", "emptyDir": {}, "configMap": {"name": "c"}}]),
        "volumes[0].configMap: Forbidden: may not specify more than 1 volume type",
    ),
    (pod(volumes=[{"name": "data", "configMap": {}}]), "volumes[0].configMap.name: Required value"),
    (
        pod(volumes=[{"name": "data", "secret": {"secretName": "s", "defaultMode": 0o1000}}]),
        "volumes[0].secret.defaultMode: Invalid value: 512: must be a number between 0 and 0777 (octal), both inclusive",
    ),
    (
        projected(clusterTrustBundle={"path": "ca"}),
        "volumes[0].projected.sources[0].clusterTrustBundle: Required value: either name or signerName must be specified",
    ),
    (
        projected(clusterTrustBundle={"path": "ca", "name": "a", "labelSelector": {}}),
        "volumes[0].projected.sources[0].clusterTrustBundle.labelSelector: Invalid value: an object: labelSelector must be unset …",
    ),
    (
        projected(clusterTrustBundle={"path": "../ca", "name": "a"}),
        "volumes[0].projected.sources[0].clusterTrustBundle.path: Invalid value: \"../ca\": must not contain '..'",
    ),
    (
        projected(podCertificate={**CERTIFICATE, "signerName": "signer"}),
        'volumes[0].projected.sources[0].podCertificate.signerName: Invalid value: "signer": must be a fully qualified domain and path …',
    ),
    (
        projected(podCertificate={**CERTIFICATE, "keyType": "RSA"}),
        'volumes[0].projected.sources[0].podCertificate.keyType: Unsupported value: "RSA": supported values: "RSA3072", …',
    ),
    (
        projected(podCertificate={**CERTIFICATE, "keyPath": None}),
        "volumes[0].projected.sources[0].podCertificate: Required value: specify at least one of credentialBundlePath, keyPath, …",
    ),
    (
        projected(podCertificate={**CERTIFICATE, "certificateChainPath": "key"}),
        'volumes[0].projected.sources[0].podCertificate.certificateChainPath: Invalid value: "key": conflicting duplicate paths',
    ),
    (
        projected(podCertificate={**CERTIFICATE, "maxExpirationSeconds": 60}),
        "volumes[0].projected.sources[0].podCertificate.maxExpirationSeconds: Invalid value: 60: must be between 3600 and 7862400, …",
    ),
    (
        projected(podCertificate={**CERTIFICATE, "userAnnotations": {"team": "a"}}),
        'volumes[0].projected.sources[0].podCertificate.userAnnotations: Invalid value: "team": must be a domain-prefixed key …',
    ),
    (
        pod(resources={"limits": {"cpu": "1"}}, _resources={"requests": {"cpu": "2"}}),
        'resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1',
    ),
    (
        pod(hostIPC=True, securityContext={"sysctls": [{"name": "kernel.shmmax", "value": "1"}]}),
        "securityContext.sysctls[0].name: Invalid value: \"kernel.shmmax\": may not be specified when 'hostIPC' is true",
    ),
    (pod(ephemeralContainers=[{"name": "debug", "image": "i"}]), "ephemeralContainers: Forbidden: cannot be set on create"),
    (pod(activeDeadlineSeconds=0), "activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive"),
    (pod(dnsPolicy="None"), "dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None"),
    (
        pod(dnsConfig={"nameservers": ["10.0.0.1"] * 4}),
        "dnsConfig.nameservers: Invalid value: a list: must not have more than 3 nameservers",
    ),
    (
        pod(tolerations=[{"key": "a", "operator": "Exists", "value": "b"}]),
        "tolerations[0].value: Invalid value: \"b\": value must be empty when `operator` is 'Exists'",
    ),
    (
        pod(tolerations=[{"value": "b"}]),
        'tolerations[0].operator: Invalid value: "": operator must be Exists when `key` is empty, which means …',
    ),
    (
        pod(affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}}),
        "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms: Required value",
    ),
    (
        pod(topologySpreadConstraints=[{"maxSkew": 0, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}]),
        "topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero",
    ),
    (
        pod(_securityContext={"privileged": True, "allowPrivilegeEscalation": False}),
        "securityContext.allowPrivilegeEscalation: Invalid value: false: cannot set `allowPrivilegeEscalation` to false …",
    ),
    (
        pod(_securityContext={"seccompProfile": {"type": "Localhost"}}),
        "securityContext.seccompProfile.localhostProfile: Required value: must be set when seccomp type is Localhost",
    ),
    (pod(os={"name": "windows"}, hostPID=True), "hostPID: Forbidden: cannot be set for a windows pod"),
    (pod(hostUsers=False, hostNetwork=True), "hostNetwork: Forbidden: when `hostUsers` is false"),
    (
        pod(nodeSelector={"a b": "c"}),
        "nodeSelector: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', …",
    ),
    (pod(preemptionPolicy=""), 'preemptionPolicy: Unsupported value: "": supported values: "Never", "PreemptLowerPriority"'),
    (pod(readinessGates=[{"conditionType": ""}]), 'readinessGates[0].conditionType: Invalid value: "": name part must be non-empty'),
    (
        pod(terminationGracePeriodSeconds=2, _lifecycle={"preStop": {"sleep": {"seconds": 3}}}),
        "lifecycle.preStop.sleep: Invalid value: 3: must be non-negative and less than terminationGracePeriodSeconds (2)",
    ),
]
"""A pod spec, and the first thing that a server says about it; `…` stands for the rest of a long message."""


@pytest.mark.parametrize(("spec", "message"), CASES, ids=lambda value: value[:50] if isinstance(value, str) else "")
def test_a_rule_says_what_is_wrong_where(spec: dict[str, Any], message: str) -> None:
    start, cut, _ = message.partition("…")

    assert faults(spec)[0].startswith(start) if cut else faults(spec)[0] == message


def test_what_only_the_pods_would_show_is_no_fault_of_the_object() -> None:
    assert [is_fault(finding) for spec, _ in CASES for finding in findings(spec)].count(True) == 0


def test_the_base_of_the_cases_is_valid() -> None:
    assert faults(BASE) == []


def test_a_field_that_is_not_known_may_be_the_one_that_is_missing() -> None:
    assert faults(pod(_livenessProbe={"quantum": {}})) == ["livenessProbe.quantum: unknown field"]
    assert faults(pod(resourceClaims=[{"name": "gpu", "resourceClaimPool": "a"}])) == ["resourceClaims[0].resourceClaimPool: unknown field"]


@pytest.mark.parametrize("field", ["hostname", "subdomain"])
def test_what_pods_get_from_the_engine_is_not_judged_in_a_template(field: str) -> None:
    spec = pod(**{field: "Not_Valid"})

    assert faults(spec) != []
    assert object_findings(PODCLIQUESET, pcs(clique(podSpec=spec))) == ()


HOSTILE: list[Any] = [
    None,
    True,
    -1,
    1e300,
    float("inf"),
    float("nan"),
    10**400,
    10**5000,
    "1e999999999",
    "-1e-999999999",
    "-0",
    "\x00\x1b[31m" * 50,
    [],
    [None],
    [[]],
    {},
    {"": None},
    {"a": {"b": []}},
    "a" * 10_000,
]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every path of a value."""
    yield path
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(inner, (*path, key))


@pytest.mark.parametrize("wrong", HOSTILE, ids=lambda value: shown(value))
def test_rules_read_anything_without_failing(wrong: Any) -> None:
    for spec, _ in CASES:
        for path in places(spec):
            assert isinstance(list(findings(with_value(spec, path, wrong))), list)
