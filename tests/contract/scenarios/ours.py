"""Our own kinds: what a server makes of them under the definitions that this project generates."""

from typing import Any

from resources.schema.crds import crds
from tests.contract.scenario import Scenario, Step
from tests.contract.scenarios.applying import applied

SETS = "/apis/grove.io/v1alpha1/namespaces/{ns}/podcliquesets"
CLIQUES = "/apis/grove.io/v1alpha1/namespaces/{ns}/podcliques"


def _set(name: str = "a", **template: Any) -> dict[str, Any]:
    """A PodCliqueSet of one clique."""
    spec = {"containers": [{"name": "main", "image": "i:1", "resources": {"requests": {"cpu": "10m"}}}]}
    clique = {"name": "worker", "spec": {"roleName": "worker", "replicas": 2, "podSpec": spec}}
    return {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"replicas": 1, "template": {"cliques": [clique], **template}},
    }


def _with_replicas(replicas: Any) -> dict[str, Any]:
    made = _set("b")
    return {**made, "spec": {**made["spec"], "replicas": replicas}}


def _nameless() -> dict[str, Any]:
    return _set("b", cliques=[{"spec": {"replicas": 1, "podSpec": {"containers": []}}}])


_READY = {
    "type": "MinAvailableBreached",
    "status": "False",
    "reason": "Enough",
    "message": "",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}
_STATUS = {
    "apiVersion": "grove.io/v1alpha1",
    "kind": "PodClique",
    "metadata": {"name": "c"},
    "status": {"replicas": 2, "readyReplicas": 1, "conditions": [_READY]},
}
_CLIQUE = {
    "apiVersion": "grove.io/v1alpha1",
    "kind": "PodClique",
    "metadata": {"name": "c", "finalizers": ["grove.io/hold"]},
    "spec": {"roleName": "c", "replicas": 2, "podSpec": {"containers": [{"name": "main", "image": "i:1"}]}},
}

DEFINED = tuple(Step("", "ENSURE", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition) for definition in crds())
OURS = Scenario(
    "our-kinds",
    (
        *DEFINED,
        Step("", "AWAIT", "/apis/grove.io/v1alpha1"),
        Step("", "AWAIT", "/apis/scheduler.grove.io/v1alpha1"),
        Step("", "AWAIT", f"{SETS}"),
        Step("a set", "POST", SETS, _set()),
        applied("applied", f"{SETS}/a", _set()),
        Step("replicas of the wrong type", "POST", SETS, _with_replicas("two")),
        Step("an unknown field", "POST", f"{SETS}?fieldValidation=Strict", _set("b", nonsense=1)),
        Step("a clique without a name", "POST", SETS, _nameless()),
        Step("its status", "PATCH", f"{SETS}/a/status", {"status": {"replicas": 1, "availableReplicas": 0}}, "merge"),
        Step("its scale", "GET", f"{SETS}/a/scale"),
        Step("scaled", "PATCH", f"{SETS}/a/scale", {"spec": {"replicas": 3}}, "merge"),
        Step("as it is", "GET", f"{SETS}/a"),
        Step("a clique", "POST", CLIQUES, _CLIQUE),
        applied("its status, applied", f"{CLIQUES}/c/status", _STATUS, "operator"),
        Step("deleted, but held", "DELETE", f"{CLIQUES}/c"),
        Step("released", "PATCH", f"{CLIQUES}/c", {"metadata": {"finalizers": []}}, "merge"),
        Step("all cliques", "GET", CLIQUES),
        Step("the set goes", "DELETE", f"{SETS}/a", {"propagationPolicy": "Background"}),
    ),
)


def _clique(name: str, **spec: Any) -> dict[str, Any]:
    """A PodClique with this in its pod spec, beside one container."""
    pod_spec = {"containers": [{"name": "main"}], **spec}
    return {**_CLIQUE, "metadata": {"name": name}, "spec": {"roleName": "c", "replicas": 1, "podSpec": pod_spec}}


