"""The health of sets in every situation, as kstatus, Argo CD, Flux and `kubectl wait` read it from the status that was written."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from engine.health import PATIENCE
from resources.base import kinds
from tests.builders import clique, group, podcliqueset
from tests.gitops_tools import argo_cd, flux
from tests.kstatus import is_waited_for, kstatus
from tests.laws.toy import Toy
from tests.resources.status.states import ROOT, edit, set_pods, up

Situation = Callable[[], Toy]


def demo(replicas: int = 2, **rest: Any) -> dict[str, Any]:
    return podcliqueset(
        "demo", clique("a", 2, minAvailable=1), clique("b"), groups=(group("g", "b", replicas=2),), replicas=replicas, **rest
    )


def steps(toy: Toy, number: int = 1) -> Toy:
    """That many passes, in which the cluster does nothing."""
    for _ in range(number):
        for plan in toy.plans():
            toy.apply(plan.operations)
    return toy


def created() -> Toy:
    toy = Toy()
    toy.put(demo())
    return steps(toy, 2)


def with_pods(*states: str) -> Situation:
    def make() -> Toy:
        toy = created()
        steps(toy, 3)
        set_pods(toy, "demo-0-a", *states)
        return steps(toy, 2)

    return make


def waiting(reason: str) -> Situation:
    def make() -> Toy:
        toy = created()
        steps(toy, 3)
        pod = toy.pods()[0]
        container = {"name": "main", "state": {"waiting": {"reason": reason}}}
        scheduled = [{"type": "PodScheduled", "status": "True"}]
        toy.write(pod, {"status": {"phase": "Pending", "conditions": scheduled, "containerStatuses": [container]}})
        return steps(toy, 2)

    return make


def settled() -> Toy:
    return steps(up(demo()))


def edited(**spec: Any) -> Situation:
    def make() -> Toy:
        toy = settled()
        edit(toy, ROOT, **spec)
        return steps(toy, 2)

    return make


def scaled_to_zero() -> Toy:
    toy = edited(replicas=0)()
    toy.settle()
    return toy


def updating() -> Toy:
    toy = settled()
    template = {**toy.objects[ROOT]["spec"]["template"]}
    first = {**template["cliques"][0]}
    first["spec"] = {**first["spec"], "podSpec": {"containers": [{"name": "main", "image": "other:2"}]}}
    edit(toy, ROOT, template={**template, "cliques": [first, *template["cliques"][1:]]})
    return steps(toy, 2)


def outdated_on_delete() -> Toy:
    toy = settled()
    edit(toy, ROOT, updateStrategy={"type": "OnDelete"})
    steps(toy, 2)
    template = {**toy.objects[ROOT]["spec"]["template"]}
    first = {**template["cliques"][0]}
    first["spec"] = {**first["spec"], "podSpec": {"containers": [{"name": "main", "image": "other:2"}]}}
    edit(toy, ROOT, template={**template, "cliques": [first, *template["cliques"][1:]]})
    toy.settle()
    return toy


def updated() -> Toy:
    toy = updating()
    toy.settle()
    return toy


def lost(*states: str) -> Situation:
    def make() -> Toy:
        toy = settled()
        set_pods(toy, "demo-0-a", *states)
        return steps(toy, 2)

    return make


def completed() -> Toy:
    toy = Toy()
    toy.put(podcliqueset("demo", clique("a", 2, pod_spec={"restartPolicy": "Never", "containers": [{"name": "main", "image": "x"}]})))
    toy.settle()
    for pod in toy.pods():
        toy.write(pod, {"status": {"phase": "Succeeded", "conditions": [{"type": "PodScheduled", "status": "True"}]}})
    toy.settle()
    return toy


def name_taken() -> Toy:
    toy = Toy()
    toy.put(demo())
    metadata = {
        "name": "demo-0",
        "namespace": "default",
        "labels": {"app.kubernetes.io/managed-by": "grove-operator", "app.kubernetes.io/part-of": "demo"},
    }
    toy.put({"apiVersion": "v1", "kind": "Service", "metadata": metadata})
    return steps(toy, 3)


def invalid() -> Toy:
    toy = settled()
    toy.write(kinds.PODCLIQUE.id("default", "demo-0-a"), {"spec": {"replicas": "many"}, "metadata": {"generation": 2}})
    return steps(toy, 2)


def not_served() -> Toy:
    toy = Toy()
    toy.put(demo())
    toy.unserved = frozenset({"PodGang"})
    return steps(toy, 3)


def not_served_for_a_minute() -> Toy:
    toy = not_served()
    toy.now += PATIENCE
    return steps(toy)


SITUATIONS: dict[str, tuple[Situation, str, str, str]] = {
    "created": (created, "ComingUp", "InProgress", "Progressing"),
    "some pods ready": (with_pods("ready", "pulling"), "ComingUp", "InProgress", "Progressing"),
    "no room": (with_pods("unscheduled", "unscheduled"), "Unschedulable", "InProgress", "Progressing"),
    "no image": (waiting("ImagePullBackOff"), "ImagePull", "InProgress", "Progressing"),
    "crash loop": (waiting("CrashLoopBackOff"), "Crashing", "InProgress", "Progressing"),
    "settled": (settled, "AllReplicasAvailable", "Current", "Healthy"),
    "scaled out": (edited(replicas=3), "ComingUp", "InProgress", "Progressing"),
    "scaled in": (edited(replicas=1), "ScalingIn", "InProgress", "Progressing"),
    "scaling to zero": (edited(replicas=0), "ScalingIn", "InProgress", "Progressing"),
    "scaled to zero": (scaled_to_zero, "ScaledToZero", "Current", "Healthy"),
    "update": (updating, "Updating", "InProgress", "Progressing"),
    "updated": (updated, "AllReplicasAvailable", "Current", "Healthy"),
    "outdated, OnDelete": (outdated_on_delete, "OutdatedOnDelete", "Current", "Healthy"),
    "one pod too many lost": (lost("crashed", "crashed"), "MinAvailableBreached", "InProgress", "Degraded"),
    "a pod lost above the minimum": (lost("ready", "crashed"), "AllReplicasAvailable", "Current", "Healthy"),
    "completed": (completed, "Completed", "Current", "Healthy"),
    "name taken": (name_taken, "NameConflict", "Failed", "Degraded"),
    "invalid": (invalid, "ValidationFailed", "Failed", "Degraded"),
    "kind not served": (not_served, "NotServed", "InProgress", "Progressing"),
    "kind not served for a minute": (not_served_for_a_minute, "NotServed", "Failed", "Degraded"),
}
FLUX = {"Current": "current", "Failed": "failed", "InProgress": "inProgress"}


@pytest.mark.parametrize(("situation", "reason", "status", "health"), SITUATIONS.values(), ids=SITUATIONS)
def test_tools_see_the_health_of_a_set(situation: Situation, reason: str, status: str, health: str) -> None:
    body = situation().objects[ROOT]

    found = {each["type"]: each for each in body["status"]["conditions"]}
    assert (found["Ready"]["reason"], kstatus(body), argo_cd(body), flux(body)) == (reason, status, health, FLUX[status])
    assert is_waited_for(body, "Ready") == (status == "Current") and is_waited_for(body, "stalled") == (status == "Failed")
    assert not {"Reconciling", "Stalled"} <= found.keys() and found["Ready"]["message"]
    assert body["status"]["observedGeneration"] == body["metadata"]["generation"]


@pytest.mark.parametrize("situation", [row[0] for row in SITUATIONS.values()], ids=SITUATIONS)
def test_the_status_is_written_once(situation: Situation) -> None:
    toy = situation()
    steps(toy, 3)
    toy.now += timedelta(seconds=20)

    assert [operation for plan in toy.plans() for operation in plan.operations if operation.id == ROOT] == []


def test_an_edited_set_is_in_progress_before_any_pass() -> None:
    toy = settled()
    edit(toy, ROOT, replicas=3)
    body = toy.objects[ROOT]

    assert (kstatus(body), argo_cd(body), is_waited_for(body, "Ready")) == ("InProgress", "Progressing", False)


def test_a_missing_kind_that_comes_is_no_failure() -> None:
    toy = not_served()
    (plan,) = toy.plans()
    assert plan.restate_at == toy.now + PATIENCE and plan.wake_at is None

    toy.unserved = frozenset()
    toy.settle()
    assert kstatus(toy.objects[ROOT]) == "Current"


def test_a_name_that_is_given_back_ends_the_stall() -> None:
    toy = name_taken()
    del toy.objects[kinds.SERVICE.id("default", "demo-0")]
    steps(toy)
    assert kstatus(toy.objects[ROOT]) == "InProgress"

    toy.settle()
    assert kstatus(toy.objects[ROOT]) == "Current"


def test_messages_name_the_first_replica_and_pod() -> None:
    toy = with_pods("unscheduled", "unscheduled")()
    conditions = {each["type"]: each["message"] for each in toy.objects[ROOT]["status"]["conditions"]}

    assert conditions["Ready"].startswith("0 of 2 replicas available; replica 0 waits for PodClique demo-0-a: pod demo-0-a-")
    assert conditions["Ready"] == conditions["Reconciling"]
