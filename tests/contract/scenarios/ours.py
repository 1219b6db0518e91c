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

SCENARIOS = (OURS,)
