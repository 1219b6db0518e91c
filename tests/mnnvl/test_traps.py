"""T1–T18: what is easily done wrong about domains (docs/behaviour)."""

import copy
from typing import Any

import pytest

from engine import world
from engine.guard import Limits
from engine.memo import Memo
from engine.observed import live
from engine.quantity import is_zero
from engine.tick import plan_all
from providers.fabrics.nvidia_words import AUTO, COMPUTE_DOMAIN, NAMED
from resources.install.permissions import permissions
from resources.registry import BLUEPRINTS
from tests.builders import clique, group, podcliqueset
from tests.laws.fabric_worlds import pass_, rest, scale
from tests.laws.rack import Rack
from tests.laws.toy import NEIGHBOURS
from tests.mnnvl.asking import (
    OFF,
    annotations,
    ask,
    claimed,
    complaints,
    done_to_domains,
    events,
    held,
    plan_of,
    root,
    sharing,
    uids,
    up,
)
from tests.mnnvl.sets import OURS, auto, computedomain, gpu, gpus, named, said

DEMO = root()


def test_T1_events_have_the_documented_words() -> None:
    toy = up(auto(1))
    scale(toy, DEMO, 0)
    told = []
    for _ in range(6):
        (plan,) = toy.plans()
        told += events(plan)
        pass_(toy)
        toy.live()

    assert told == [(False, "ComputeDomainDeleted", "ComputeDomain demo-0 deleted")]


@pytest.mark.parametrize("old", [podcliqueset("demo", gpu()), podcliqueset("demo", clique("worker"))])
def test_T2_a_set_is_enrolled_when_it_is_made_and_never_when_it_is_changed(old: dict[str, Any]) -> None:
    decision = ask(podcliqueset("demo", gpu()), old=old)

    assert decision.body is not None and AUTO not in (decision.body["metadata"].get("annotations") or {})


def test_T3_precedence_is_judged_when_a_set_is_made_and_never_when_it_is_changed() -> None:
    old = podcliqueset("demo", gpu(annotations={NAMED: "rack"}))
    finalized = {**old, "metadata": {**old["metadata"], "finalizers": ["grove.io/podcliqueset.grove.io"]}}

    assert complaints(old) != []
    assert complaints(old, old=finalized) == complaints({**old, "spec": {**old["spec"], "replicas": 3}}, old=old) == []


def test_T4_the_switch_gates_enrolment_and_not_what_lives() -> None:
    toy = up(auto(2))
    toy.settings = OFF
    toy.delete(toy.domain("demo-1"))
    scale(toy, DEMO, 1)
    rest(toy)
    assert list(toy.domains()) == ["demo-0"]
    toy.delete(DEMO)
    rest(toy)

    assert toy.objects == {}


def test_T5_no_domain_has_a_number_of_nodes_and_nobody_waits_for_ready() -> None:
    toy = up(auto(1, gpu(replicas=4)), named("rack", "other"))

    assert [body["spec"]["numNodes"] for body in toy.domains().values()] == [0, 0]
    assert not any("status" in body for body in toy.domains().values())
    assert len(toy.pods()) == 6


@pytest.mark.parametrize("others", [[], ["example.com/mine"]])
def test_T6_the_finalizer_falls_also_when_somebody_was_quicker_and_after_all_others(others: list[str]) -> None:
    toy = up(auto(1))
    has = toy.domains()["demo-0"]["metadata"]["finalizers"]
    toy.write(toy.domain("demo-0"), {"metadata": {"finalizers": [*others, *has]}})
    toy.delete(toy.domain("demo-0"))
    scale(toy, DEMO, 0)
    rest(toy)
    if others:
        assert toy.domains()["demo-0"]["metadata"]["finalizers"] == [*others, OURS]
        assert held(plan_of(toy))["demo-0"].endswith("waits for example.com/mine to let go of it")
        toy.write(toy.domain("demo-0"), {"metadata": {"finalizers": [OURS]}})
        rest(toy)

    assert toy.domains() == {}


def test_T6_scaled_out_again_while_the_old_domain_is_going_the_new_one_comes_after_it() -> None:
    toy = up(auto(1))
    uid = uids(toy)["demo-0"]
    toy.driver = False
    scale(toy, DEMO, 0)
    rest(toy)
    scale(toy, DEMO, 1)
    rest(toy)
    assert (uids(toy)["demo-0"], toy.pods()) == (uid, [])
    toy.driver = True
    rest(toy)

    assert uids(toy)["demo-0"] != uid
    assert claimed(toy) == {"demo-0-worker": ["demo-0"]}


def test_T7_domains_are_told_apart_by_owner_and_not_by_the_look_of_their_names() -> None:
    toy = up(auto(2), auto(1, name="demo-1"), named("demo-7", "other"))
    kept = {name: uid for name, uid in uids(toy).items() if name in ("demo-1-0", "demo-7")}
    scale(toy, DEMO, 0)
    rest(toy)

    assert uids(toy) == kept


