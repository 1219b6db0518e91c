"""The status of a PodCliqueScalingGroup, field by field."""

from typing import Any

import pytest

from resources.base import kinds
from tests.builders import clique, group, podcliqueset
from tests.laws.toy import Toy
from tests.resources.status.states import IDLE, ROOT, conditions, desired_status, edit, live_status, set_pods, since, up

NAME = "demo-0-g"
GROUP = kinds.SCALING_GROUP.id("default", NAME)


def demo(replicas: int = 2, minimum: int = 1, **options: Any) -> dict[str, Any]:
    """A scaling group of two cliques."""
    return podcliqueset(
        "demo",
        clique("b"),
        clique("c", 2, minAvailable=1),
        groups=(group("g", "b", "c", replicas=replicas, min_available=minimum),),
        **options,
    )


def few(found: int, minimum: int) -> tuple[str, str, str]:
    reason = "InsufficientAvailablePodCliqueScalingGroupReplicas"
    return "True", reason, f"PCSG replicas not in breach ({found}) below MinAvailable ({minimum})"


def enough(found: int, minimum: int) -> tuple[str, str, str]:
    reason = "SufficientAvailablePodCliqueScalingGroupReplicas"
    return "False", reason, f"PCSG replicas not in breach ({found}) meets MinAvailable ({minimum})"


@pytest.mark.parametrize(
    ("minimum", "b", "c", "scheduled", "available", "breached"),
    [
        (1, "ready", ("ready", "ready"), 2, 2, enough(2, 1)),
        (2, "ready", ("ready", "ready"), 2, 2, enough(2, 2)),
        (1, "ready", ("ready", "unscheduled"), 2, 2, enough(2, 1)),
        (1, "pulling", ("ready", "ready"), 2, 1, enough(2, 1)),
        (1, "crashed", ("ready", "ready"), 2, 1, enough(1, 1)),
        (2, "crashed", ("ready", "ready"), 2, 1, few(1, 2)),
        (2, "unscheduled", ("ready", "ready"), 1, 1, few(1, 2)),
        (2, "ready", ("unscheduled", "unscheduled"), 1, 1, few(1, 2)),
    ],
)
def test_replicas_are_counted_and_compared_with_the_minimum(
    minimum: int, b: str, c: tuple[str, str], scheduled: int, available: int, breached: tuple[str, str, str]
) -> None:
    toy = up(demo(2, minimum))
    set_pods(toy, "demo-0-g-1-b", b)
    set_pods(toy, "demo-0-g-1-c", *c)

    status = desired_status(toy, kinds.SCALING_GROUP, NAME)
    counted = [status[key] for key in ("replicas", "scheduledReplicas", "availableReplicas", "updatedReplicas")]
    assert counted == [2, scheduled, available, available]
    assert conditions(status) == {"MinAvailableBreached": breached, **IDLE}


def test_a_ready_group_has_all_fields() -> None:
    toy = up(demo())
    status = live_status(toy, kinds.SCALING_GROUP, NAME)
    its_conditions = conditions(status)
    del status["conditions"]

    assert status == {
        "observedGeneration": 1,
        "replicas": 2,
        "scheduledReplicas": 2,
        "availableReplicas": 2,
        "updatedReplicas": 2,
        "selector": f"app.kubernetes.io/managed-by=grove-operator,app.kubernetes.io/part-of=demo,grove.io/podcliquescalinggroup={NAME}",
        "currentPodCliqueSetGenerationHash": live_status(toy, kinds.PODCLIQUESET, "demo")["currentGenerationHash"],
    }
    assert its_conditions == {"MinAvailableBreached": enough(2, 1), **IDLE}


def test_a_replica_without_one_of_its_cliques_is_not_counted() -> None:
    toy = up(demo())
    del toy.objects[kinds.PODCLIQUE.id("default", "demo-0-g-1-b")]

    status = desired_status(toy, kinds.SCALING_GROUP, NAME)
    assert [status[key] for key in ("replicas", "scheduledReplicas", "availableReplicas", "updatedReplicas")] == [2, 1, 1, 1]
    assert conditions(status) == {"MinAvailableBreached": enough(1, 1), **IDLE}
    assert "observedGeneration" not in status
    assert "currentPodCliqueSetGenerationHash" not in status


@pytest.mark.parametrize("replicas", [3, 1])
def test_the_generation_is_observed_once_the_replicas_follow_it(replicas: int) -> None:
    toy = up(demo())
    edit(toy, GROUP, replicas=replicas)

    assert "observedGeneration" not in desired_status(toy, kinds.SCALING_GROUP, NAME)
    toy.settle()
    assert live_status(toy, kinds.SCALING_GROUP, NAME)["observedGeneration"] == 2


def test_the_first_conditions_bear_the_time_of_its_creation() -> None:
    toy = Toy()
    toy.put(demo())
    toy.apply(toy.plans()[0].operations)
    created = toy.objects[GROUP]["metadata"]["creationTimestamp"]
    toy.now = toy.now.replace(minute=5)

    status = desired_status(toy, kinds.SCALING_GROUP, NAME)
    assert conditions(status) == {"MinAvailableBreached": few(0, 1), **IDLE}
    assert since(status, "MinAvailableBreached") == created


def test_during_its_update_the_breach_is_unknown() -> None:
    toy = up(demo())
    edit(toy, ROOT, template={"cliques": [clique("b", labels={"now": "other"}), clique("c", 2, minAvailable=1)]})
    toy.apply(toy.plans()[0].operations)

    status = desired_status(toy, kinds.SCALING_GROUP, NAME)
    assert conditions(status) == {
        "MinAvailableBreached": ("Unknown", "UpdateInProgress", "Update is in progress"),
        "UpdateInProgress": ("True", "Progressing", "An update is in progress"),
    }
    assert "currentPodCliqueSetGenerationHash" not in status
    assert status["updateProgress"]["totalPodCliquesCount"] == 4


def test_with_on_delete_an_update_ends_when_it_begins_and_counts_what_users_have_replaced() -> None:
    manifest = demo(1)
    manifest["spec"]["updateStrategy"] = {"type": "OnDelete"}
    toy = up(manifest)
    edit(toy, ROOT, template={"cliques": [clique("b", labels={"now": "other"}), clique("c", 2, minAvailable=1)]})
    toy.settle()

    status = live_status(toy, kinds.SCALING_GROUP, NAME)
    progress = status["updateProgress"]
    assert progress["updateStartedAt"] == progress["updateEndedAt"]
    assert (progress["updatedPodCliquesCount"], progress["totalPodCliquesCount"]) == (1, 2)
    assert conditions(status) == {"MinAvailableBreached": enough(1, 1), **IDLE}
    assert progress["podCliqueSetGenerationHash"] != status["currentPodCliqueSetGenerationHash"]
    (old,) = [pod for pod in toy.pods() if pod.name.startswith("demo-0-g-0-b")]
    toy.delete(old)
    toy.settle()
    status = live_status(toy, kinds.SCALING_GROUP, NAME)
    assert status["updateProgress"]["updatedPodCliquesCount"] == 2
    assert status["updateProgress"]["podCliqueSetGenerationHash"] == status["currentPodCliqueSetGenerationHash"]
