"""Webhooks: what a server says and stores where ours fill in what is missing and refuse what is wrong."""

from typing import Any

from tests.contract.scenario import Scenario, Step
from tests.contract.scenarios.applying import applied
from tests.contract.scenarios.ours import CLIQUES, DEFINED, SETS

BINDINGS = "/apis/grove.io/v1alpha1/clustertopologybindings"
SEEN = {"contract": "webhooks"}
"""The label of everything that the webhooks are asked about, so that nobody else's objects are."""


def clique(name: str = "a", **spec: Any) -> dict[str, Any]:
    """A clique of pods with accelerators."""
    container = {"name": "c", "image": "i:1", "resources": {"limits": {"nvidia.com/gpu": "8"}}}
    return {"name": name, "spec": {"roleName": name, "replicas": 2, "podSpec": {"containers": [container]}, **spec}}


def a_set(*cliques: dict[str, Any], name: str = "s", **metadata: Any) -> dict[str, Any]:
    """A set that the webhooks are asked about."""
    frame = {"apiVersion": "grove.io/v1alpha1", "kind": "PodCliqueSet", "metadata": {"name": name, "labels": SEEN, **metadata}}
    return {**frame, "spec": {"replicas": 1, "template": {"cliques": list(cliques) or [clique()]}}}


def binding(*domains: str) -> dict[str, Any]:
    """A topology with these domains."""
    frame = {"apiVersion": "grove.io/v1alpha1", "kind": "ClusterTopologyBinding", "metadata": {"name": "contract-webhooks", "labels": SEEN}}
    return {**frame, "spec": {"levels": [{"domain": domain, "key": f"example.com/{at}"} for at, domain in enumerate(domains)]}}


UNSOUND = (clique("a", minAvailable=3), clique("b", roleName="a"))
NEVER = clique("a", podSpec={"containers": [{"name": "c", "image": "i:1"}], "restartPolicy": "Never"})
RENAMED = [{"op": "replace", "path": "/spec/template/cliques/0/spec/roleName", "value": "other"}]
MANAGED = {**SEEN, "app.kubernetes.io/managed-by": "grove-operator", "app.kubernetes.io/part-of": "s"}
MEMBER = {
    "apiVersion": "grove.io/v1alpha1",
    "kind": "PodClique",
    "metadata": {"name": "s-0-a", "labels": MANAGED},
    "spec": {"roleName": "a", "replicas": 1, "podSpec": {"containers": [{"name": "c", "image": "i:1"}]}},
}

WEBHOOKS = Scenario(
    "webhooks",
    (
        *DEFINED,
        Step("", "AWAIT", "/apis/grove.io/v1alpha1"),
        Step("", "AWAIT", SETS),
        Step("", "AWAIT", BINDINGS),
        Step("a dry run shows what would be filled in", "POST", f"{SETS}?dryRun=All", a_set()),
        Step("which was not stored", "GET", f"{SETS}/s"),
        Step("a new set is filled in", "POST", SETS, a_set()),
        Step("several faults", "POST", SETS, a_set(*UNSOUND, name="t")),
        Step("a single fault", "POST", SETS, a_set(UNSOUND[0], name="t")),
        Step("in a dry run", "POST", f"{SETS}?dryRun=All", a_set(UNSOUND[0], name="t")),
        Step("of a set with a taken name", "POST", SETS, a_set(UNSOUND[0])),
        Step("a name that is taken", "POST", SETS, a_set()),
        Step("a fault of the schema comes first", "POST", SETS, a_set(clique("a", minAvailable=3, startsAfter=[1]), name="t")),
        Step("an unknown field comes first of all", "POST", f"{SETS}?fieldValidation=Strict", a_set(clique("a", nonsense=3), name="t")),
        Step("a warning", "POST", SETS, a_set(NEVER, name="warned")),
        Step("a warning about what is refused", "POST", SETS, a_set({**NEVER, "spec": {**NEVER["spec"], "minAvailable": 3}}, name="t")),
        Step("what must not change, by a patch", "PATCH", f"{SETS}/s", RENAMED, "json-patch"),
        Step("by a merge", "PATCH", f"{SETS}/s", {"spec": {"template": {"cliques": [clique("a", roleName="other")]}}}, "merge"),
        Step("an annotation that stays", "PATCH", f"{SETS}/s", {"metadata": {"annotations": {"grove.io/auto-mnnvl": None}}}, "merge"),
        Step("what is taken out is filled in again", "PATCH", f"{SETS}/s", {"spec": {"template": {"terminationDelay": None}}}, "merge"),
        Step("nothing changes", "PATCH", f"{SETS}/s", {"metadata": {"labels": SEEN}}, "merge"),
        applied("applied by another", f"{SETS}/s", a_set(), "two"),
        applied("and changed against the rules", f"{SETS}/s", a_set(clique("a", roleName="other")), "two", force=True),
        applied("a new one, applied", f"{SETS}/v", a_set(name="v"), "two"),
        applied("applied again", f"{SETS}/v", a_set(name="v"), "two"),
        applied("a new one, against the rules", f"{SETS}/t", a_set(*UNSOUND, name="t"), "two"),
        Step("a state", "PATCH", f"{SETS}/s/status", {"status": {"replicas": 1, "availableReplicas": 0}}, "merge"),
        Step("a scale", "PATCH", f"{SETS}/s/scale", {"spec": {"replicas": 3}}, "merge"),
        Step("a topology with a fault", "POST", BINDINGS, binding("rack", "rack")),
        Step("a clique that is not everybody's to make", "POST", CLIQUES, MEMBER),
        Step("a set that is held", "PATCH", f"{SETS}/s", {"metadata": {"finalizers": ["example.com/hold"]}}, "merge"),
        Step("goes", "DELETE", f"{SETS}/s"),
        Step("and is let go", "PATCH", f"{SETS}/s", {"metadata": {"finalizers": None}}, "merge"),
        Step("all that is left", "GET", SETS),
    ),
)
