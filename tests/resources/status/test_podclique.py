"""The status of a PodClique, field by field."""

from datetime import timedelta

import pytest

from resources.base import kinds
from tests.builders import clique, group, podcliqueset
from tests.laws.toy import Toy
from tests.resources.status.states import IDLE, ROOT, conditions, desired_status, edit, live_status, set_pods, since, up

NAME = "demo-0-a"
CLIQUE = kinds.PODCLIQUE.id("default", NAME)
THREE = podcliqueset("demo", clique("a", 3, minAvailable=2))


def scheduled(found: int) -> tuple[str, str, str]:
    """The condition PodCliqueScheduled for minAvailable 2."""
    if found < 2:
        return "False", "InsufficientScheduledPods", f"Insufficient scheduled pods. expected at least: 2, found: {found}"
    return "True", "SufficientScheduledPods", f"Sufficient scheduled pods found. expected at least: 2, found: {found}"


def unscheduled(found: int) -> tuple[str, str, str]:
    return "True", "ScheduledReplicasBelowMinAvailable", f"Scheduled replicas ({found}) below MinAvailable (2)"


def few(found: int) -> tuple[str, str, str]:
    return "True", "InsufficientReadyPods", f"Insufficient ready or starting pods. expected at least: 2, found: {found}"


def enough(found: int) -> tuple[str, str, str]:
    return "False", "SufficientReadyPods", f"Either sufficient ready or starting pods found. expected at least: 2, found: {found}"


@pytest.mark.parametrize(
    ("pods", "replicas", "ready", "has_node", "gated", "breached"),
    [
        (("ready", "ready", "ready"), 3, 3, 3, 0, enough(3)),
        (("ready", "ready", "unscheduled"), 3, 2, 2, 0, enough(2)),
        (("ready", "unscheduled", "unscheduled"), 3, 1, 1, 0, unscheduled(1)),
        (("gated", "gated", "gated"), 3, 0, 0, 3, unscheduled(0)),
        (("pulling", "pulling", "pulling"), 3, 0, 3, 0, enough(3)),
        (("pulling", "crashed", "ready"), 3, 1, 3, 0, enough(2)),
        (("ready", "crashed", "crashed"), 3, 1, 3, 0, few(1)),
        (("ready", "unready", "crashed"), 3, 1, 3, 0, few(1)),
        (("ready", "unready", "unscheduled"), 3, 1, 2, 0, few(1)),
        (("terminating", "ready", "ready"), 2, 3, 3, 0, enough(3)),
        (("terminating", "terminating", "terminating"), 0, 3, 3, 0, enough(3)),
    ],
)
def test_pods_are_counted_and_compared_with_the_minimum(
    pods: tuple[str, ...], replicas: int, ready: int, has_node: int, gated: int, breached: tuple[str, str, str]
) -> None:
    toy = up(THREE)
    set_pods(toy, NAME, *pods)

    status = desired_status(toy, kinds.PODCLIQUE, NAME)
    counted = [status[key] for key in ("replicas", "readyReplicas", "scheduledReplicas", "scheduleGatedReplicas", "updatedReplicas")]
    assert counted == [replicas, ready, has_node, gated, 3]
    assert conditions(status) == {"PodCliqueScheduled": scheduled(has_node), "MinAvailableBreached": breached, **IDLE}
    assert all("observedGeneration" not in condition for condition in status["conditions"])


def test_a_ready_clique_has_all_fields() -> None:
    toy = up(podcliqueset("demo", clique("a")))
    status = live_status(toy, kinds.PODCLIQUE, NAME)
    generation = live_status(toy, kinds.PODCLIQUESET, "demo")["currentGenerationHash"]
    hash = toy.objects[CLIQUE]["metadata"]["labels"]["grove.io/pod-template-hash"]
    progress = status.pop("updateProgress")
    its_conditions = conditions(status)
    del status["conditions"]

    assert status == {
        "observedGeneration": 1,
        "replicas": 1,
        "readyReplicas": 1,
        "scheduledReplicas": 1,
        "scheduleGatedReplicas": 0,
        "updatedReplicas": 1,
        "hpaPodSelector": f"app.kubernetes.io/managed-by=grove-operator,app.kubernetes.io/part-of=demo,grove.io/podclique={NAME}",
        "currentPodTemplateHash": hash,
        "currentPodCliqueSetGenerationHash": generation,
    }
    assert progress["updateStartedAt"] == progress["updateEndedAt"]
    assert (progress["podCliqueSetGenerationHash"], progress["podTemplateHash"]) == (generation, hash)
    assert progress.keys() == {"updateStartedAt", "updateEndedAt", "podCliqueSetGenerationHash", "podTemplateHash"}
    assert its_conditions == {
        "PodCliqueScheduled": ("True", "SufficientScheduledPods", "Sufficient scheduled pods found. expected at least: 1, found: 1"),
        "MinAvailableBreached": (
            "False",
            "SufficientReadyPods",
            "Either sufficient ready or starting pods found. expected at least: 1, found: 1",
        ),
        **IDLE,
    }