_MISTAKEN = _clique(
    "wrong",
    hostNetwork="true",
    restartPolicy="Sometimes",
    activeDeadlineSeconds=30.5,
    nodeSelector={"gpu": True, "rack": 1},
    tolerations=[{"effect": "None", "tolerationSeconds": []}, None],
    imagePullSecrets={"name": "x"},
    containers=[
        {
            "name": 5,
            "image": {},
            "command": "run",
            "args": [1, None, "ok"],
            "ports": [{"containerPort": "80"}, {"name": "x"}],
            "env": [{"value": "x"}, {"name": "y", "value": 1}],
            "livenessProbe": {"httpGet": {"port": True}, "periodSeconds": 1.5},
            "resources": {"limits": {"a": True, "b": {}, "c": [], "d": [1], "e": {"x": 1}, "f": "2 cores"}},
        },
        {"image": "i:1"},
    ],
    volumes=[
        {"ephemeral": {"volumeClaimTemplate": {"metadata": {"creationTimestamp": "x"}, "spec": {"accessModes": ["All"]}}}},
        {"name": "e", "emptyDir": {"sizeLimit": False}},
    ],
)
_NOVEL = _clique(
    "novel",
    future={"a": None, "b": [1, None, {"c": 0.5}]},
    securityContext={"future": True, "seLinuxOptions": {"future": "x"}},
    containers=[
        {
            "name": "main",
            "future": [],
            "ports": [{"containerPort": 80, "future": 1}],
            "livenessProbe": {"httpGet": {"port": "http", "future": 1}},
            "env": [{"name": "a", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name", "future": None}}}],
        }
    ],
    affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"future": {}}]}}},
)
_LENIENT = _clique(
    "lenient",
    restartPolicy="",
    hostNetwork=None,
    nodeSelector={"a": None, "b": "c"},
    tolerations=[{"effect": "", "future": None}],
    containers=[
        {
            "name": "main",
            "env": None,
            "ports": [{"containerPort": 80.0}],
            "resources": {"limits": {"a": 0.5, "b": 1000, "c": "1e3", "d": None, "e": "-.5Ki"}},
        }
    ],
)
_UNTYPED: tuple[dict[str, Any], ...] = (
    {"hostNetwork": "true"},
    {"hostNetwork": {"b": [1, None], "a": 1.5}},
    {"activeDeadlineSeconds": []},
    {"activeDeadlineSeconds": True},
    {"activeDeadlineSeconds": 1.5},
    {"nodeSelector": ["a"]},
    {"nodeSelector": {"a": 1}},
    {"nodeSelector": {"a": {"b": [None, "x"]}}},
    {"nodeSelector": {"a": None}},
    {"hostNetwork": None, "containers": [{"name": "main", "args": None}]},
    {"containers": {}},
    {"containers": None},
    {"containers": [{"name": 5}]},
    {"containers": [{"name": "main", "livenessProbe": {"tcpSocket": {"port": True}}}]},
)
POD_SPECS = Scenario(
    "pod-specs",
    (
        *DEFINED,
        Step("", "AWAIT", "/apis/grove.io/v1alpha1"),
        Step("", "AWAIT", CLIQUES),
        Step("", "AWAIT", SETS),
        Step("nothing has its type", "POST", CLIQUES, _MISTAKEN),
        Step("no containers", "POST", CLIQUES, _clique("wrong", containers=None)),
        Step("no pod spec", "POST", CLIQUES, {**_CLIQUE, "spec": {"roleName": "c", "replicas": 1, "podSpec": "x"}}),
        Step("a mistake in a set", "POST", SETS, _set(cliques=[{"name": "a", "spec": _MISTAKEN["spec"]}])),
        Step("what a newer Kubernetes may know", "POST", f"{CLIQUES}?fieldValidation=Strict", _NOVEL),
        Step("of which nothing is lost", "GET", f"{CLIQUES}/novel"),
        Step("what a pod may say", "POST", f"{CLIQUES}?fieldValidation=Strict", _LENIENT),
        Step("a fault comes in by a patch", "PATCH", f"{CLIQUES}/lenient", {"spec": {"podSpec": {"hostPID": 1}}}, "merge"),
        Step(
            "and more of what is new", "PATCH", f"{CLIQUES}/lenient", {"spec": {"podSpec": {"hostPID": True, "future": {"x": 1}}}}, "merge"
        ),
        applied("applied", f"{CLIQUES}/applied", _clique("applied", nodeSelector={"a": "b"}, future={"x": 1}), "one"),
        applied("a key of a map by another", f"{CLIQUES}/applied", _clique("applied", nodeSelector={"c": "d"}, future={"y": 2}), "two"),
        applied("a list by another", f"{CLIQUES}/applied", _clique("applied", containers=[{"name": "other"}]), "two"),
        *(applied(f"{said}, applied", f"{CLIQUES}/wrong", _clique("wrong", **said)) for said in _UNTYPED),
    ),
)

SCENARIOS = (OURS, POD_SPECS)
