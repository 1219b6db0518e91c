"""What a set says of itself, row by row; and that nobody writes a state that says what is said already."""

from collections import Counter
from typing import Any

import pytest

from engine.verb import Verb
from resources.base import kinds
from tests.builders import clique, group, podcliqueset
from tests.laws.toy import Toy
from tests.resources.status.states import ROOT, be, conditions, edit, told, up, wanted


def demo(replicas: int = 2) -> dict[str, Any]:
    """A clique that stands alone, and a group of two."""
    cliques = [clique("a", 2, minAvailable=1), clique("b")]
    return podcliqueset("demo", *cliques, groups=(group("g", "b", replicas=2),), replicas=replicas)


def said(toy: Toy) -> dict[str, Any]:
    """What the set should say of itself now."""
    return wanted(toy, kinds.PODCLIQUESET, "demo")


def test_soon_after_its_bring_up_it_says_all_that_is_promised() -> None:
    toy = up(demo(1))
    status = told(toy, kinds.PODCLIQUESET, "demo")
    assert status.pop("currentGenerationHash").startswith("v1-")

    assert status == {
        "observedGeneration": toy.objects[ROOT]["metadata"]["generation"],
        "replicas": 1,
        "availableReplicas": 1,
        "updatedReplicas": 1,
        "hpaPodSelector": "app.kubernetes.io/managed-by=grove-operator,app.kubernetes.io/part-of=demo",
        "podGangStatuses": [{"name": "demo-0", "phase": "Running"}, {"name": "demo-0-g-0", "phase": "Running"}],
    }


@pytest.mark.parametrize(
    ("prefix", "pods", "available"),
    [
        ("demo-0-a", ("ready", "crashed"), 2),
        ("demo-0-a", ("crashed", "crashed"), 1),
        ("demo-0-g-0-b", ("crashed",), 2),
        ("demo-0-g", ("crashed", "crashed"), 1),
        ("demo-0-a", ("going", "going"), 2),
    ],
)
def test_a_replica_is_available_while_its_cliques_and_groups_keep_their_minimum(prefix: str, pods: tuple[str, ...], available: int) -> None:
    toy = up(demo())
    be(toy, prefix, *pods)

    status = said(toy)
    assert [status[key] for key in ("replicas", "availableReplicas", "updatedReplicas")] == [2, available, available]


def test_a_replica_of_which_a_clique_or_a_group_goes_is_not_available() -> None:
    for id in (kinds.PODCLIQUE.id("default", "demo-0-a"), kinds.SCALING_GROUP.id("default", "demo-0-g")):
        toy = up(demo())
        toy.delete(id)

        assert said(toy)["availableReplicas"] == 1


def test_its_replicas_are_those_asked_for_and_its_generation_is_observed_once_all_is_there_or_gone() -> None:
    toy = up(demo())
    for replicas in (3, 1):
        edit(toy, ROOT, replicas=replicas)
        status = said(toy)
        assert status["replicas"] == replicas
        assert "observedGeneration" not in status
        toy.settle()
        assert told(toy, kinds.PODCLIQUESET, "demo")["observedGeneration"] == toy.objects[ROOT]["metadata"]["generation"]


def test_an_edit_of_the_template_starts_a_progress_that_ends_with_the_last_replica() -> None:
    toy = up(demo())
    before = told(toy, kinds.PODCLIQUESET, "demo")
    edit(toy, ROOT, template={"cliques": [clique("a", 2, minAvailable=1, labels={"now": "other"}), clique("b")]})

    status = said(toy)
    started = toy.stamp()
    assert status["currentGenerationHash"] != before["currentGenerationHash"]
    assert status["updatedReplicas"] == 0
    assert {key: value for key, value in status["updateProgress"].items() if value is not None} == {
        "updateStartedAt": started,
        "updatedPodCliquesCount": 0,
        "totalPodCliquesCount": 2,
        "updatedPodCliqueScalingGroupsCount": 2,
        "totalPodCliqueScalingGroupsCount": 2,
        "currentlyUpdating": [{"replicaIndex": 0, "updateStartedAt": started}],
    }
    toy.settle()
    status = told(toy, kinds.PODCLIQUESET, "demo")
    progress = status["updateProgress"]
    assert status["updatedReplicas"] == 2
    assert (progress["updateStartedAt"], progress["updatedPodCliquesCount"]) == (started, 2)
    assert progress["updateEndedAt"] > started
    assert "currentlyUpdating" not in progress


def test_on_delete_the_progress_has_ended_as_it_begins() -> None:
    manifest = demo(1)
    manifest["spec"]["updateStrategy"] = {"type": "OnDelete"}
    toy = up(manifest)
    edit(toy, ROOT, template={"cliques": [clique("a", 2, minAvailable=1, labels={"now": "other"}), clique("b")]})

    progress = said(toy)["updateProgress"]
    assert progress["updateStartedAt"] == progress["updateEndedAt"] == toy.stamp()


def test_conditions_of_others_stay() -> None:
    toy = up(demo(1))
    theirs = {"type": "Blessed", "status": "True", "reason": "Luck", "message": "", "lastTransitionTime": toy.stamp()}
    for kind, name in ((kinds.PODCLIQUE, "demo-0-a"), (kinds.SCALING_GROUP, "demo-0-g"), (kinds.PODCLIQUESET, "demo")):
        there = told(toy, kind, name).get("conditions", [])
        toy.write(kind.id("default", name), {"status": {"conditions": [theirs, *there]}})

        assert "Blessed" in conditions(wanted(toy, kind, name))
    assert [plan.operations for plan in toy.plans()] == [()]


def test_a_state_is_written_only_when_it_says_something_else() -> None:
    toy = up(demo())
    be(toy, "demo-1-a", "ready", "crashed")
    writes: Counter[str] = Counter()
    for _ in range(4):
        for plan in toy.plans():
            assert {operation.verb for operation in plan.operations} <= {Verb.STATUS}
            writes.update(operation.id.name for operation in plan.operations)
            toy.apply(plan.operations)

    assert writes == {"demo-1-a": 1}
