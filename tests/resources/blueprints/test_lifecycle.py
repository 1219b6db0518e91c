"""The objects of a set when it is scaled, when pods fail, and when things are deleted, on the toy cluster."""

from typing import Any

from engine.guard import Limits
from engine.ids import ResourceId
from engine.memo import Memo
from engine.observed import live
from engine.operation import Cause, body_of
from engine.proposal import propose
from engine.tick import plan_all
from engine.verb import Verb
from resources.base import kinds, labels
from resources.model.pod_facts import assign_pods, facts_of
from resources.registry import BLUEPRINTS
from tests.builders import clique, group, podcliqueset
from tests.laws.toy import CONFIGURATION, Toy, running

ROOT = kinds.PODCLIQUESET.id("default", "demo")


def up(manifest: dict[str, Any]) -> Toy:
    """A cluster in which the set is ready."""
    toy = Toy()
    toy.put(manifest)
    toy.settle()
    return toy


def scale(toy: Toy, id: ResourceId, replicas: int) -> None:
    """Scale like `kubectl scale`."""
    generation = toy.objects[id]["metadata"]["generation"] + 1
    toy.write(id, {"spec": {"replicas": replicas}, "metadata": {"generation": generation}})
    toy.settle()


def names(toy: Toy, kind: str) -> list[str]:
    """The names of one kind."""
    return sorted(id.name for id in toy.objects if id.kind == kind)


def test_replicas_of_a_clique_follow_the_live_object_not_the_template() -> None:
    toy = up(podcliqueset("demo", clique("worker", 2)))
    scale(toy, kinds.PODCLIQUE.id("default", "demo-0-worker"), 4)

    assert len(toy.pods()) == 4
    assert toy.objects[kinds.PODCLIQUE.id("default", "demo-0-worker")]["spec"]["replicas"] == 4


def test_a_group_scaled_in_loses_its_highest_replicas_and_their_gangs() -> None:
    toy = up(podcliqueset("demo", clique("a"), clique("b"), groups=(group("g", "a", "b", replicas=3),)))
    scale(toy, kinds.SCALING_GROUP.id("default", "demo-0-g"), 1)

    assert names(toy, "PodClique") == ["demo-0-g-0-a", "demo-0-g-0-b"]
    assert names(toy, "PodGang") == ["demo-0"]


def test_a_set_scaled_in_loses_its_services_too() -> None:
    toy = up(podcliqueset("demo", replicas=3))
    scale(toy, ROOT, 1)

    assert names(toy, "Service") == ["demo-0"]
    assert len(toy.pods()) == 2


def test_a_failed_pod_is_replaced_by_one_with_its_index_and_another_name() -> None:
    toy = up(podcliqueset("demo", clique("worker", 2)))
    failed = toy.pods()[0]
    hostname = toy.objects[failed]["spec"]["hostname"]
    toy.write(failed, {"status": {"phase": "Failed", "reason": "Evicted", "conditions": []}})
    toy.settle()

    assert failed not in toy.objects
    assert hostname in {toy.objects[pod]["spec"]["hostname"] for pod in toy.pods()}


def test_a_pod_created_in_the_pass_of_an_edit_has_the_new_spec_and_hash() -> None:
    toy = up(podcliqueset("demo", clique("worker", 2)))
    gone, kept = sorted(id for id in toy.objects if id.kind == "Pod")
    del toy.objects[gone]
    edited = podcliqueset("demo", clique("worker", 2, pod_spec={"containers": [{"name": "main", "image": "another"}]}))
    toy.write(ROOT, {"spec": edited["spec"], "metadata": {"generation": 3}})

    (made,) = [body_of(operation) for plan in toy.plans() for operation in plan.operations if operation.verb is Verb.CREATE]

    assert made["spec"]["containers"][0]["image"] == "another"
    assert made["metadata"]["labels"][labels.TEMPLATE_HASH] != toy.objects[kept]["metadata"]["labels"][labels.TEMPLATE_HASH]