def test_T8_what_others_made_under_our_names_is_neither_adopted_nor_deleted() -> None:
    toy = Rack()
    toy.put(computedomain("demo-1", "theirs"))
    toy.live()
    before = toy.domains()["demo-1"]
    toy.put(auto(2))
    rest(toy)
    assert claimed(toy) == {"demo-0-worker": ["demo-0"]}
    scale(toy, DEMO, 1)
    rest(toy)
    toy.delete(DEMO)
    rest(toy)

    assert toy.domains() == {"demo-1": before}


def test_T8_a_domain_left_by_a_set_of_the_same_name_is_let_go_of_and_then_made_anew() -> None:
    toy = up(auto(1))
    uid = uids(toy)["demo-0"]
    del toy.objects[DEMO]  # Somebody has taken our finalizer off; the garbage collector follows.
    for id in [id for id in toy.objects if id.kind != "ResourceClaimTemplate"]:
        toy.delete(id) if id.kind in ("ComputeDomain", "PodClique", "Pod") else toy.objects.pop(id)
    toy.put(auto(1))
    rest(toy)

    assert uids(toy)["demo-0"] != uid
    assert claimed(toy) == {"demo-0-worker": ["demo-0"]}


def test_T9_replicas_share_nothing_of_the_template_and_cliques_are_found_by_their_exact_names() -> None:
    manifest = auto(2, clique("worker"), gpu("gpu-worker"))
    before = copy.deepcopy(manifest)
    toy = up(manifest)

    assert claimed(toy) == {"demo-0-worker": [], "demo-0-gpu-worker": ["demo-0"], "demo-1-worker": [], "demo-1-gpu-worker": ["demo-1"]}
    assert manifest == before


@pytest.mark.parametrize(
    ("spec", "is_gpu"),
    [
        (gpus("1"), True),
        (gpus("1", kind="requests"), True),
        ({"containers": [{"name": "a", "image": "b"}], "initContainers": gpus()["containers"]}, True),
        (gpus("0"), False),
        (gpus("1", resource="nvidia.com/mig-1g.5gb"), False),
        (gpus("1", resource="NVIDIA.com/gpu"), False),
    ],
)
def test_T10_what_counts_as_a_gpu_for_an_automatic_domain_does_not_count_for_a_named_one(spec: dict[str, Any], is_gpu: bool) -> None:
    manifest = podcliqueset("demo", clique("worker", pod_spec=spec))

    assert (annotations(manifest) == {AUTO: "enabled"}) is is_gpu
    assert claimed(up(sharing(clique("worker", pod_spec=spec, annotations={NAMED: "rack"})))) == {"demo-0-worker": ["rack"]}
    assert is_zero("0")


def test_T11_without_the_crd_nothing_is_missing_and_nothing_is_in_the_way() -> None:
    toy = up(auto(1))
    for id in [id for id in toy.objects if id.kind in (COMPUTE_DOMAIN.name, "ResourceClaimTemplate")]:
        del toy.objects[id]
    toy.unserved = frozenset({COMPUTE_DOMAIN.name})
    toy.put(podcliqueset("other", clique("worker")))
    toy.delete(DEMO)
    rest(toy)

    assert DEMO not in toy.objects
    assert claimed(toy) == {"other-0-worker": []}


def test_T12_scaled_to_zero_from_any_number_nothing_is_left_of_either_sort() -> None:
    toy = up(auto(3), named("rack-$(GROVE_PCS_INDEX)", "other", replicas=2), named("rack", "third"))
    for name in ("demo", "other", "third"):
        scale(toy, root(name), 0)
    rest(toy)

    assert toy.domains() == {}


@pytest.mark.parametrize("setup", [OFF, Rack.settings])
def test_T13_the_right_to_domains_does_not_hang_on_the_switch(setup: Any) -> None:
    verbs = {verb for one in permissions(BLUEPRINTS, setup, "default") if one.resource == "computedomains" for verb in one.verbs}

    assert verbs == {"create", "delete", "get", "list", "patch", "watch"}


def test_T14_a_user_s_claim_of_our_name_never_switches_the_domain_off_silently() -> None:
    mine = {**gpus(), "resourceClaims": [{"name": "mnnvl-claim", "resourceClaimTemplateName": "mine"}]}

    assert [line.partition(":")[0] for line in complaints(podcliqueset("demo", gpu(pod_spec=mine)))] == [
        "spec.template.cliques[0].spec.podSpec.resourceClaims[0].name"
    ]


def test_T15_the_template_s_name_is_the_domain_s_word_and_one_that_leads_elsewhere_is_not_taken() -> None:
    toy = Rack()
    toy.put(computedomain("first", "channel"))
    toy.live()
    toy.put(computedomain("second", "channel"))
    toy.put(named("second"))
    rest(toy)

    assert "demo-0-worker" not in claimed(toy)
    why = "ResourceClaimTemplate channel does not lead into ComputeDomain second: it belongs to another ComputeDomain"
    assert why in held(plan_of(toy)).values()


