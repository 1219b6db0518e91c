"""Updating: revisions, generations, what may not change, and what only a subresource may."""

from typing import Any

from tests.contract.scenario import Scenario, Step
from tests.contract.scenarios.bodies import MAPS, NS, PODS, config, pod

CONDITION = {"type": "Ready", "status": "True", "lastProbeTime": None, "lastTransitionTime": "2026-01-01T00:00:00Z"}
TEMPLATES = f"{NS}/podtemplates"
_TIME = "2026-01-01T00:00:00Z"
DEPLOYMENTS = "/apis/apps/v1/namespaces/{ns}/deployments"


def deployment(name: str = "d", **spec: Any) -> dict[str, Any]:
    """A Deployment of pods with one container."""
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "main", "image": "i:1"}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": template, **spec},
    }


def pod_template(*containers: Any, **spec: Any) -> dict[str, Any]:
    """A template of pods: it holds all that pods hold, and nobody else ever touches it."""
    return {
        "apiVersion": "v1",
        "kind": "PodTemplate",
        "metadata": {"name": "d"},
        "template": {"metadata": {"labels": {"app": "d"}}, "spec": {"containers": list(containers), **spec}},
    }


def _without_selector() -> dict[str, Any]:
    made = deployment("e")
    return {**made, "spec": {"template": made["spec"]["template"]}}


REVISIONS = Scenario(
    "revisions",
    (
        Step("a config map", "POST", MAPS, config(), keep={"rv": "metadata.resourceVersion", "uid": "metadata.uid"}),
        Step("nothing changes", "PUT", f"{MAPS}/a", config()),
        Step("something changes", "PUT", f"{MAPS}/a", config(data={"k": "w"})),
        Step("at an old revision", "PUT", f"{MAPS}/a", config(data={"k": "x"}, resourceVersion="{rv}")),
        Step("with another uid", "PUT", f"{MAPS}/a", config(uid="00000000-0000-4000-8000-000000000000")),
        Step("with its own uid", "PUT", f"{MAPS}/a", config(data={"k": "y"}, uid="{uid}")),
        Step("under another name", "PUT", f"{MAPS}/a", config("b")),
        Step("one that is not there", "PUT", f"{MAPS}/none", config("none")),
        Step("by another manager", "PUT", f"{MAPS}/a?fieldManager=other", config(data={"k": "y", "l": "z"}, labels={"x": "y"})),
        Step("a field is dropped", "PUT", f"{MAPS}/a?fieldManager=third", config(data={"l": "z"}, labels={"x": "y"})),
        Step("managers are reset", "PUT", f"{MAPS}/a", config(data={"l": "z"}, managedFields=[{}])),
        Step("a dry run", "PUT", f"{MAPS}/a?dryRun=All", config(data={"dry": "run"})),
        Step("leaves it as it was", "GET", f"{MAPS}/a"),
        Step("a manager's name with blanks", "PUT", f"{MAPS}/a?fieldManager=" + "x" * 129, config()),
        Step("immutable", "PUT", f"{MAPS}/a", {**config(data={"l": "z"}), "immutable": True}),
        Step("stays immutable", "PUT", f"{MAPS}/a", {**config(data={"l": "new"}), "immutable": True}),
        Step("for ever", "PUT", f"{MAPS}/a", config(data={"l": "z"})),
    ),
)