def test_the_lowest_missing_index_is_filled_first() -> None:
    toy = up(podcliqueset("demo", clique("worker", 3, minAvailable=1)))
    by_host = {toy.objects[pod]["spec"]["hostname"]: pod for pod in toy.pods()}
    toy.delete(by_host["demo-0-worker-1"])
    toy.settle()

    assert sorted(toy.objects[pod]["spec"]["hostname"] for pod in toy.pods()) == [f"demo-0-worker-{index}" for index in range(3)]


def test_a_scaled_gang_is_gated_until_the_base_gang_is_scheduled() -> None:
    toy = Toy()
    toy.put(podcliqueset("demo", clique("a"), groups=(group("g", "a", replicas=2),)))
    (plan,) = toy.plans()
    toy.apply(plan.operations)
    gated = [pod for pod in toy.pods() if toy.objects[pod]["spec"].get("schedulingGates")]
    assert [pod.name.startswith("demo-0-g-1-a") for pod in gated] == [True]

    toy.live()
    (plan,) = toy.plans()
    toy.apply(plan.operations)

    assert toy.objects[gated[0]]["spec"].get("schedulingGates") == []


def test_a_foreign_gate_stays() -> None:
    toy = Toy()
    toy.put(podcliqueset("demo", clique("a"), groups=(group("g", "a", replicas=2),)))
    toy.apply(toy.plans()[0].operations)
    (pod,) = [pod for pod in toy.pods() if toy.objects[pod]["spec"].get("schedulingGates")]
    gates = [*toy.objects[pod]["spec"]["schedulingGates"], {"name": "example.com/quota"}]
    toy.write(pod, {"spec": {"schedulingGates": gates}})
    toy.live()
    toy.apply(toy.plans()[0].operations)

    assert toy.objects[pod]["spec"]["schedulingGates"] == [{"name": "example.com/quota"}]


def test_the_order_in_which_pods_are_deleted_when_a_clique_is_scaled_in() -> None:
    def pod(name: str, *, node: str = "n", phase: str = "Running", ready: bool = True, hash: str = "new", age: int = 0) -> dict[str, Any]:
        status = running("2026-01-01T00:00:00Z") if ready else {"conditions": []}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "labels": {"grove.io/pod-template-hash": hash, "grove.io/podclique-pod-index": name[-1]},
                "creationTimestamp": f"2026-01-01T00:00:{age:02}Z",
            },
            "spec": {"nodeName": node},
            "status": {**status, "phase": phase},
        }

    pods = [
        pod("old-but-fine-0", age=1),
        pod("newer-1", age=2),
        pod("old-hash-2", hash="old"),
        pod("unready-3", ready=False),
        pod("unknown-4", phase="Unknown"),
        pod("pending-5", phase="Pending"),
        pod("nowhere-6", node=""),
    ]
    all_facts = [facts_of(live(body)) for body in pods]

    order: list[str] = []
    for replicas in range(6, 0, -1):
        deleted = {facts.name for facts in assign_pods("c", "u", replicas, "new", all_facts, ()).surplus} - set(order)
        order.extend(deleted)

    assert order == ["nowhere-6", "pending-5", "unknown-4", "unready-3", "old-hash-2", "newer-1"]


def test_a_name_of_a_foreign_pod_is_skipped() -> None:
    first = assign_pods("c", "u", 1, "h", [], ()).new[0].name
    second = assign_pods("c", "u", 1, "h", [], (first,)).new[0].name

    assert first != second
    assert assign_pods("c", "u", 1, "h", [], (first,)).new[0].name == second


def test_pods_of_a_large_clique_have_different_names() -> None:
    """Of 6000 names with five random characters, a few would be equal."""
    new = assign_pods("c", "u", 6000, "h", [], ()).new
    names = [pod.name for pod in new]
    fewer = [pod.name for pod in assign_pods("c", "u", 5000, "h", [], ()).new]

    assert len(set(names)) == len(names)
    assert names[:5000] == fewer


def test_orphans_that_only_our_finalizer_keeps_are_released_pods_first() -> None:
    toy = up(podcliqueset("demo", clique("a", 2), clique("b"), groups=(group("g", "b"),)))
    del toy.objects[ROOT]
    for id in list(toy.objects):
        if id.kind != "Pod":
            toy.delete(id)
    for _ in range(6):
        for plan in toy.plans():
            toy.apply(plan.operations)
        toy.live()

    assert toy.objects == {}


