"""T1–T18: what is easily done wrong about domains; C1–C12: what is easily believed about the driver (docs/behaviour)."""

import copy
from typing import Any

import pytest

from engine.operation import Verb
from engine.quantity import is_zero
from providers.fabrics.nvidia_words import AUTO, COMPUTE_DOMAIN, DOMAIN_LABEL, NAMED
from resources import kinds
from resources.permissions import permissions
from resources.registry import BLUEPRINTS
from tests.builders import clique, group, podcliqueset
from tests.laws.fabric_worlds import pass_, rest, scale
from tests.laws.rack import DRIVERS_FINALIZER, Rack
from tests.mnnvl.asking import (
    OFF,
    annotations,
    ask,
    claimed,
    complaints,
    done_to_domains,
    events,
    held,
    owners,
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
    assert [one.id.name for one in plan_of(toy).waiting] == ["demo-0"]
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


def test_C1_our_finalizer_keeps_the_object_and_people_are_told_that_it_does_not_keep_the_fabric() -> None:
    toy = up(auto(1))
    toy.delete(toy.domain("demo-0"))
    rest(toy)
    (alarm,) = plan_of(toy).alarms

    assert "demo-0" in toy.domains() and not any(id.kind == "ResourceClaimTemplate" for id in toy.objects)
    assert alarm.reason == "ComputeDomainTerminating"


def test_C2_pods_go_first_and_the_wait_for_them_is_bounded() -> None:
    toy = up(auto(1))
    toy.stuck = frozenset(id.name for id in toy.pods())
    scale(toy, DEMO, 0)
    assert done_to_domains(toy) == []
    wake_at = plan_of(toy).wake_at
    assert wake_at is not None
    toy.now = wake_at
    plan = plan_of(toy)

    assert [(one.verb, one.id.name) for one in plan.operations] == [(Verb.DELETE, "demo-0")]
    assert [alarm.reason for alarm in plan.alarms] == ["ComputeDomainDrainTimedOut"]


def test_C3_ready_means_nothing_pods_come_when_the_template_leads_into_the_domain() -> None:
    toy = Rack()
    toy.driver = False
    toy.put(auto(1))
    rest(toy)
    toy.write(toy.domain("demo-0"), {"status": {"status": "Ready"}})
    rest(toy)
    assert toy.pods() == []
    toy.driver = True
    rest(toy)

    assert len(toy.pods()) == 1


def test_C4_others_finalizers_are_never_dropped_and_ours_is_never_added_later() -> None:
    toy = up(auto(1))
    toy.write(toy.domain("demo-0"), {"metadata": {"finalizers": [DRIVERS_FINALIZER]}})
    toy.delete(toy.domain("demo-0"))
    written = [one.body for plan in toy.plans() for one in plan.operations if one.id.kind == COMPUTE_DOMAIN.name]

    assert (written, toy.domains()["demo-0"]["metadata"]["finalizers"]) == ([], [DRIVERS_FINALIZER])


def test_C5_defaults_of_the_server_are_no_drift_and_a_domain_that_somebody_replaced_is_another() -> None:
    toy = up(auto(1))
    toy.write(toy.domain("demo-0"), {"spec": {"numNodes": 4, "channel": {"allocationMode": "All"}}})
    assert [plan.operations for plan in toy.plans()] == [()]
    uid = uids(toy)["demo-0"]
    del toy.objects[toy.domain("demo-0")]
    toy.live()
    rest(toy)

    assert uids(toy)["demo-0"] != uid
    (alarm,) = plan_of(toy).alarms
    assert (alarm.reason, "demo-0 was made again" in alarm.text) == ("ComputeDomainReplaced", True)
    for id in toy.pods():
        toy.delete(id)
    rest(toy)
    assert plan_of(toy).alarms == ()


@pytest.mark.parametrize("labels", [{}, {DOMAIN_LABEL: "somebody"}])
def test_C6_a_template_of_that_name_that_is_not_the_domain_s_holds_pods_back(labels: dict[str, str]) -> None:
    toy = Rack()
    metadata = {"name": "demo-0", "namespace": "default", "labels": {**labels, "keep": "me"}}
    foreign = toy.put({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": metadata, "spec": {"spec": {}}})
    toy.driver = False
    toy.put(auto(1))
    rest(toy)
    (why,) = [why for name, why in held(plan_of(toy)).items() if "worker" in name]

    assert why.startswith("ResourceClaimTemplate demo-0 does not lead into ComputeDomain demo-0: it ")
    assert (toy.pods(), toy.objects[kinds.RESOURCE_CLAIM_TEMPLATE.id("default", "demo-0")]) == ([], foreign)


def test_C8_the_number_of_nodes_is_always_said() -> None:
    toy = Rack()
    toy.put(auto(1))
    toy.put(named("rack", "other"))
    made = [one.body["spec"] for plan in toy.plans() for one in plan.operations if one.id.kind == COMPUTE_DOMAIN.name]

    assert [spec["numNodes"] for spec in made] == [0, 0]


def test_C9_no_pod_is_made_before_its_template_not_even_a_gated_one() -> None:
    toy = Rack()
    toy.driver = False
    toy.put(auto(1, gpu(), groups=(group("pool", "worker", replicas=3, min_available=1),)))
    rest(toy)
    assert toy.pods() == []
    toy.driver = True
    rest(toy)

    assert len(toy.pods()) == 3


def test_C10_when_a_namespace_goes_what_our_finalizer_holds_is_let_go_of_though_the_set_has_gone_already() -> None:
    toy = up(auto(2), named("rack", "other"))
    for id in [id for id in toy.objects if id.kind == "PodCliqueSet"]:
        del toy.objects[id]
    for id in [id for id in toy.objects if id.kind not in ("ResourceClaim", "ResourceClaimTemplate")]:
        toy.delete(id) if id.kind in ("ComputeDomain", "PodClique", "Pod") else toy.objects.pop(id)
    rest(toy)

    assert [id for id in toy.objects if id.kind not in ("ResourceClaim", "ResourceClaimTemplate")] == []


def test_C11_a_domain_is_never_made_without_a_spec_nor_with_a_label_that_is_too_long() -> None:
    long = "r" * 200
    toy = Rack()
    toy.put(named(long))
    (made,) = [one.body for plan in toy.plans() for one in plan.operations if one.id.kind == COMPUTE_DOMAIN.name]

    assert made["spec"]["channel"]["resourceClaimTemplate"]["name"] == long
    assert max(map(len, made["metadata"]["labels"].values())) <= 63


def test_C12_where_claims_are_served_in_older_versions_only_pods_of_domains_are_held_and_told_why() -> None:
    toy = Rack()
    toy.unserved = frozenset({"ResourceClaim", "ResourceClaimTemplate"})
    toy.driver = False
    toy.put(auto(1, gpu(), clique("frontend")))
    rest(toy)

    why = "ResourceClaimTemplate demo-0 of ComputeDomain demo-0 is not served by the cluster"
    assert (why in held(plan_of(toy)).values(), claimed(toy)) == (True, {"demo-0-frontend": []})


SENSELESS: list[Any] = [None, {}, {"channel": None}, {"channel": []}, {"channel": {"resourceClaimTemplate": 5}}]


@pytest.mark.parametrize("spec", SENSELESS)
def test_C11_a_user_s_domain_that_says_nothing_is_left_alone_and_waited_for(spec: Any) -> None:
    toy = Rack()
    toy.driver = False  # It would not survive that.
    toy.put({**computedomain("rack"), "spec": spec})
    toy.put(named("rack"))
    rest(toy)

    why = "ResourceClaimTemplate rack of ComputeDomain rack is not made yet by its driver"
    assert (why in held(plan_of(toy)).values(), toy.domains()["rack"]["spec"]) == (True, spec)


def test_what_a_shared_domain_s_dead_owners_leave_is_let_go_of() -> None:
    toy = up(named("rack"), named("rack", "other"))
    assert owners(toy, "rack") == ["demo", "other"]
    for name in ("demo", "other"):
        toy.delete(root(name))
    rest(toy)

    assert toy.objects == {}
