"""What becomes of a set's objects when the world moves: scaling, failing, deleting. Told on the toy cluster."""

from typing import Any

from engine import world
from engine.guard import Limits
from engine.ids import ResourceId
from engine.memo import Memo
from engine.observed import live
from engine.operation import Cause
from engine.tick import plan_all
from engine.verb import Verb
from resources.base import kinds, labels
from resources.model.pod_assignment import assign_pods
from resources.model.pod_facts import facts_of
from resources.registry import BLUEPRINTS
from tests.builders import clique, group, podcliqueset
from tests.laws.toy import SETUP, Toy, running

ROOT = kinds.PODCLIQUESET.id("default", "demo")


def up(manifest: dict[str, Any]) -> Toy:
    """A cluster in which the set is up."""
    toy = Toy()
    toy.put(manifest)
    toy.settle()
    return toy


def scale(toy: Toy, id: ResourceId, replicas: int) -> None:
    """What `kubectl scale` does."""
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


def test_a_failed_pod_is_replaced_in_its_seat_under_another_name() -> None:
    toy = up(podcliqueset("demo", clique("worker", 2)))
    failed = toy.pods()[0]
    seat = toy.objects[failed]["spec"]["hostname"]
    toy.write(failed, {"status": {"phase": "Failed", "reason": "Evicted", "conditions": []}})
    toy.settle()

    assert failed not in toy.objects
    assert seat in {toy.objects[pod]["spec"]["hostname"] for pod in toy.pods()}


def test_a_pod_that_is_made_in_the_pass_of_an_edit_is_known_as_what_it_is() -> None:
    toy = up(podcliqueset("demo", clique("worker", 2)))
    gone, kept = sorted(id for id in toy.objects if id.kind == "Pod")
    del toy.objects[gone]
    edited = podcliqueset("demo", clique("worker", 2, pod_spec={"containers": [{"name": "main", "image": "another"}]}))
    toy.write(ROOT, {"spec": edited["spec"], "metadata": {"generation": 3}})

    (made,) = [operation.body for plan in toy.plans() for operation in plan.operations if operation.verb is Verb.CREATE]

    assert made["spec"]["containers"][0]["image"] == "another"
    assert made["metadata"]["labels"][labels.TEMPLATE_HASH] != toy.objects[kept]["metadata"]["labels"][labels.TEMPLATE_HASH]


def test_holes_are_filled_lowest_first() -> None:
    toy = up(podcliqueset("demo", clique("worker", 3, minAvailable=1)))
    by_seat = {toy.objects[pod]["spec"]["hostname"]: pod for pod in toy.pods()}
    toy.delete(by_seat["demo-0-worker-1"])
    toy.settle()

    assert sorted(toy.objects[pod]["spec"]["hostname"] for pod in toy.pods()) == [f"demo-0-worker-{seat}" for seat in range(3)]


def test_a_scaled_gang_waits_at_its_gate_until_the_base_gang_is_scheduled() -> None:
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


def test_a_gate_of_somebody_else_stays() -> None:
    toy = Toy()
    toy.put(podcliqueset("demo", clique("a"), groups=(group("g", "a", replicas=2),)))
    toy.apply(toy.plans()[0].operations)
    (pod,) = [pod for pod in toy.pods() if toy.objects[pod]["spec"].get("schedulingGates")]
    gates = [*toy.objects[pod]["spec"]["schedulingGates"], {"name": "example.com/quota"}]
    toy.write(pod, {"spec": {"schedulingGates": gates}})
    toy.live()
    toy.apply(toy.plans()[0].operations)

    assert toy.objects[pod]["spec"]["schedulingGates"] == [{"name": "example.com/quota"}]


def test_who_goes_first_when_a_clique_shrinks() -> None:
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
    facts = [facts_of(live(body)) for body in pods]

    order: list[str] = []
    for wanted in range(6, 0, -1):
        gone = {one.name for one in assign_pods("c", "u", wanted, "new", facts, ()).surplus} - set(order)
        order.extend(gone)

    assert order == ["nowhere-6", "pending-5", "unknown-4", "unready-3", "old-hash-2", "newer-1"]


def test_a_name_that_a_stranger_holds_is_passed_over() -> None:
    first = assign_pods("c", "u", 1, "h", [], ()).fresh[0].name
    second = assign_pods("c", "u", 1, "h", [], (first,)).fresh[0].name

    assert first != second
    assert assign_pods("c", "u", 1, "h", [], (first,)).fresh[0].name == second


def test_what_only_our_finalizer_holds_after_its_set_is_gone_is_let_go_pods_first() -> None:
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


def test_a_set_made_again_under_the_same_name_waits_for_what_is_left_of_the_old_one() -> None:
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


def test_children_of_a_set_that_is_gone_are_left_alone_unless_somebody_deletes_them() -> None:
    toy = up(podcliqueset("demo", clique("a", 2)))
    toy.put(podcliqueset("other"))
    toy.settle()
    del toy.objects[ROOT]
    before = set(toy.objects)
    toy.settle()

    assert set(toy.objects) == before


def test_a_clique_scaled_beyond_reason_is_a_fault_and_nothing_is_touched() -> None:
    toy = up(podcliqueset("demo", clique("worker", 2)))
    toy.write(kinds.PODCLIQUE.id("default", "demo-0-worker"), {"spec": {"replicas": 2_000_000_000}, "metadata": {"generation": 2}})
    (plan,) = toy.plans()

    assert plan.operations == ()
    assert plan.problems == ("PodClique/default/demo-0-worker: 2000000000 replicas are more than 100000",)


def test_what_is_made_for_a_new_number_is_intent_and_what_somebody_took_away_is_drift() -> None:
    toy = up(podcliqueset("demo", clique("a"), clique("b"), groups=(group("g", "b"),)))
    toy.write(kinds.SCALING_GROUP.id("default", "demo-0-g"), {"spec": {"replicas": 2}, "metadata": {"generation": 2}})
    (scaled,) = toy.plans()
    assert {operation.cause for operation in scaled.operations if operation.verb is Verb.CREATE} == {Cause.INTENT}

    toy.settle()
    del toy.objects[kinds.SERVICE.id("default", "demo-0")]
    (plan,) = toy.plans()
    assert [(operation.id.kind, operation.cause) for operation in plan.operations] == [("Service", Cause.DRIFT)]


def test_a_token_goes_before_its_account_and_a_binding_before_its_role() -> None:
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


def test_a_manifest_that_asks_for_more_pods_of_a_clique_leaves_the_minimum_that_it_does_not_say_as_it_is() -> None:
    toy = up(podcliqueset("demo", clique("worker", 2)))
    proposed = world.propose(toy.world(), [podcliqueset("demo", clique("worker", 3))])
    (plan,) = plan_all(BLUEPRINTS, proposed, toy.now, SETUP, Memo(), Limits()).plans

    (edit,) = (one for one in plan.operations if one.id == ROOT)
    assert edit.body is not None
    (worker,) = edit.body["spec"]["template"]["cliques"]
    assert (worker["spec"]["replicas"], worker["spec"]["minAvailable"]) == (3, 2)
    assert [one.id.kind for one in plan.operations] == ["PodCliqueSet"]