CRON_JOBS = "/apis/batch/v1/namespaces/{ns}/cronjobs"
CRON_JOB = {
    "apiVersion": "batch/v1",
    "kind": "CronJob",
    "metadata": {"name": "c"},
    "spec": {
        "schedule": "0 0 1 1 *",
        "suspend": True,
        "jobTemplate": {"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "i:1"}]}}}},
    },
}
# A kind that no controller of the real server touches while it sleeps.
GENERATIONS = Scenario(
    "generations",
    (
        Step("a cron job", "POST", CRON_JOBS, CRON_JOB),
        Step("labels are no new generation", "PATCH", f"{CRON_JOBS}/c", {"metadata": {"labels": {"a": "b"}}}, "merge"),
        Step("a spec is", "PATCH", f"{CRON_JOBS}/c", {"spec": {"schedule": "0 0 2 1 *"}}, "merge"),
        Step("a status through the object is not heeded", "PATCH", f"{CRON_JOBS}/c", {"status": {"lastScheduleTime": _TIME}}, "merge"),
        Step("a status through the subresource is", "PATCH", f"{CRON_JOBS}/c/status", {"status": {"lastScheduleTime": _TIME}}, "merge"),
        Step("but a spec is not", "PATCH", f"{CRON_JOBS}/c/status", {"spec": {"schedule": "0 0 3 1 *"}}, "merge"),
        Step("nor are labels", "PATCH", f"{CRON_JOBS}/c/status", {"metadata": {"labels": {"c": "d"}}}, "merge"),
        Step("no subresource of that name", "GET", f"{CRON_JOBS}/c/nonsense"),
        Step("a deployment", "POST", DEPLOYMENTS, deployment("at-rest", replicas=0, paused=True)),
        Step("a deployment without a selector", "POST", DEPLOYMENTS, _without_selector()),
        Step("fewer than none", "POST", DEPLOYMENTS, deployment("e", replicas=-1)),
    ),
)

PODS_CHANGING = Scenario(
    "pods-changing",
    (
        Step("a gated pod", "POST", PODS, pod(schedulingGates=[{"name": "example.com/a"}, {"name": "example.com/b"}])),
        Step("a gate more", "PATCH", f"{PODS}/a", [{"op": "add", "path": "/spec/schedulingGates/-", "value": {"name": "c"}}], "json-patch"),
        Step("a selector while gated", "PATCH", f"{PODS}/a", {"spec": {"nodeSelector": {"x": "y"}}}, "merge"),
        Step("a gate less", "PATCH", f"{PODS}/a", {"spec": {"schedulingGates": [{"name": "example.com/b"}]}}, "merge"),
        Step(
            "bound while gated",
            "POST",
            f"{PODS}/a/binding",
            {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n"}},
        ),
        Step("no gate", "PATCH", f"{PODS}/a", {"spec": {"schedulingGates": None}}, "merge"),
        Step(
            "another image",
            "PATCH",
            f"{PODS}/a",
            {"spec": {"containers": [{"name": "main", "image": "registry.example.com/a:2"}]}},
            "strategic",
        ),
        Step("labels", "PATCH", f"{PODS}/a", {"metadata": {"labels": {"x": "y"}}}, "merge"),
        Step("another hostname", "PATCH", f"{PODS}/a", {"spec": {"hostname": "other"}}, "merge"),
        Step(
            "a toleration more", "PATCH", f"{PODS}/a", [{"op": "add", "path": "/spec/tolerations/-", "value": {"key": "k"}}], "json-patch"
        ),
        Step("a toleration less", "PATCH", f"{PODS}/a", {"spec": {"tolerations": None}}, "merge"),
        Step("a selector when no longer gated", "PATCH", f"{PODS}/a", {"spec": {"nodeSelector": {"x": "z"}}}, "merge"),
        Step("a deadline", "PATCH", f"{PODS}/a", {"spec": {"activeDeadlineSeconds": 60}}, "merge"),
        Step("its status", "PATCH", f"{PODS}/a/status", {"status": {"phase": "Running", "conditions": [CONDITION]}}, "strategic"),
        Step(
            "bound",
            "POST",
            f"{PODS}/a/binding",
            {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n"}},
        ),
        Step("as it is then", "GET", f"{PODS}/a"),
        Step(
            "bound again",
            "POST",
            f"{PODS}/a/binding",
            {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "a"}, "target": {"kind": "Node", "name": "m"}},
        ),
        Step(
            "bound, but not there",
            "POST",
            f"{PODS}/none/binding",
            {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "none"}, "target": {"kind": "Node", "name": "m"}},
        ),
    ),
)

OWNERS_AND_LABELS = Scenario(
    "metadata",
    (
        Step("an object", "POST", MAPS, config(labels={"a": "b"}, annotations={"c": "d"}), keep={"uid": "metadata.uid"}),
        Step("a label more", "PATCH", f"{MAPS}/a", {"metadata": {"labels": {"e": "f"}}}, "merge"),
        Step("a label less", "PATCH", f"{MAPS}/a", {"metadata": {"labels": {"a": None}}}, "merge"),
        Step("the last label", "PATCH", f"{MAPS}/a", {"metadata": {"labels": None}}, "merge"),
        Step("the name stays", "PATCH", f"{MAPS}/a", {"metadata": {"name": "b"}}, "merge"),
        Step("the uid stays", "PATCH", f"{MAPS}/a", {"metadata": {"uid": "x"}}, "merge"),
        Step("the creation stays", "PATCH", f"{MAPS}/a", {"metadata": {"creationTimestamp": "2020-01-01T00:00:00Z"}}, "merge"),
        Step(
            "an owner",
            "PATCH",
            f"{MAPS}/a",
            {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "{uid}", "controller": True}]}},
            "merge",
        ),
        Step("a finalizer", "PATCH", f"{MAPS}/a", {"metadata": {"finalizers": ["example.com/a"]}}, "merge"),
        Step("a bad label", "PATCH", f"{MAPS}/a", {"metadata": {"labels": {"a": "not good"}}}, "merge"),
        Step("a namespace that is not its own", "PATCH", f"{MAPS}/a", {"metadata": {"namespace": "other"}}, "merge"),
        Step("gone", "PATCH", f"{MAPS}/a", {"metadata": {"finalizers": None}}, "merge"),
        Step("not found", "PATCH", f"{MAPS}/none", {"metadata": {}}, "merge"),
        Step("its namespace", "GET", NS),
    ),
)

SCENARIOS = (REVISIONS, GENERATIONS, PODS_CHANGING, OWNERS_AND_LABELS)