def test_a_set_that_is_created_again_waits_for_the_objects_of_the_previous_one_to_be_gone() -> None:
    manifest = podcliqueset("demo", clique("a", 2))
    toy = up(manifest)
    del toy.objects[ROOT]
    toy.put(manifest)
    for id in list(toy.objects):
        if id.kind != "Pod" and id != ROOT:
            toy.delete(id)
    toy.settle()

    uid = toy.objects[ROOT]["metadata"]["uid"]
    assert toy.objects[kinds.PODCLIQUE.id("default", "demo-0-a")]["metadata"]["ownerReferences"][0]["uid"] == uid
    assert len(toy.pods()) == 2


def test_orphans_that_nobody_deletes_are_left_alone() -> None:
    toy = up(podcliqueset("demo", clique("a", 2)))
    toy.put(podcliqueset("other"))
    toy.settle()
    del toy.objects[ROOT]
    before = set(toy.objects)
    toy.settle()

    assert set(toy.objects) == before


def test_a_clique_whose_replicas_are_no_integer_is_a_problem_and_nothing_is_changed() -> None:
    toy = up(podcliqueset("demo", clique("worker", 2)))
    toy.write(kinds.PODCLIQUE.id("default", "demo-0-worker"), {"spec": {"replicas": "many"}, "metadata": {"generation": 2}})
    (plan,) = toy.plans()

    assert [(operation.verb, operation.id) for operation in plan.operations] == [(Verb.STATUS, ROOT)]
    assert plan.problems == ('PodClique/default/demo-0-worker: replicas must be an integer, got "many"',)
    toy.apply(plan.operations)
    assert toy.plans()[0].operations == ()
    assert {each["type"]: each["reason"] for each in toy.objects[ROOT]["status"]["conditions"]}.items() >= {
        "Stalled": "ValidationFailed"
    }.items()


def test_creations_after_scaling_are_intent_and_after_a_foreign_deletion_drift() -> None:
    toy = up(podcliqueset("demo", clique("a"), clique("b"), groups=(group("g", "b"),)))
    toy.write(kinds.SCALING_GROUP.id("default", "demo-0-g"), {"spec": {"replicas": 2}, "metadata": {"generation": 2}})
    (scaled,) = toy.plans()
    assert {operation.cause for operation in scaled.operations if operation.verb is Verb.CREATE} == {Cause.INTENT}

    toy.settle()
    del toy.objects[kinds.SERVICE.id("default", "demo-0")]
    (plan,) = toy.plans()
    assert [(operation.id.kind, operation.cause) for operation in plan.operations] == [("Service", Cause.DRIFT)]


def test_a_token_is_deleted_before_its_account_and_a_binding_before_its_role() -> None:
    toy = up(podcliqueset("demo"))
    toy.delete(ROOT)
    order: list[str] = []
    for _ in range(8):
        for plan in toy.plans():
            order.extend(operation.id.kind for operation in plan.operations)
            edges = {operation.id.kind: operation.after for operation in plan.operations}
            if "ServiceAccount" in edges:
                assert {key.split()[1].split("/")[1] for key in edges["ServiceAccount"]} == {"Secret", "RoleBinding"}
            toy.apply(plan.operations)
        toy.live()

    assert order.index("Secret") < order.index("ServiceAccount")
    assert order.index("RoleBinding") < order.index("Role")


def test_a_manifest_with_more_replicas_of_a_clique_keeps_the_stored_minimum_if_it_names_none() -> None:
    toy = up(podcliqueset("demo", clique("worker", 2)))
    proposed = propose(toy.world(), [podcliqueset("demo", clique("worker", 3))])
    (plan,) = plan_all(BLUEPRINTS, proposed, toy.now, CONFIGURATION, Memo(), Limits()).plans

    (edit,) = (operation for operation in plan.operations if operation.id == ROOT)
    assert body_of(edit) is not None
    (worker,) = body_of(edit)["spec"]["template"]["cliques"]
    assert (worker["spec"]["replicas"], worker["spec"]["minAvailable"]) == (3, 2)
    assert [operation.id.kind for operation in plan.operations] == ["PodCliqueSet"]