def test_T16_a_domain_is_deleted_after_the_last_pod_and_claim_of_its_replica_is_gone() -> None:
    toy = up(auto(2, gpu(replicas=2)))
    toy.stuck = frozenset({id.name for id in toy.pods() if id.name.startswith("demo-1")})
    scale(toy, DEMO, 1)
    assert done_to_domains(toy) == []
    assert held(plan_of(toy))["demo-1"].startswith("replica 1 goes: demo is scaled to 1; waits for 2 pods")
    toy.stuck = frozenset()

    assert done_to_domains(toy) == [("delete", "demo-1"), ("release", "demo-1")]


@pytest.mark.parametrize("how", ["scaled in", "deleted"])
def test_T16_a_claim_that_lingers_keeps_the_domain_as_well(how: str) -> None:
    toy = up(auto(1))
    (claim,) = [id for id in toy.objects if id.kind == "ResourceClaim"]
    toy.write(claim, {"metadata": {"annotations": None, "ownerReferences": None}})  # Nobody's pod any more, and still there.
    scale(toy, DEMO, 0) if how == "scaled in" else toy.delete(DEMO)
    assert done_to_domains(toy) == []
    assert "waits for 1 claim" in held(plan_of(toy))["demo-0"]
    assert [one.id.name for one in plan_of(toy).pending] == ["demo-0"]
    del toy.objects[claim]

    assert done_to_domains(toy) == [("delete", "demo-0"), ("release", "demo-0")]


@pytest.mark.parametrize(("namespace", "kind"), [("elsewhere", "ComputeDomainChannelConfig"), ("default", "ComputeDomainDaemonConfig")])
def test_T16_no_claim_from_elsewhere_and_none_of_the_driver_s_own_keeps_it(namespace: str, kind: str) -> None:
    toy = up(auto(1))
    opaque = {"driver": "compute-domain.nvidia.com", "parameters": {"kind": kind, "domainID": uids(toy)["demo-0"]}}
    spec = {"devices": {"config": [{"opaque": opaque}]}}
    metadata = {"name": "hostage", "namespace": namespace, "annotations": {"pod": "hostage"}}
    toy.put({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": metadata, "spec": spec})
    scale(toy, DEMO, 0)

    assert done_to_domains(toy) == [("delete", "demo-0"), ("release", "demo-0")]


def test_T16_a_domain_that_its_replica_asks_for_no_more_waits_for_its_pods_in_the_same_way() -> None:
    toy = up(auto(1))
    toy.write(DEMO, {"metadata": {"annotations": {AUTO: "disabled"}}})  # Nobody in front of the cluster has objected.
    toy.stuck = frozenset(id.name for id in toy.pods())
    assert done_to_domains(toy) == []
    toy.delete(toy.pods()[0])
    plan = plan_of(toy)

    assert held(plan)["demo-0"].startswith("nothing asks for it in replica 0; waits for 1 pod")
    assert plan.wake_at is not None and plan.wake_at - toy.now == toy.settings.drain


@pytest.mark.parametrize("unseen", ["Pod", "PodClique", "ResourceClaim"])
def test_T16_it_stays_as_long_as_not_everything_that_may_use_it_can_be_seen(unseen: str) -> None:
    toy = up(auto(1))
    scale(toy, DEMO, 0)
    toy.driver = False
    while any(id.kind in ("Pod", "ResourceClaim") for id in toy.objects):
        pass_(toy)
        toy.live()
    around = [one for one in map(live, toy.objects.values()) if one.id.kind in NEIGHBOURS and one.id.kind != unseen]
    sets = [one for one in map(live, toy.objects.values()) if one.id == DEMO]
    children = [one for one in around if one.id.kind == COMPUTE_DOMAIN.name]
    seen = world.assemble(BLUEPRINTS, sets, children, {unseen: "403"}, references=around)
    (plan,) = plan_all(BLUEPRINTS, seen, toy.now, toy.settings, Memo(), Limits()).plans

    assert [one for one in plan.operations if one.id.kind == COMPUTE_DOMAIN.name] == []
    assert held(plan)["demo-0"] == f"goes once {unseen} objects are seen completely"


def test_T17_who_opts_out_hands_on_nothing_and_an_enrolled_set_tells_its_groups() -> None:
    def told(value: str) -> list[Any]:
        manifest = podcliqueset("demo", gpu(), clique("cpu"), groups=(group("a", "worker"), group("b", "cpu")))
        toy = up(said(manifest, {AUTO: value}))
        groups = [body for id, body in sorted(toy.objects.items()) if id.kind == "PodCliqueScalingGroup"]
        return [(one["metadata"].get("annotations") or {}).get(AUTO) for one in groups]

    assert (told("disabled"), told("enabled")) == ([None, None], ["enabled", "enabled"])


def test_T18_no_two_sets_can_mean_the_same_automatic_domain() -> None:
    toy = up(auto(2, name="a"), auto(2, name="a-0"), auto(1, name="a-0-1"))

    assert {name: body["metadata"]["labels"]["app.kubernetes.io/part-of"] for name, body in toy.domains().items()} == {
        "a-0": "a",
        "a-1": "a",
        "a-0-0": "a-0",
        "a-0-1": "a-0",
        "a-0-1-0": "a-0-1",
    }