def test_there_are_no_conditions_before_all_its_pods_exist() -> None:
    toy = Toy()
    toy.put(THREE)
    (plan,) = toy.plans()
    toy.apply([operation for operation in plan.operations if operation.id.kind != "Pod"])

    status = desired_status(toy, kinds.PODCLIQUE, NAME)
    assert "observedGeneration" not in status
    assert "conditions" not in status


def test_the_generation_is_not_observed_while_a_pod_is_gated() -> None:
    toy = Toy()
    toy.put(podcliqueset("demo", clique("a"), groups=(group("g", "a", replicas=2),)))
    for _ in range(2):
        (plan,) = toy.plans()
        toy.apply(plan.operations)

    assert "observedGeneration" in desired_status(toy, kinds.PODCLIQUE, "demo-0-g-0-a")
    assert "observedGeneration" not in desired_status(toy, kinds.PODCLIQUE, "demo-0-g-1-a")


def test_the_generation_is_observed_once_the_replicas_follow_it() -> None:
    toy = up(THREE)
    edit(toy, CLIQUE, replicas=4)

    assert "observedGeneration" not in desired_status(toy, kinds.PODCLIQUE, NAME)
    assert live_status(toy, kinds.PODCLIQUE, NAME)["observedGeneration"] == 1
    toy.settle()
    assert live_status(toy, kinds.PODCLIQUE, NAME)["observedGeneration"] == 2


def test_members_of_a_group_have_no_selector_and_no_update_progress() -> None:
    toy = up(podcliqueset("demo", clique("a"), groups=(group("g", "a"),)))

    assert live_status(toy, kinds.PODCLIQUE, "demo-0-g-0-a").keys().isdisjoint({"hpaPodSelector", "updateProgress"})


def test_a_transition_time_stays_until_the_status_of_the_condition_changes() -> None:
    toy = up(THREE)
    set_pods(toy, NAME, "ready", "crashed", "crashed")
    toy.apply(toy.plans()[0].operations)
    onset = toy.stamp()
    toy.now += timedelta(seconds=30)
    set_pods(toy, NAME, "unready", "crashed", "crashed")

    status = desired_status(toy, kinds.PODCLIQUE, NAME)
    assert conditions(status)["MinAvailableBreached"] == few(0)
    assert since(status, "MinAvailableBreached") == onset
    set_pods(toy, NAME, "ready", "ready", "crashed")
    assert since(desired_status(toy, kinds.PODCLIQUE, NAME), "MinAvailableBreached") == toy.stamp()


def test_the_first_conditions_bear_the_time_of_its_creation() -> None:
    toy = Toy()
    toy.put(THREE)
    toy.apply(toy.plans()[0].operations)
    toy.now += timedelta(minutes=3)

    status = desired_status(toy, kinds.PODCLIQUE, NAME)
    assert conditions(status)["MinAvailableBreached"] == unscheduled(0)
    assert since(status, "MinAvailableBreached") == toy.objects[CLIQUE]["metadata"]["creationTimestamp"]


def test_during_its_update_the_breach_is_unknown_and_the_hashes_stay() -> None:
    toy = up(THREE)
    before = live_status(toy, kinds.PODCLIQUE, NAME)
    edit(toy, ROOT, template={"cliques": [clique("a", 3, minAvailable=2, labels={"now": "other"})]})
    toy.apply(toy.plans()[0].operations)

    status = desired_status(toy, kinds.PODCLIQUE, NAME)
    assert conditions(status)["MinAvailableBreached"] == ("Unknown", "UpdateInProgress", "Update is in progress")
    assert status.keys().isdisjoint({"currentPodTemplateHash", "currentPodCliqueSetGenerationHash"})
    toy.settle()
    after = live_status(toy, kinds.PODCLIQUE, NAME)
    assert after["currentPodTemplateHash"] == after["updateProgress"]["podTemplateHash"] != before["currentPodTemplateHash"]
    assert after["currentPodCliqueSetGenerationHash"] != before["currentPodCliqueSetGenerationHash"]


def test_with_on_delete_a_clique_is_updated_when_its_user_has_replaced_every_pod() -> None:
    manifest = podcliqueset("demo", clique("a", 2, minAvailable=1))
    manifest["spec"]["updateStrategy"] = {"type": "OnDelete"}
    toy = up(manifest)
    old = toy.pods()
    edit(toy, ROOT, template={"cliques": [clique("a", 2, minAvailable=1, labels={"now": "other"})]})
    toy.settle()
    assert live_status(toy, kinds.PODCLIQUE, NAME)["updatedReplicas"] == 0

    updated = []
    for pod in old:
        toy.delete(pod)
        toy.settle()
        status = live_status(toy, kinds.PODCLIQUESET, "demo")
        updated.append((live_status(toy, kinds.PODCLIQUE, NAME)["updatedReplicas"], status["updatedReplicas"]))
    assert updated == [(1, 0), (2, 1)]
