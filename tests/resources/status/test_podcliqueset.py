"""The status of a PodCliqueSet, field by field; and that no unchanged status is written."""

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest

from engine.verb import Verb
from resources.base import kinds
from tests.builders import clique, group, podcliqueset
from tests.laws.toy import Toy
from tests.resources.status.states import IDLE, ROOT, conditions, desired_status, edit, live_status, set_pods, up


def demo(replicas: int = 2) -> dict[str, Any]:
    """A standalone clique, and a scaling group with two replicas."""
    cliques = [clique("a", 2, minAvailable=1), clique("b")]
    return podcliqueset("demo", *cliques, groups=(group("g", "b", replicas=2),), replicas=replicas)


def set_status(toy: Toy) -> dict[str, Any]:
    """The status that the set should have now."""
    return desired_status(toy, kinds.PODCLIQUESET, "demo")


def test_a_ready_set_has_all_fields() -> None:
    toy = up(demo(1))
    status = live_status(toy, kinds.PODCLIQUESET, "demo")
    found = conditions({"conditions": status.pop("conditions")})
    assert found.keys() == {"Ready", "Applied", "GangSchedulingUnavailable", "UpdateInProgress"}
    assert found["Ready"] == ("True", "AllReplicasAvailable", "1 of 1 replica available and updated")
    assert found.items() >= IDLE.items()
    assert status.pop("currentGenerationHash").startswith("v3-")

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
        ("demo-0-a", ("terminating", "terminating"), 2),
    ],
)
def test_a_replica_is_available_while_its_cliques_and_groups_keep_their_minimum(prefix: str, pods: tuple[str, ...], available: int) -> None:
    toy = up(demo())
    set_pods(toy, prefix, *pods)

    status = set_status(toy)
    assert [status[key] for key in ("replicas", "availableReplicas", "updatedReplicas")] == [2, available, available]


def test_a_replica_with_a_terminating_clique_or_group_is_not_available() -> None:
    for id in (kinds.PODCLIQUE.id("default", "demo-0-a"), kinds.SCALING_GROUP.id("default", "demo-0-g")):
        toy = up(demo())
        toy.delete(id)

        assert set_status(toy)["availableReplicas"] == 1


def test_a_generation_is_observed_at_once_and_applied_when_all_replicas_exist_or_are_gone() -> None:
    toy = up(demo())
    for replicas in (3, 1):
        edit(toy, ROOT, replicas=replicas)
        status = set_status(toy)
        assert status["replicas"] == replicas
        generation = toy.objects[ROOT]["metadata"]["generation"]
        assert (status["observedGeneration"], applied(status)) == (generation, generation - 1)
        toy.settle()
        status = live_status(toy, kinds.PODCLIQUESET, "demo")
        assert (status["observedGeneration"], applied(status)) == (generation, generation)


def applied(status: dict[str, Any]) -> int | None:
    """The generation that the condition `Applied` names."""
    return next((entry["observedGeneration"] for entry in status["conditions"] if entry["type"] == "Applied"), None)


def test_a_set_of_an_earlier_version_keeps_the_generation_that_was_carried_out() -> None:
    toy = up(demo())
    status = {**live_status(toy, kinds.PODCLIQUESET, "demo"), "conditions": []}
    toy.objects[ROOT] = {**toy.objects[ROOT], "status": status}
    assert applied(set_status(toy)) == status["observedGeneration"]

    edit(toy, ROOT, replicas=3)
    assert applied(set_status(toy)) == status["observedGeneration"]
    toy.objects[ROOT]["status"].pop("observedGeneration")
    assert applied(set_status(toy)) is None


def test_a_change_of_the_template_begins_an_update_that_ends_with_the_last_replica() -> None:
    toy = up(demo())
    before = live_status(toy, kinds.PODCLIQUESET, "demo")
    edit(toy, ROOT, template={"cliques": [clique("a", 2, minAvailable=1, labels={"now": "other"}), clique("b")]})

    status = set_status(toy)
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
    status = live_status(toy, kinds.PODCLIQUESET, "demo")
    progress = status["updateProgress"]
    assert status["updatedReplicas"] == 2
    assert (progress["updateStartedAt"], progress["updatedPodCliquesCount"]) == (started, 2)
    assert progress["updateEndedAt"] > started
    assert "currentlyUpdating" not in progress


