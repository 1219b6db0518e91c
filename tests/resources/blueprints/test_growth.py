"""Sets that were made larger than the limits allow while no webhook judged it: the growth is blocked, and what exists stays."""

from typing import Any

import pytest
from msgspec.structs import replace

from engine.ids import ResourceId
from engine.plan import Plan
from engine.verb import Verb
from resources.base import kinds, labels
from resources.ports.configuration import SET_LIMITS, WorkloadLimits
from tests.builders import clique, group, podcliqueset
from tests.laws.toy import CONFIGURATION, Toy

ROOT = kinds.PODCLIQUESET.id("default", "demo")
HUGE = 2**31 - 1


def stored(manifest: dict[str, Any], **limits: int) -> Toy:
    """A set that is ready, in a cluster with these limits from now on."""
    toy = Toy()
    toy.put(manifest)
    toy.settle()
    toy.configuration = replace(CONFIGURATION, limits=WorkloadLimits(replace(SET_LIMITS, **limits)))
    return toy


def scaled(toy: Toy, id: ResourceId, replicas: int) -> Plan:
    """The plan after a change that no webhook has seen, and all that follow it."""
    toy.write(id, {"spec": {"replicas": replicas}, "metadata": {"generation": toy.objects[id]["metadata"]["generation"] + 1}})
    toy.settle()
    (plan,) = toy.plans()
    return plan


def count(toy: Toy, kind: str) -> int:
    """How many objects of a kind there are."""
    return sum(id.kind == kind for id in toy.objects)


@pytest.mark.parametrize(
    ("name", "limits", "pods", "about"),
    [
        (kinds.PODCLIQUE.id("default", "demo-0-worker"), {"pods": 7}, 7, "PodClique demo-0-worker asks for 2147483647 replicas and gets 7"),
        (ROOT, {"pods": 8}, 6, "spec.replicas is 2147483647, of which 2 are created"),
        (ROOT, {"replicas": 3}, 9, "spec.replicas is 2147483647, of which 3 are created"),
        (kinds.SCALING_GROUP.id("default", "demo-0-g"), {"cliques": 4}, 4, "demo-0-g asks for 2147483647 replicas and gets 4"),
    ],
)
def test_what_exceeds_a_limit_is_not_created_and_the_set_says_so(name: ResourceId, limits: dict[str, int], pods: int, about: str) -> None:
    grouped = "g" in name.name.split("-")
    toy = stored(SETS[grouped], **limits)

    plan = scaled(toy, name, HUGE)

    (alarm,) = (alarm for alarm in plan.alarms if alarm.reason == "LimitExceeded")
    conditions = toy.objects[ROOT]["status"]["conditions"]
    assert (count(toy, "Pod"), plan.problems) == (pods, ())
    assert about in alarm.text
    assert [each["message"] for each in conditions if each["type"] == "LimitExceeded"] == [alarm.text]


SETS = {
    False: podcliqueset("demo", clique("worker", 3)),
    True: podcliqueset("demo", clique("a", 1), groups=(group("g", "a"),)),
}


def test_nothing_that_runs_is_scaled_in_and_a_pod_that_is_lost_comes_back() -> None:
    toy = stored(podcliqueset("demo", clique("worker", 3), replicas=3), pods=4)
    (plan,) = toy.plans()

    assert (plan.operations, [alarm for alarm in plan.alarms if alarm.reason == "LimitExceeded"]) == ((), [])

    lost = next(id for id in toy.objects if id.kind == "Pod")
    del toy.objects[lost]
    toy.settle()

    assert count(toy, "Pod") == 9


def test_a_pod_that_is_lost_together_with_its_gang_comes_back() -> None:
    toy = stored(SETS[False], pods=2)
    lost = next(id for id in toy.objects if id.kind == "Pod")
    for id in (lost, kinds.PODGANG.id("default", "demo-0")):
        del toy.objects[id]

    toy.settle()

    assert count(toy, "Pod") == 3


@pytest.mark.parametrize(
    ("manifest", "limits", "lost"),
    [
        (podcliqueset("demo", clique("worker", 1), replicas=10), {"replicas": 2}, [f"demo-{index}" for index in range(7)]),
        (
            podcliqueset("demo", clique("a", 1), groups=(group("g", "a", replicas=8),)),
            {"cliques": 2},
            [f"demo-0-g-{index}-a" for index in range(5)],
        ),
    ],
    ids=["replicas", "replicas of a group"],
)
def test_no_limit_deletes_what_is_left_of_a_set_that_has_lost_most_of_its_replicas(
    manifest: dict[str, Any], limits: dict[str, int], lost: list[str]
) -> None:
    toy = stored(manifest, **limits)
    gone = [id for id in toy.objects if any(f"{id.name}-".startswith(f"{name}-") for name in lost)]
    for id in gone:
        del toy.objects[id]
    left = {body["metadata"]["uid"] for id, body in toy.objects.items() if id.kind in ("Pod", "PodClique")}

    toy.settle()

    assert left <= {body["metadata"]["uid"] for body in toy.objects.values()}


