"""Deleting: preconditions, graces, finalizers and propagation, in the order in which things go."""

from typing import Any

from tests.contract.scenario import Scenario, Step, watched
from tests.contract.scenarios.bodies import MAPS, NS, PODS, config, pod


def options(**fields: Any) -> dict[str, Any]:
    """DeleteOptions."""
    return {"kind": "DeleteOptions", "apiVersion": "v1", **fields}


HOLD = ["example.com/hold"]
DELETING = Scenario(
    "deleting",
    (
        Step("a config map", "POST", MAPS, config(), keep={"rv": "metadata.resourceVersion", "uid": "metadata.uid"}),
        Step("another uid", "DELETE", f"{MAPS}/a", options(preconditions={"uid": "00000000-0000-4000-8000-000000000000"})),
        Step("another revision", "DELETE", f"{MAPS}/a", options(preconditions={"resourceVersion": "1"})),
        Step("a dry run", "DELETE", f"{MAPS}/a?dryRun=All"),
        Step("still there", "GET", f"{MAPS}/a"),
        Step("as judged", "DELETE", f"{MAPS}/a", options(preconditions={"resourceVersion": "{rv}", "uid": "{uid}"})),
        Step("gone", "DELETE", f"{MAPS}/a"),
        Step("held", "POST", MAPS, config("held", finalizers=HOLD)),
        Step("marked", "DELETE", f"{MAPS}/held"),
        Step("marked twice", "DELETE", f"{MAPS}/held"),
        Step("a new finalizer", "PATCH", f"{MAPS}/held", {"metadata": {"finalizers": [*HOLD, "example.com/new"]}}, "merge"),
        Step("other changes are fine", "PATCH", f"{MAPS}/held", {"data": {"x": "y"}}, "merge"),
        Step("the mark stays", "PATCH", f"{MAPS}/held", {"metadata": {"deletionTimestamp": None}}, "merge"),
        Step("taken", "POST", MAPS, config("held")),
        Step("released", "PATCH", f"{MAPS}/held", {"metadata": {"finalizers": []}}, "merge"),
        Step("and gone", "GET", f"{MAPS}/held"),
        Step("bad propagation", "DELETE", f"{MAPS}/none", options(propagationPolicy="Sideways")),
    ),
)

_WAYS = ("foreground", "background", "orphan")
# What the garbage collector makes of these is not the API server's doing, and comes when it comes.
PROPAGATION = Scenario(
    "propagation",
    (
        *(Step(f"one to delete in the {how}", "POST", MAPS, config(how, finalizers=HOLD)) for how in _WAYS),
        Step("foreground", "DELETE", f"{MAPS}/foreground", options(propagationPolicy="Foreground")),
        Step("background", "DELETE", f"{MAPS}/background", options(propagationPolicy="Background")),
        Step("orphan", "DELETE", f"{MAPS}/orphan", options(propagationPolicy="Orphan")),
        *(Step("", "PATCH", f"{MAPS}/{how}", {"metadata": {"finalizers": None}}, "merge") for how in _WAYS),
    ),
)

BIND = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "a"}, "target": {"kind": "Node", "name": "{ns}-node"}}
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "{ns}-node"}}
GRACE = Scenario(
    "grace",
    (
        Step("a node", "POST", "/api/v1/nodes", NODE),
        Step("a pod that nobody runs", "POST", PODS, pod("idle"), keep={"rv": "metadata.resourceVersion"}),
        Step("dies at once", "DELETE", f"{PODS}/idle"),
        Step("a pod", "POST", PODS, pod(terminationGracePeriodSeconds=20)),
        Step("on a node", "POST", f"{PODS}/a/binding", BIND),
        Step("lingers", "DELETE", f"{PODS}/a"),
        Step("a longer grace is not given", "DELETE", f"{PODS}/a", options(gracePeriodSeconds=60)),
        Step("a shorter one is", "DELETE", f"{PODS}/a", options(gracePeriodSeconds=5)),
        Step("a label meanwhile", "PATCH", f"{PODS}/a", {"metadata": {"labels": {"x": "y"}}}, "merge"),
        Step("none ends it", "DELETE", f"{PODS}/a", options(gracePeriodSeconds=0)),
        Step("gone", "GET", f"{PODS}/a"),
        Step("a held pod", "POST", PODS, {**pod("b"), "metadata": {"name": "b", "finalizers": HOLD}}),
        Step("on a node too", "POST", f"{PODS}/b/binding", {**BIND, "metadata": {"name": "b"}}),
        Step("at once, but held", "DELETE", f"{PODS}/b?gracePeriodSeconds=0"),
        Step("released", "PATCH", f"{PODS}/b", {"metadata": {"finalizers": None}}, "merge"),
        Step("a finished pod", "POST", PODS, pod("c")),
        Step("on a node as well", "POST", f"{PODS}/c/binding", {**BIND, "metadata": {"name": "c"}}),
        Step("finished", "PATCH", f"{PODS}/c/status", {"status": {"phase": "Succeeded"}}, "merge"),
        Step("needs no grace", "DELETE", f"{PODS}/c"),
        Step("evicted", "POST", PODS, pod("d")),
        Step("an eviction", "POST", f"{PODS}/d/eviction", {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "d"}}),
        Step(
            "an eviction of nobody",
            "POST",
            f"{PODS}/d/eviction",
            {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "d"}},
        ),
        Step("the node goes", "DELETE", "/api/v1/nodes/{ns}-node"),
        watched("all that was seen of it", PODS, resourceVersion="{rv}"),
    ),
)

COLLECTIONS = Scenario(
    "deleting-collections",
    (
        Step("one", "POST", MAPS, config("one", labels={"x": "1"})),
        Step("two", "POST", MAPS, config("two", labels={"x": "1"}, finalizers=HOLD)),
        Step("three", "POST", MAPS, config("three", labels={"x": "2"})),
        Step("some", "DELETE", f"{MAPS}?labelSelector=x%3D1"),
        Step("are left", "GET", f"{MAPS}?labelSelector=x"),
        Step("released", "PATCH", f"{MAPS}/two", {"metadata": {"finalizers": None}}, "merge"),
        Step("none", "DELETE", f"{MAPS}?labelSelector=x%3D1"),
    ),
)


def _space(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}, "spec": {"finalizers": []}}


SPACE = "/api/v1/namespaces/{ns}-two"
NAMESPACES = Scenario(
    "namespaces",
    (
        Step(
            "a namespace",
            "POST",
            "/api/v1/namespaces",
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "{ns}-two", "finalizers": HOLD}},
        ),
        Step("a bad name", "POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a.b"}}),
        Step("taken", "POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "{ns}-two"}}),
        Step("labelled", "PATCH", SPACE, {"metadata": {"labels": {"x": "y"}}}, "merge"),
        Step("its own label comes back", "PATCH", SPACE, {"metadata": {"labels": {"kubernetes.io/metadata.name": None}}}, "merge"),
        Step("not deleted as a collection", "DELETE", "/api/v1/namespaces?labelSelector=none%3Dsuch"),
        Step("deleted", "DELETE", SPACE),
        Step("nothing new in it", "POST", f"{SPACE}/configmaps", config()),
        Step("not found", "GET", f"{NS}-none"),
        Step("released", "PATCH", SPACE, {"metadata": {"finalizers": None}}, "merge"),
        Step("a namespace without its own finalizer", "POST", "/api/v1/namespaces?dryRun=All", _space("{ns}-three")),
    ),
)

SCENARIOS = (DELETING, PROPAGATION, GRACE, COLLECTIONS, NAMESPACES)