def test_the_replica_whose_new_pods_are_not_ready_is_the_one_being_updated() -> None:
    toy = up(podcliqueset("demo", clique("a"), replicas=2))
    edit(toy, ROOT, template={"cliques": [clique("a", labels={"now": "other"})]})
    updating = []
    for ready in (0, 0, 1, 1, 1, 2, 2):
        for plan in toy.plans():
            toy.apply(plan.operations)
        for pod in toy.pods():
            if toy.objects[pod]["metadata"].get("deletionTimestamp"):
                del toy.objects[pod]
        for index in range(ready):
            set_pods(toy, f"demo-{index}-a", "ready")
        updating.append([entry["replicaIndex"] for entry in set_status(toy)["updateProgress"]["currentlyUpdating"] or ()])

    assert updating == [[0], [0], [1], [1], [1], [], []]


def test_with_on_delete_an_update_ends_when_it_begins() -> None:
    manifest = demo(1)
    manifest["spec"]["updateStrategy"] = {"type": "OnDelete"}
    toy = up(manifest)
    edit(toy, ROOT, template={"cliques": [clique("a", 2, minAvailable=1, labels={"now": "other"}), clique("b")]})

    progress = set_status(toy)["updateProgress"]
    assert progress["updateStartedAt"] == progress["updateEndedAt"] == toy.stamp()


def test_a_change_in_the_middle_of_an_update_starts_all_its_times_anew() -> None:
    toy = up(podcliqueset("demo", clique("a"), replicas=2))
    for version in ("second", "third"):
        edit(toy, ROOT, template={"cliques": [clique("a", labels={"now": version})]})
        progress = set_status(toy)["updateProgress"]
        assert progress["updateStartedAt"] == toy.stamp()
        assert progress["currentlyUpdating"] == [{"replicaIndex": 0, "updateStartedAt": toy.stamp()}]
        for plan in toy.plans():
            toy.apply(plan.operations)
        toy.now += timedelta(minutes=1)


def test_what_on_delete_left_outdated_is_an_update_once_the_strategy_changes() -> None:
    manifest = podcliqueset("demo", clique("a"), replicas=2)
    manifest["spec"]["updateStrategy"] = {"type": "OnDelete"}
    toy = up(manifest)
    edit(toy, ROOT, template={"cliques": [clique("a", labels={"now": "other"})]})
    toy.settle()
    assert live_status(toy, kinds.PODCLIQUESET, "demo")["updateProgress"]["updateEndedAt"]

    toy.now += timedelta(minutes=1)
    edit(toy, ROOT, updateStrategy={"type": "RollingRecreate"})
    progress, started = set_status(toy)["updateProgress"], toy.stamp()
    assert (progress["updateStartedAt"], progress["updateEndedAt"]) == (started, None)
    assert progress["currentlyUpdating"] == [{"replicaIndex": 0, "updateStartedAt": started}]

    toy.settle()
    progress = live_status(toy, kinds.PODCLIQUESET, "demo")["updateProgress"]
    assert (progress["updateStartedAt"], progress["updatedPodCliquesCount"]) == (started, 2)
    assert progress["updateEndedAt"] > started


def test_foreign_conditions_stay() -> None:
    toy = up(demo(1))
    theirs = {"type": "Blessed", "status": "True", "reason": "Luck", "message": "", "lastTransitionTime": toy.stamp()}
    for kind, name in ((kinds.PODCLIQUE, "demo-0-a"), (kinds.SCALING_GROUP, "demo-0-g"), (kinds.PODCLIQUESET, "demo")):
        ours = live_status(toy, kind, name).get("conditions", [])
        toy.write(kind.id("default", name), {"status": {"conditions": [theirs, *ours]}})

        assert "Blessed" in conditions(desired_status(toy, kind, name))
    assert [plan.operations for plan in toy.plans()] == [()]


def test_a_status_is_written_only_when_it_changes() -> None:
    toy = up(demo())
    set_pods(toy, "demo-1-a", "ready", "crashed")
    writes: Counter[str] = Counter()
    for _ in range(4):
        for plan in toy.plans():
            assert {operation.verb for operation in plan.operations} <= {Verb.STATUS}
            writes.update(operation.id.name for operation in plan.operations)
            toy.apply(plan.operations)

    assert writes == {"demo-1-a": 1}
