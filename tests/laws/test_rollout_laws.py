"""The laws of an update: one unit at a time, minAvailable kept where possible, and it ends whatever fails meanwhile."""

import random
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from engine.answer import TrialOutcome, Trials, TrialVerdict
from engine.ids import ResourceId
from engine.memo import Memo
from engine.operation import Operation
from engine.verb import Verb
from resources.base import kinds
from tests.builders import clique, group, podcliqueset
from tests.laws.cases import cases
from tests.laws.test_tick_laws import some_of
from tests.laws.toy import Toy

ROOT = kinds.PODCLIQUESET.id("default", "demo")


def image(version: int) -> dict[str, Any]:
    """A pod spec of that version."""
    return {"containers": [{"name": "main", "image": f"example/worker:{version}"}]}


def edit(toy: Toy, manifest: dict[str, Any]) -> None:
    """A user applies another version of the set."""
    generation = toy.objects[ROOT]["metadata"]["generation"] + 1
    toy.write(ROOT, {"spec": {"template": manifest["spec"]["template"]}, "metadata": {"generation": generation}})


def up(manifest: dict[str, Any]) -> Toy:
    """A cluster in which the set is running."""
    toy = Toy()
    toy.put(manifest)
    toy.settle()
    return toy


def demo(version: int, replicas: int, minimum: int, sets: int = 3) -> dict[str, Any]:
    """Two standalone cliques and a scaling group of two."""
    cliques = [clique(name, replicas, minAvailable=minimum, pod_spec=image(version)) for name in ("a", "b", "c", "d")]
    return podcliqueset("demo", *cliques, groups=(group("g", "c", "d", replicas=replicas, min_available=minimum),), replicas=sets)


def is_ready(toy: Toy, pod: ResourceId) -> bool:
    """Whether a pod is ready."""
    body = toy.objects[pod]
    return not body["metadata"].get("deletionTimestamp") and body.get("status", {}).get("phase") == "Running"


def unit_of(labels: dict[str, str], name: str) -> str:
    """The unit of an update that a pod belongs to: itself, or its replica of a scaling group."""
    group_replica = labels.get("grove.io/podcliquescalinggroup-replica-index")
    return f"{labels['grove.io/podcliquescalinggroup']}/{group_replica}" if group_replica else name


def taken_by(toy: Toy, operations: tuple[Operation, ...]) -> set[str]:
    """The units of ready pods that a plan deletes."""
    deleted = [each.id for each in operations if each.verb is Verb.DELETE and each.id.kind == "Pod" and is_ready(toy, each.id)]
    return {unit_of(toy.objects[pod]["metadata"]["labels"], pod.name) for pod in deleted}


def unavailable(toy: Toy) -> set[str]:
    """The units that are not ready: cliques with too few ready pods, and group replicas with a clique below its minimum."""
    units = set()
    for id, body in toy.objects.items():
        if id.kind == "PodClique":
            pods = [pod for pod in toy.pods() if toy.objects[pod]["metadata"]["labels"]["grove.io/podclique"] == id.name]
            in_group = "grove.io/podcliquescalinggroup" in body["metadata"]["labels"]
            needed = body["spec"]["minAvailable" if in_group else "replicas"]
            if sum(is_ready(toy, pod) for pod in pods) < needed:
                units.add(unit_of(body["metadata"]["labels"], id.name))
    return units


def images(toy: Toy) -> set[str]:
    """The images of all pods."""
    return {toy.objects[pod]["spec"]["containers"][0]["image"] for pod in toy.pods()}


@pytest.mark.parametrize(("replicas", "minimum"), [(1, 1), (2, 1), (3, 2), (2, 2)])
@given(seed=some.integers(0, 2**32))
@cases(8)
def test_an_update_replaces_one_unit_at_a_time_and_ends_whatever_fails_meanwhile(replicas: int, minimum: int, seed: int) -> None:
    chance = random.Random(seed)
    toy = up(demo(1, replicas, minimum))
    edit(toy, demo(2, replicas, minimum))
    memo = Memo()
    for step in range(900):
        (plan,) = toy.plans(memo)
        if not plan.operations and not plan.pending:
            break
        missing = unavailable(toy)
        healthy = taken_by(toy, plan.operations) - missing
        assert len(healthy) <= 1, "two units at a time"
        assert not (healthy and missing), "the next one before the last one is ready"
        toy.apply(plan.operations)
        if step % 7 == 3 and toy.pods():
            toy.write(chance.choice(toy.pods()), {"status": {"phase": "Failed", "conditions": []}})
        if chance.random() < 0.8:
            toy.live()
        toy.now += timedelta(seconds=1)

    assert images(toy) == {"example/worker:2"}
    assert toy.objects[ROOT]["status"]["updatedReplicas"] == 3
    assert toy.objects[ROOT]["status"]["updateProgress"].get("updateEndedAt")


