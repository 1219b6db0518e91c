"""The health of a set whose plan a guard refuses: its status says so once, and no longer than the guard refuses it."""

from collections.abc import Mapping
from typing import Any

from engine.guard import Limits
from engine.memo import Memo
from engine.operation import Operation, body_of
from engine.plan import Plan
from engine.proposal import propose
from engine.tick import Plans, executable, plan_all
from engine.verb import Verb
from resources.base import kinds, labels
from tests.builders import clique, podcliqueset
from tests.gitops_tools import argo_cd, flux
from tests.kstatus import kstatus
from tests.laws.toy import CONFIGURATION, Toy
from tests.resources.status.states import ROOT, edit, up

GUARDED = Limits(max_deletes=1)
MESSAGE = "delete-budget: 2 unintended deletes, 1 allowed: check them, then allow them with --max-deletes 2"


def executed(toy: Toy, *manifests: Mapping[str, Any]) -> list[Operation]:
    """Make a pass that may delete one unintended object, and return its calls."""
    world = propose(toy.world(), manifests, ())
    planned = plan_all(toy.blueprints, world, toy.now, CONFIGURATION, Memo(), GUARDED)
    calls = [operation for plan in executable(world, planned) for operation in plan.operations]
    toy.apply(calls)
    return calls


def unintended(toy: Toy, *names: str) -> None:
    """Objects that the set owns and does not specify."""
    root = toy.objects[ROOT]
    owner = {"apiVersion": root["apiVersion"], "kind": root["kind"], "name": "demo", "uid": root["metadata"]["uid"], "controller": True}
    for name in names:
        metadata = {"name": name, "namespace": "default", "labels": labels.child("demo", "any"), "ownerReferences": [owner]}
        toy.put({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {}})


def settled() -> Toy:
    toy = up(podcliqueset("demo", clique("a", 2)))
    executed(toy)
    return toy


def denied() -> Toy:
    toy = settled()
    unintended(toy, "demo-extra-0", "demo-extra-1")
    return toy


def conditions(toy: Toy) -> dict[str, tuple[str, str, str, int]]:
    """Type -> status, reason, message and generation."""
    entries = toy.objects[ROOT]["status"]["conditions"]
    return {each["type"]: (each["status"], each["reason"], each["message"], each.get("observedGeneration")) for each in entries}


def test_a_refused_set_is_stalled_and_tools_see_it() -> None:
    toy = denied()

    (write,) = executed(toy)

    body = toy.objects[ROOT]
    assert (write.verb, write.id, write.why) == (Verb.STATUS, ROOT, "its plan is not carried out: PlanDenied")
    assert conditions(toy)["Ready"] == ("False", "PlanDenied", MESSAGE, 2)
    assert conditions(toy)["Stalled"] == ("True", "PlanDenied", MESSAGE, 2) and "Reconciling" not in conditions(toy)
    assert (kstatus(body), argo_cd(body), flux(body)) == ("Failed", "Degraded", "failed")


def test_it_is_written_once_and_goes_with_what_the_guard_refuses() -> None:
    toy = denied()
    executed(toy)
    assert executed(toy) == executed(toy) == []

    del toy.objects[kinds.SERVICE.id("default", "demo-extra-1")]
    calls = executed(toy)
    executed(toy)

    assert {each.verb for each in calls} == {Verb.DELETE, Verb.STATUS}
    assert conditions(toy)["Ready"][:2] == ("True", "AllReplicasAvailable") and "Stalled" not in conditions(toy)
    assert kstatus(toy.objects[ROOT]) == "Current"


def test_an_edit_that_is_refused_is_seen_and_not_carried_out() -> None:
    toy = denied()
    edit(toy, ROOT, replicas=3)
    assert kstatus(toy.objects[ROOT]) == "InProgress"

    executed(toy)

    body = toy.objects[ROOT]
    assert (body["status"]["observedGeneration"], conditions(toy)["Stalled"][3], conditions(toy)["Applied"][3]) == (3, 3, 2)
    assert (kstatus(body), argo_cd(body)) == ("Failed", "Degraded")
    assert kinds.PODCLIQUE.id("default", "demo-2-a") not in toy.objects


def test_what_the_status_counts_stays_right_while_the_set_is_refused() -> None:
    toy = denied()
    executed(toy)
    for pod in toy.pods():
        toy.write(pod, {"status": {"conditions": [{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": "False"}]}})

    executed(toy)

    assert toy.objects[ROOT]["status"]["availableReplicas"] == 0 and conditions(toy)["Ready"][1] == "PlanDenied"


def test_which_generation_an_earlier_version_carried_out_stays_known() -> None:
    toy = settled()
    toy.write(ROOT, {"metadata": {"labels": {labels.MANAGED_BY: None}}, "status": {"conditions": None}})
    metadata = toy.objects[ROOT]["metadata"]
    toy.objects[ROOT] = {**toy.objects[ROOT], "metadata": {**metadata, "finalizers": []}}
    unintended(toy, "demo-extra-0", "demo-extra-1")

    executed(toy)

    assert conditions(toy)["Applied"][3] == 2 and conditions(toy)["Ready"][1] == "PlanDenied"


def test_a_manifest_that_a_command_may_not_apply_says_nothing_of_the_stored_set() -> None:
    toy = denied()

    assert executed(toy, podcliqueset("demo", clique("a", 2), replicas=3)) == []


def test_the_other_sets_of_the_pass_are_written_as_ever() -> None:
    toy = denied()
    toy.put(podcliqueset("other", clique("a")))

    assert {(each.id.name, each.verb) for each in executed(toy)} > {("demo", Verb.STATUS), ("other-0-a", Verb.CREATE)}


def test_nothing_is_written_when_the_pass_as_a_whole_is_refused() -> None:
    toy = denied()
    world = toy.world()
    planned = plan_all(toy.blueprints, world, toy.now, CONFIGURATION, Memo(), GUARDED)
    (plan,) = planned.plans
    assert plan.denial is not None and "conditions" in body_of(plan.denial)["status"]

    assert executable(world, Plans(planned.plans, plan.objections)) == ()


def test_a_plan_without_objections_has_no_denial() -> None:
    plans: tuple[Plan, ...] = settled().plans()

    assert [plan.denial for plan in plans] == [None]
