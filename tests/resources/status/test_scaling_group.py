"""What a scaling group says of itself, row by row."""

from typing import Any

import pytest

from resources.base import kinds
from tests.builders import clique, group, podcliqueset
from tests.laws.toy import Toy
from tests.resources.status.states import ROOT, be, conditions, edit, since, told, up, wanted

NAME = "demo-0-g"
GROUP = kinds.SCALING_GROUP.id("default", NAME)


def demo(replicas: int = 2, minimum: int = 1, **options: Any) -> dict[str, Any]:
    """A group of two cliques."""
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
def test_replicas_are_counted_and_judged(
    minimum: int, b: str, c: tuple[str, str], scheduled: int, available: int, breached: tuple[str, str, str]
) -> None:
    toy = up(demo(2, minimum))
    be(toy, "demo-0-g-1-b", b)
    be(toy, "demo-0-g-1-c", *c)

    status = wanted(toy, kinds.SCALING_GROUP, NAME)
    counted = [status[key] for key in ("replicas", "scheduledReplicas", "availableReplicas", "updatedReplicas")]
    assert counted == [2, scheduled, available, available]
    assert conditions(status) == {"MinAvailableBreached": breached}


def test_soon_after_its_bring_up_it_says_all_that_is_promised() -> None:
    toy = up(demo())
    status = told(toy, kinds.SCALING_GROUP, NAME)
    found = conditions(status)
    del status["conditions"]

    assert status == {
        "observedGeneration": 1,
        "replicas": 2,
        "scheduledReplicas": 2,
        "availableReplicas": 2,
        "updatedReplicas": 2,
        "selector": f"app.kubernetes.io/managed-by=grove-operator,app.kubernetes.io/part-of=demo,grove.io/podcliquescalinggroup={NAME}",
        "currentPodCliqueSetGenerationHash": told(toy, kinds.PODCLIQUESET, "demo")["currentGenerationHash"],
    }
    assert found == {"MinAvailableBreached": enough(2, 1)}


def test_a_replica_without_one_of_its_cliques_counts_as_nothing() -> None:
    toy = up(demo())
    del toy.objects[kinds.PODCLIQUE.id("default", "demo-0-g-1-b")]

    status = wanted(toy, kinds.SCALING_GROUP, NAME)
    assert [status[key] for key in ("replicas", "scheduledReplicas", "availableReplicas", "updatedReplicas")] == [2, 1, 1, 1]
    assert conditions(status) == {"MinAvailableBreached": enough(1, 1)}
    assert "observedGeneration" not in status
    assert "currentPodCliqueSetGenerationHash" not in status


@pytest.mark.parametrize("replicas", [3, 1])
def test_its_generation_is_observed_once_it_is_followed(replicas: int) -> None:
    toy = up(demo())
    edit(toy, GROUP, replicas=replicas)

    assert "observedGeneration" not in wanted(toy, kinds.SCALING_GROUP, NAME)
    toy.settle()
    assert told(toy, kinds.SCALING_GROUP, NAME)["observedGeneration"] == 2


def test_how_it_began_is_told_as_of_its_creation() -> None:
    toy = Toy()
    toy.put(demo())
    toy.apply(toy.plans()[0].operations)
    created = toy.objects[GROUP]["metadata"]["creationTimestamp"]
    toy.now = toy.now.replace(minute=5)

    status = wanted(toy, kinds.SCALING_GROUP, NAME)
    assert conditions(status) == {"MinAvailableBreached": few(0, 1)}
    assert since(status, "MinAvailableBreached") == created


def test_during_its_update_it_is_not_judged() -> None:
    toy = up(demo())
    edit(toy, ROOT, template={"cliques": [clique("b", labels={"now": "other"}), clique("c", 2, minAvailable=1)]})
    toy.apply(toy.plans()[0].operations)

    status = wanted(toy, kinds.SCALING_GROUP, NAME)
    assert conditions(status) == {"MinAvailableBreached": ("Unknown", "UpdateInProgress", "Update is in progress")}
    assert "currentPodCliqueSetGenerationHash" not in status
    assert status["updateProgress"]["totalPodCliquesCount"] == 4


def test_on_delete_its_update_has_ended_as_it_begins_and_counts_what_its_user_has_replaced() -> None:
    manifest = demo(1)
    manifest["spec"]["updateStrategy"] = {"type": "OnDelete"}
    toy = up(manifest)
    edit(toy, ROOT, template={"cliques": [clique("b", labels={"now": "other"}), clique("c", 2, minAvailable=1)]})
    toy.settle()

    status = told(toy, kinds.SCALING_GROUP, NAME)
    progress = status["updateProgress"]
    assert progress["updateStartedAt"] == progress["updateEndedAt"]
    assert (progress["updatedPodCliquesCount"], progress["totalPodCliquesCount"]) == (1, 2)
    assert conditions(status) == {"MinAvailableBreached": enough(1, 1)}
    assert progress["podCliqueSetGenerationHash"] != status["currentPodCliqueSetGenerationHash"]
    (old,) = [pod for pod in toy.pods() if pod.name.startswith("demo-0-g-0-b")]
    toy.delete(old)
    toy.settle()
    status = told(toy, kinds.SCALING_GROUP, NAME)
    assert status["updateProgress"]["updatedPodCliquesCount"] == 2
    assert status["updateProgress"]["podCliqueSetGenerationHash"] == status["currentPodCliqueSetGenerationHash"]