@given(seed=some.integers(0, 2**32))
@cases(15)
def test_with_spare_pods_an_update_keeps_min_available(seed: int) -> None:
    chance = random.Random(seed)
    toy = up(podcliqueset("demo", clique("a", 3, minAvailable=2, pod_spec=image(1))))
    edit(toy, podcliqueset("demo", clique("a", 3, minAvailable=2, pod_spec=image(2))))
    memo = Memo()
    for _ in range(200):
        (plan,) = toy.plans(memo)
        if not plan.operations and not plan.pending:
            break
        before = sum(is_ready(toy, pod) for pod in toy.pods())
        taken = len(taken_by(toy, plan.operations))
        assert not taken or before - taken >= 2
        toy.apply(plan.operations)
        if chance.random() < 0.7:
            toy.live()
        toy.now += timedelta(seconds=1)

    assert images(toy) == {"example/worker:2"}


VERDICTS = (TrialOutcome.ACCEPTED, *TrialOutcome)
"""What a server may say: mostly that it accepts a pod."""


@given(seed=some.integers(0, 2**32))
@cases(10)
def test_no_running_pod_is_deleted_for_a_template_that_the_server_has_refused_or_not_been_asked_about(seed: int) -> None:
    chance, said = random.Random(seed), dict[str, TrialVerdict]()
    toy = up(demo(1, 2, 1, sets=2))
    edit(toy, demo(2, 2, 1, sets=2))
    for _ in range(50):
        toy.trials = Trials(dict(said), are_made=True)
        (plan,) = toy.plans()
        if taken_by(toy, plan.operations):
            assert plan.trials
            assert all(trial.key in said and said[trial.key].outcome is not TrialOutcome.REFUSED for trial in plan.trials)
        for trial in plan.trials:
            if chance.random() < 0.3:
                said[trial.key] = TrialVerdict(chance.choice(VERDICTS), "", toy.now)
        toy.apply(plan.operations)
        if chance.random() < 0.1 and toy.pods():
            toy.write(chance.choice(toy.pods()), {"status": {"phase": "Failed", "conditions": []}})
        if chance.random() < 0.8:
            toy.live()
        toy.now += timedelta(seconds=1)
    toy.trials = Trials({key: TrialVerdict(TrialOutcome.ACCEPTED, "", toy.now) for key in said}, are_made=True)
    for trial in toy.plans()[0].trials:
        toy.trials = Trials({**toy.trials.verdicts, trial.key: TrialVerdict(TrialOutcome.ACCEPTED, "", toy.now)}, are_made=True)
    toy.settle(rounds=400)

    assert images(toy) == {"example/worker:2"}


@given(seed=some.integers(0, 2**32))
@cases(12)
def test_an_edit_in_the_middle_of_an_update_wins(seed: int) -> None:
    chance = random.Random(seed)
    toy = up(demo(1, 2, 1, sets=2))
    for version in (2, 3):
        edit(toy, demo(version, 2, 1, sets=2))
        memo = Memo()
        for _ in range(chance.randrange(1, 12)):
            for plan in toy.plans(memo):
                toy.apply(plan.operations)
            toy.live()
            toy.now += timedelta(seconds=1)
    toy.settle(rounds=400)

    assert images(toy) == {"example/worker:3"}


def test_pods_that_are_not_ready_are_replaced_at_once() -> None:
    toy = up(demo(1, 2, 1, sets=1))
    for pod in toy.pods():
        toy.write(pod, {"status": {"phase": "Running", "conditions": []}})
    edit(toy, demo(2, 2, 1, sets=1))
    (plan,) = toy.plans()

    deleted = {operation.id for operation in plan.operations if operation.verb is Verb.DELETE}
    assert deleted == set(toy.pods())


def test_a_template_that_never_becomes_ready_replaces_one_unit_only() -> None:
    toy = up(podcliqueset("demo", clique("a", 3, minAvailable=2, pod_spec=image(1)), replicas=2))
    edit(toy, podcliqueset("demo", clique("a", 3, minAvailable=2, pod_spec=image(2)), replicas=2))
    for _ in range(20):
        for plan in toy.plans():
            toy.apply(plan.operations)
        for pod in toy.pods():
            if toy.objects[pod]["metadata"].get("deletionTimestamp"):
                del toy.objects[pod]
        toy.now += timedelta(seconds=1)

    assert sum(is_ready(toy, pod) for pod in toy.pods()) == 5
    (plan,) = toy.plans()
    assert any("the last one replaced is not ready yet" in waiting.why for waiting in plan.pending)
    assert any("another replica is updated first" in waiting.why for waiting in plan.pending)


