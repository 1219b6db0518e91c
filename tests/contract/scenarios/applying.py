"""Server-side apply: who owns what, who may change it, and what goes when nobody wants it any more."""

import json
from typing import Any

from tests.contract.scenario import Scenario, Step
from tests.contract.scenarios.bodies import MAPS, NS, PODS, config, pod
from tests.contract.scenarios.updating import TEMPLATES, pod_template


def applied(title: str, path: str, body: Any, manager: str = "one", force: bool = False) -> Step:
    """An apply patch in somebody's name."""
    return Step(title, "PATCH", f"{path}?fieldManager={manager}{'&force=true' if force else ''}", body, "apply")


A = f"{MAPS}/a"
MAPS_APPLIED = Scenario(
    "applying",
    (
        applied("creates", A, config(data={"a": "1", "b": "2"}, labels={"x": "y"})),
        applied("again changes nothing", A, config(data={"a": "1", "b": "2"}, labels={"x": "y"})),
        applied("drops what it names no more", A, config(data={"a": "1"})),
        applied("another shares a field", A, config(data={"a": "1"}), "two"),
        applied("another adds a field", A, config(data={"a": "1", "c": "3"}), "two"),
        applied("another's change is a conflict", A, config(data={"a": "9"}), "two"),
        applied("two conflicts in one", A, {**config(data={"a": "9", "c": "8"}), "immutable": False}, "three"),
        applied("force takes over", A, config(data={"a": "9"}), "three", force=True),
        applied("the first notices", A, config(data={"a": "1"})),
        applied("the second leaves its fields", A, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}, "two"),
        Step("an ordinary write takes a field", "PATCH", f"{A}?fieldManager=writer", {"data": {"a": "0", "w": "1"}}, "merge"),
        applied("which is a conflict then", A, config(data={"a": "5"}), "three"),
        applied("unless it is the same value", A, config(data={"a": "0"}), "three"),
        applied("a dry run", f"{A}", config(data={"a": "0", "dry": "run"}), "three&dryRun=All"),
        applied("the wrong version", A, {**config(), "apiVersion": "v2"}),
        applied("the wrong name", A, config("b")),
        applied("managers in the body", A, config(managedFields=[])),
        applied("an unknown field", A, {**config(), "foo": 1}),
        Step("no manager", "PATCH", A, config(), "apply"),
        applied("a uid of nobody", f"{MAPS}/b", config("b", uid="00000000-0000-4000-8000-000000000000")),
        applied("an old revision", A, config(resourceVersion="1"), "three", force=True),
        applied("a wrong type", A, config(data={"a": 5}), "three"),
        Step("strict", "PATCH", f"{A}?fieldManager=three&fieldValidation=Strict", {**config(), "foo": 1}, "apply"),
    ),
)

D = f"{TEMPLATES}/d"


def _only(*containers: Any) -> dict[str, Any]:
    made = pod_template(*containers)
    return {**made, "template": {"spec": made["template"]["spec"]}}


MAIN = {"name": "main", "image": "m:1", "ports": [{"containerPort": 80}], "env": [{"name": "A", "value": "1"}]}
LISTS_APPLIED = Scenario(
    "applying-lists",
    (
        applied("a template", D, pod_template(MAIN)),
        applied("a container of another's", D, _only({"name": "side", "image": "s:1"}), "two"),
        applied("a variable of another's", D, _only({"name": "main", "env": [{"name": "B", "value": "2"}]}), "two"),
        applied("a variable in conflict", D, _only({"name": "main", "image": "m:2", "env": [{"name": "A", "value": "2"}]}), "two"),
        applied("the other goes", D, {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "d"}}, "two"),
        applied("a port less, a command", D, pod_template({**MAIN, "ports": [], "command": ["a", "b"]})),
        applied("a command is one value", D, pod_template({**MAIN, "ports": [], "command": ["b"]})),
        applied("the same port twice", D, pod_template({**MAIN, "ports": [{"containerPort": 1}, {"containerPort": 1, "protocol": "TCP"}]})),
        applied("a container without a name", D, _only({"image": "x"}), "two"),
        Step("as it is", "GET", D),
    ),
)

OWNERSHIP = Scenario(
    "ownership",
    (
        Step(
            "created by a write",
            "POST",
            f"{PODS}?fieldManager=maker",
            {**pod(), "metadata": {"name": "a", "labels": {"a": "b"}, "finalizers": ["example.com/f"]}},
        ),
        applied("a label of an applier", f"{PODS}/a", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "labels": {"x": "y"}}}),
        applied("a label in conflict", f"{PODS}/a", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "labels": {"a": "c"}}}),
        applied(
            "a status",
            f"{PODS}/a/status",
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "a"},
                "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
            },
            "kubelet",
        ),
        Step("a status by a write", "PATCH", f"{PODS}/a/status?fieldManager=other", {"status": {"message": "hello"}}, "merge"),
        applied(
            "a status in conflict",
            f"{PODS}/a/status",
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "status": {"message": "no"}},
            "kubelet",
        ),
        applied(
            "a finalizer of an applier",
            f"{PODS}/a",
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "finalizers": ["example.com/g"]}},
            "fin",
        ),
        applied("leaves", f"{PODS}/a", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}, "fin"),
        Step(
            "kubectl's own migration",
            "POST",
            f"{MAPS}?fieldManager=kubectl-client-side-apply",
            config("csa", annotations={"kubectl.kubernetes.io/last-applied-configuration": json.dumps(config("csa", namespace="{ns}"))}),
        ),
        applied("takes over without a conflict", f"{MAPS}/csa", config("csa", data={"k": "w"}), "kubectl"),
        applied(
            "a service account",
            f"{NS}/serviceaccounts/sa",
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "sa"}, "automountServiceAccountToken": False},
        ),
    ),
)

SCENARIOS = (MAPS_APPLIED, LISTS_APPLIED, OWNERSHIP)