@pytest.mark.parametrize(
    ("manifest", "limits", "gone", "deleted"),
    [
        (podcliqueset("demo", clique("worker", 1), replicas=10), {"replicas": 2}, [f"demo-{index}" for index in range(9)], "demo-9-worker"),
        (
            podcliqueset("demo", clique("a", 1), groups=(group("g", "a", replicas=8),)),
            {"cliques": 2},
            [f"demo-0-g-{index}" for index in range(7)],
            "demo-0-g-7-a",
        ),
    ],
    ids=["a replica", "a replica of a group"],
)
def test_what_a_user_deletes_of_a_replica_that_a_limit_leaves_out_goes(
    manifest: dict[str, Any], limits: dict[str, int], gone: list[str], deleted: str
) -> None:
    toy = stored(manifest, **limits)
    for id in [id for id in toy.objects if any(f"{id.name}-".startswith(f"{name}-") for name in gone)]:
        del toy.objects[id]
    toy.delete(kinds.PODCLIQUE.id("default", deleted))

    toy.settle()

    assert not any(id.name.startswith(deleted) for id in toy.objects if id.kind in ("PodClique", "Pod"))


@pytest.mark.parametrize("change", ["a claim of a clique", "a pod without the label of its group"])
def test_what_belongs_to_a_clique_of_a_replica_that_a_limit_leaves_out_stays(change: str) -> None:
    toy = stored(podcliqueset("demo", clique("a", 1), groups=(group("g", "a", replicas=8),)), cliques=2)
    gone = [f"demo-0-g-{index}-a" for index in range(7)]
    for id in [id for id in toy.objects if any(f"{id.name}-".startswith(f"{name}-") for name in gone)]:
        del toy.objects[id]
    (pod,) = [id for id in toy.objects if id.kind == "Pod"] if "pod" in change else [None]
    if pod is not None:
        toy.write(pod, {"metadata": {"labels": {labels.SCALING_GROUP: None}}})
    else:
        uid = toy.objects[kinds.PODCLIQUE.id("default", "demo-0-g-7-a")]["metadata"]["uid"]
        owner = {"apiVersion": "grove.io/v1alpha1", "kind": "PodClique", "name": "demo-0-g-7-a", "uid": uid, "controller": True}
        own = {labels.MANAGED_BY: labels.MANAGER, labels.PART_OF: "demo", labels.REPLICA_INDEX: "0", labels.PODCLIQUE: "demo-0-g-7-a"}
        metadata = {"name": "demo-0-g-7-a-all-own", "namespace": "default", "labels": own, "ownerReferences": [owner]}
        toy.put({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": metadata, "spec": {}})
    left = {id for id in toy.objects if id.kind in ("Pod", "PodClique", "ResourceClaim")}

    toy.settle()

    assert left <= set(toy.objects)


FORGED: dict[str, tuple[ResourceId, dict[str, int], str, str, dict[str, Any]]] = {
    "a status": (kinds.PODCLIQUE.id("default", "demo-0-worker"), {}, "PodClique", "demo-0-worker", {"status": {"replicas": 9_999}}),
    "a replica": (ROOT, {"replicas": 2}, "PodClique", "demo-9998-worker", {}),
    "a replica of a group": (
        kinds.SCALING_GROUP.id("default", "demo-0-g"),
        {"cliques": 2},
        "PodClique",
        "demo-0-g-9998-a",
        {"metadata": {"labels": {labels.GROUP_REPLICA_INDEX: "9998"}}},
    ),
}


@pytest.mark.parametrize("case", FORGED)
def test_what_others_write_into_objects_makes_room_for_no_growth(case: str) -> None:
    name, limits, kind, forged, patch = FORGED[case]
    toy = stored(SETS["g" in forged.split("-")], **{"pods": 7, **limits})
    (like,) = [id for id in toy.objects if id.kind == kind]
    if forged != like.name:
        copy = toy.objects[like]
        toy.put({**copy, "metadata": {**copy["metadata"], "name": forged, "uid": forged}})
    toy.write(kinds.PODCLIQUE.id("default", forged), patch)
    toy.write(name, {"spec": {"replicas": 9_999}, "metadata": {"generation": 2}})

    (plan,) = toy.plans()

    assert sum(operation.verb is Verb.CREATE for operation in plan.operations) < 20
    assert any(alarm.reason == "LimitExceeded" for alarm in plan.alarms)


def test_the_condition_goes_when_the_set_is_scaled_in_again() -> None:
    toy = stored(SETS[False], pods=4)
    scaled(toy, ROOT, 9)

    plan = scaled(toy, ROOT, 1)

    assert (count(toy, "Pod"), plan.operations) == (3, ())
    assert "LimitExceeded" not in [condition["type"] for condition in toy.objects[ROOT]["status"]["conditions"]]


def test_replicas_that_fit_one_by_one_do_not_exceed_the_limit_together() -> None:
    toy = stored(podcliqueset("demo", clique("worker", 1), replicas=3), pods=10)
    for index in range(3):
        id = kinds.PODCLIQUE.id("default", f"demo-{index}-worker")
        toy.write(id, {"spec": {"replicas": 4}, "metadata": {"generation": 2}})

    plan = scaled(toy, kinds.PODCLIQUE.id("default", "demo-2-worker"), 4)

    assert count(toy, "Pod") == 4 + 4 + 1
    assert any("replica 2 is not enlarged" in alarm.text for alarm in plan.alarms)