def test_members_of_a_group_are_replaced_as_a_whole_never_edited() -> None:
    toy = up(demo(1, 2, 1, sets=1))
    uids = {id: body["metadata"]["uid"] for id, body in toy.objects.items() if id.kind == "PodClique" and "-g-" in id.name}
    edit(toy, demo(2, 2, 1, sets=1))
    toy.settle(rounds=200)

    assert all(toy.objects[id]["metadata"]["uid"] != uid for id, uid in uids.items())


def test_an_outdated_clique_that_waits_for_its_update_replaces_pods_from_its_old_template() -> None:
    toy = up(demo(1, 1, 1, sets=2))
    edit(toy, demo(2, 1, 1, sets=2))
    waiting = next(pod for pod in toy.pods() if pod.name.startswith("demo-1-g-0-c"))
    toy.write(waiting, {"status": {"phase": "Failed", "conditions": []}})
    toy.apply(toy.plans()[0].operations)

    (healed,) = [pod for pod in toy.pods() if pod.name.startswith("demo-1-g-0-c")]
    assert toy.objects[healed]["spec"]["containers"][0]["image"] == "example/worker:1"


def test_with_on_delete_only_pods_that_users_delete_are_replaced() -> None:
    manifest = demo(1, 1, 1, sets=1)
    manifest["spec"]["updateStrategy"] = {"type": "OnDelete"}
    toy = up(manifest)
    edit(toy, demo(2, 1, 1, sets=1))
    toy.settle()
    assert images(toy) == {"example/worker:1"}

    for pod in toy.pods():
        toy.delete(pod)
    toy.settle()
    assert images(toy) == {"example/worker:2"}


def test_every_level_reports_the_progress_of_an_update() -> None:
    toy = up(podcliqueset("demo", clique("a", 2, minAvailable=1, pod_spec=image(1)), replicas=2))
    edit(toy, podcliqueset("demo", clique("a", 2, minAvailable=1, pod_spec=image(2)), replicas=2))
    updating = []
    for _ in range(60):
        plans = toy.plans()
        if not any(plan.operations or plan.pending for plan in plans):
            break
        for plan in plans:
            toy.apply(plan.operations)
        toy.live()
        toy.now += timedelta(seconds=1)
        progress = toy.objects[ROOT]["status"].get("updateProgress", {})
        updating.append([turn["replicaIndex"] for turn in progress.get("currentlyUpdating") or ()])

    reported = [replicas for replicas in updating if replicas]
    assert reported == sorted(reported) and [0] in reported and [1] in reported
    clique_status = toy.objects[kinds.PODCLIQUE.id("default", "demo-1-a")]["status"]
    assert clique_status["updateProgress"]["updateEndedAt"]
    assert "readyPodsSelectedToUpdate" not in clique_status["updateProgress"]
    assert clique_status["currentPodCliqueSetGenerationHash"] == toy.objects[ROOT]["status"]["currentGenerationHash"]


FOREIGN = "c8fd9b7d6fb4bcc6"
"""The hash that another operator has for the same template."""


def relabel(toy: Toy, hash: str) -> None:
    """Set the hashes that another operator would have written."""
    for id, body in list(toy.objects.items()):
        if id.kind in ("PodClique", "Pod"):
            toy.write(id, {"metadata": {"labels": {"grove.io/pod-template-hash": hash}}})
        if id.kind in ("PodClique", "PodCliqueSet", "PodCliqueScalingGroup"):
            known = {key: hash for key in body["status"] if key.startswith("current")}
            toy.write(id, {"status": known})


def hashes(toy: Toy) -> set[str]:
    """The hash labels of cliques and pods."""
    bodies = (body for id, body in toy.objects.items() if id.kind in ("PodClique", "Pod"))
    return {body["metadata"]["labels"]["grove.io/pod-template-hash"] for body in bodies}


@given(seed=some.integers(0, 2**32))
@cases(10)
def test_taking_over_from_another_operator_replaces_nothing_wherever_it_is_interrupted(seed: int) -> None:
    chance = random.Random(seed)
    toy = up(demo(1, 2, 1, sets=2))
    relabel(toy, FOREIGN)
    before = {id: body["metadata"]["uid"] for id, body in toy.objects.items()}
    for _ in range(60):
        for plan in toy.plans():
            toy.apply(some_of(plan, chance))
    toy.settle()

    assert {id: body["metadata"]["uid"] for id, body in toy.objects.items()} == before
    assert FOREIGN not in hashes(toy)
    assert "updateProgress" not in toy.objects[ROOT]["status"]


def test_an_edit_after_taking_over_starts_an_update() -> None:
    toy = up(demo(1, 2, 1, sets=1))
    relabel(toy, FOREIGN)
    edit(toy, demo(2, 2, 1, sets=1))
    toy.settle(rounds=200)

    assert images(toy) == {"example/worker:2"}
