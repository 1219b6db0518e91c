"""T1–T18: mistakes that are easily made with domains (docs/behaviour)."""

import copy
from typing import Any

import pytest

from engine import world
from engine.guard import Limits
from engine.memo import Memo
from engine.observed import Unlisted, live
from engine.quantity import is_zero
from engine.tick import plan_all
from engine.verb import Verb
from providers.fabrics.nvidia.names import AUTO, COMPUTE_DOMAIN, NAMED
from resources.base.kinds import PODCLIQUE
from resources.install.permissions import permissions
from resources.registry import BLUEPRINTS
from tests.builders import clique, group, podcliqueset
from tests.laws.fabric_worlds import pass_, scale, settle
from tests.laws.rack import Rack
from tests.laws.toy import REFERENCES
from tests.mnnvl.asking import (
    OFF,
    annotations,
    ask,
    claimed,
    complaints,
    deferred,
    done_to_domains,
    events,
    plan_of,
    root,
    sharing,
    uids,
    up,
)
from tests.mnnvl.sets import OURS, auto, computedomain, gpu, gpus, named, said

DEMO = root()


def test_T1_events_have_the_documented_messages() -> None:
    toy = up(auto(1))
    scale(toy, DEMO, 0)
    found = []
    for _ in range(6):
        (plan,) = toy.plans()
        found += events(plan)
        pass_(toy)
        toy.live()

    assert found == [(False, "ComputeDomainDeleted", "ComputeDomain demo-0 deleted")]


@pytest.mark.parametrize("old", [podcliqueset("demo", gpu()), podcliqueset("demo", clique("worker"))])
def test_T2_a_set_gets_the_annotation_on_create_and_never_on_update(old: dict[str, Any]) -> None:
    decision = ask(podcliqueset("demo", gpu()), old=old)

    assert decision.body is not None and AUTO not in (decision.body["metadata"].get("annotations") or {})


def test_T3_precedence_is_judged_on_create_and_never_on_update() -> None:
    old = podcliqueset("demo", gpu(annotations={NAMED: "rack"}))
    finalized = {**old, "metadata": {**old["metadata"], "finalizers": ["grove.io/podcliqueset.grove.io"]}}

    assert complaints(old) != []
    assert complaints(old, old=finalized) == complaints({**old, "spec": {**old["spec"], "replicas": 3}}, old=old) == []


def test_T4_the_configuration_applies_to_new_sets_and_not_to_existing_ones() -> None:
    toy = up(auto(2))
    toy.configuration = OFF
    toy.delete(toy.domain("demo-1"))
    scale(toy, DEMO, 1)
    settle(toy)
    assert list(toy.domains()) == ["demo-0"]
    toy.delete(DEMO)
    settle(toy)

    assert toy.objects == {}


def test_T5_every_domain_has_zero_nodes_and_no_pod_waits_for_ready() -> None:
    toy = up(auto(1, gpu(replicas=4)), named("rack", "other"))

    assert [body["spec"]["numNodes"] for body in toy.domains().values()] == [0, 0]
    assert not any("status" in body for body in toy.domains().values())
    assert len(toy.pods()) == 6


@pytest.mark.parametrize("others", [[], ["example.com/mine"]])
def test_T6_our_finalizer_is_released_last_also_if_the_domain_was_already_deleted(others: list[str]) -> None:
    toy = up(auto(1))
    has = toy.domains()["demo-0"]["metadata"]["finalizers"]
    toy.write(toy.domain("demo-0"), {"metadata": {"finalizers": [*others, *has]}})
    toy.delete(toy.domain("demo-0"))
    scale(toy, DEMO, 0)
    settle(toy)
    if others:
        assert toy.domains()["demo-0"]["metadata"]["finalizers"] == [*others, OURS]
        assert deferred(plan_of(toy))["demo-0"].endswith("waits for the removal of finalizer example.com/mine")
        toy.write(toy.domain("demo-0"), {"metadata": {"finalizers": [OURS]}})
        settle(toy)

    assert toy.domains() == {}


def test_T6_after_scaling_out_again_the_new_domain_is_created_after_the_old_one_is_gone() -> None:
    toy = up(auto(1))
    uid = uids(toy)["demo-0"]
    toy.driver = False
    scale(toy, DEMO, 0)
    settle(toy)
    scale(toy, DEMO, 1)
    settle(toy)
    assert (uids(toy)["demo-0"], toy.pods()) == (uid, [])
    toy.driver = True
    settle(toy)

    assert uids(toy)["demo-0"] != uid
    assert claimed(toy) == {"demo-0-worker": ["demo-0"]}


def test_T7_domains_are_matched_by_owner_and_not_by_name() -> None:
    toy = up(auto(2), auto(1, name="demo-1"), named("demo-7", "other"))
    kept = {name: uid for name, uid in uids(toy).items() if name in ("demo-1-0", "demo-7")}
    scale(toy, DEMO, 0)
    settle(toy)

    assert uids(toy) == kept


def test_T8_foreign_objects_with_our_names_are_neither_adopted_nor_deleted() -> None:
    toy = Rack()
    toy.put(computedomain("demo-1", "theirs"))
    toy.live()
    before = toy.domains()["demo-1"]
    toy.put(auto(2))
    settle(toy)
    assert claimed(toy) == {"demo-0-worker": ["demo-0"]}
    scale(toy, DEMO, 1)
    settle(toy)
    toy.delete(DEMO)
    settle(toy)

    assert toy.domains() == {"demo-1": before}


def test_T8_a_domain_of_an_earlier_set_of_the_same_name_is_released_and_created_again() -> None:
    toy = up(auto(1))
    uid = uids(toy)["demo-0"]
    del toy.objects[DEMO]  # Somebody has taken our finalizer off; the garbage collector follows.
    for id in [id for id in toy.objects if id.kind != "ResourceClaimTemplate"]:
        toy.delete(id) if id.kind in ("ComputeDomain", "PodClique", "Pod") else toy.objects.pop(id)
    toy.put(auto(1))
    settle(toy)

    assert uids(toy)["demo-0"] != uid
    assert claimed(toy) == {"demo-0-worker": ["demo-0"]}


def test_T9_the_template_is_not_shared_between_replicas_and_cliques_match_by_exact_name() -> None:
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


def test_T11_without_the_crd_sets_without_domains_work_and_can_be_deleted() -> None:
    toy = up(auto(1))
    for id in [id for id in toy.objects if id.kind in (COMPUTE_DOMAIN.name, "ResourceClaimTemplate")]:
        del toy.objects[id]
    toy.unserved = frozenset({COMPUTE_DOMAIN.name})
    toy.put(podcliqueset("other", clique("worker")))
    toy.delete(DEMO)
    settle(toy)

    assert DEMO not in toy.objects
    assert claimed(toy) == {"other-0-worker": []}


def test_T12_scaling_to_zero_from_any_number_leaves_no_domain_of_either_kind() -> None:
    toy = up(auto(3), named("rack-$(GROVE_PCS_INDEX)", "other", replicas=2), named("rack", "third"))
    for name in ("demo", "other", "third"):
        scale(toy, root(name), 0)
    settle(toy)

    assert toy.domains() == {}


@pytest.mark.parametrize("setup", [OFF, Rack.configuration])
def test_T13_the_permissions_do_not_depend_on_automatic_domains(setup: Any) -> None:
    verbs = {verb for one in permissions(BLUEPRINTS, setup, "default") if one.resource == "computedomains" for verb in one.verbs}

    assert verbs == {"create", "delete", "get", "list", "patch", "watch"}


def test_T14_a_claim_of_a_user_with_our_name_never_disables_the_domain_silently() -> None:
    mine = {**gpus(), "resourceClaims": [{"name": "mnnvl-claim", "resourceClaimTemplateName": "mine"}]}

    assert [line.partition(":")[0] for line in complaints(podcliqueset("demo", gpu(pod_spec=mine)))] == [
        "spec.template.cliques[0].spec.podSpec.resourceClaims[0].name"
    ]


def test_T15_the_domain_names_its_template_and_a_template_of_another_domain_is_not_used() -> None:
    toy = Rack()
    toy.put(computedomain("first", "channel"))
    toy.live()
    toy.put(computedomain("second", "channel"))
    toy.put(named("second"))
    settle(toy)

    assert "demo-0-worker" not in claimed(toy)
    why = "ResourceClaimTemplate channel cannot be used for ComputeDomain second: it belongs to another ComputeDomain"
    assert why in deferred(plan_of(toy)).values()


def test_T16_a_domain_is_deleted_after_the_last_pod_and_claim_of_its_replica_is_gone() -> None:
    toy = up(auto(2, gpu(replicas=2)))
    toy.stuck = frozenset({id.name for id in toy.pods() if id.name.startswith("demo-1")})
    scale(toy, DEMO, 1)
    assert done_to_domains(toy) == []
    assert deferred(plan_of(toy))["demo-1"].startswith("replica 1 is removed: demo is scaled to 1; waits for 2 pods")
    toy.stuck = frozenset()

    assert done_to_domains(toy) == [("delete", "demo-1"), ("release", "demo-1")]


@pytest.mark.parametrize("how", ["scaled in", "deleted"])
def test_T16_a_remaining_claim_keeps_the_domain(how: str) -> None:
    toy = up(auto(1))
    (claim,) = [id for id in toy.objects if id.kind == "ResourceClaim"]
    toy.write(claim, {"metadata": {"annotations": None, "ownerReferences": None}})  # Nobody's pod any more, and still there.
    scale(toy, DEMO, 0) if how == "scaled in" else toy.delete(DEMO)
    assert done_to_domains(toy) == []
    assert "waits for 1 claim" in deferred(plan_of(toy))["demo-0"]
    assert [one.id.name for one in plan_of(toy).pending] == ["demo-0"]
    del toy.objects[claim]

    assert done_to_domains(toy) == [("delete", "demo-0"), ("release", "demo-0")]


@pytest.mark.parametrize(("namespace", "kind"), [("elsewhere", "ComputeDomainChannelConfig"), ("default", "ComputeDomainDaemonConfig")])
def test_T16_claims_of_other_namespaces_and_of_the_driver_do_not_keep_the_domain(namespace: str, kind: str) -> None:
    toy = up(auto(1))
    opaque = {"driver": "compute-domain.nvidia.com", "parameters": {"kind": kind, "domainID": uids(toy)["demo-0"]}}
    spec = {"devices": {"config": [{"opaque": opaque}]}}
    metadata = {"name": "hostage", "namespace": namespace, "annotations": {"pod": "hostage"}}
    toy.put({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": metadata, "spec": spec})
    scale(toy, DEMO, 0)

    assert done_to_domains(toy) == [("delete", "demo-0"), ("release", "demo-0")]


def test_T16_a_domain_that_is_no_longer_requested_waits_for_its_pods_too() -> None:
    toy = up(auto(1))
    toy.write(DEMO, {"metadata": {"annotations": {AUTO: "disabled"}}})
    # An earlier release took the clique out of its domain; its pods are still in it.
    toy.write(PODCLIQUE.id("default", "demo-0-worker"), {"spec": {"podSpec": {**gpus(), "resourceClaims": None}}})
    toy.stuck = frozenset(id.name for id in toy.pods())
    assert done_to_domains(toy) == []
    toy.delete(toy.pods()[0])
    plan = plan_of(toy)

    assert deferred(plan)["demo-0"].startswith("replica 0 no longer requests it; waits for 1 pod")
    assert plan.wake_at is not None and plan.wake_at - toy.now == toy.configuration.drain_timeout


@pytest.mark.parametrize("user", ["a pod with a claim", "a pod that has no claim yet", "a claim of a foreign pod"])
def test_T16_a_shared_domain_whose_sets_were_deleted_by_force_is_kept_for_the_users_of_all_of_them(user: str) -> None:
    toy = up(named("rack"), named("rack", "other"))
    part_of = toy.domains()["rack"]["metadata"]["labels"]["app.kubernetes.io/part-of"]
    (pod,) = (id for id in toy.pods() if "worker" in id.name and not id.name.startswith(part_of))
    (claim,) = (id for id in toy.objects if id.kind == "ResourceClaim" and id.name.startswith(pod.name))
    kept = {"a pod with a claim": [pod, claim], "a pod that has no claim yet": [pod], "a claim of a foreign pod": [claim]}[user]
    toy.delete(toy.domain("rack"))
    toy.live()
    toy.objects = {id: body for id, body in toy.objects.items() if id in (toy.domain("rack"), *kept)}
    assert [plan.operations for plan in toy.plans()] == []
    for id in kept:
        del toy.objects[id]
    (plan,) = toy.plans()

    assert [(operation.verb, operation.id.name) for operation in plan.operations] == [(Verb.RELEASE, "rack")]


@pytest.mark.parametrize("unseen", ["Pod", "PodClique", "ResourceClaim"])
def test_T16_a_domain_is_kept_while_its_possible_users_could_not_be_listed(unseen: str) -> None:
    toy = up(auto(1))
    scale(toy, DEMO, 0)
    toy.driver = False
    while any(id.kind in ("Pod", "ResourceClaim") for id in toy.objects):
        pass_(toy)
        toy.live()
    around = [one for one in map(live, toy.objects.values()) if one.id.kind in REFERENCES and one.id.kind != unseen]
    sets = [one for one in map(live, toy.objects.values()) if one.id == DEMO]
    children = [one for one in around if one.id.kind == COMPUTE_DOMAIN.name]
    seen = world.assemble(BLUEPRINTS, sets, children, {unseen: Unlisted("403")}, references=around)
    (plan,) = plan_all(BLUEPRINTS, seen, toy.now, toy.configuration, Memo(), Limits()).plans

    assert [one for one in plan.operations if one.id.kind == COMPUTE_DOMAIN.name] == []
    assert deferred(plan)["demo-0"] == f"is deleted once {unseen} objects can be listed completely"


def test_T17_groups_inherit_the_annotation_only_if_it_is_enabled() -> None:
    def of_groups(value: str) -> list[Any]:
        manifest = podcliqueset("demo", gpu(), clique("cpu"), groups=(group("a", "worker"), group("b", "cpu")))
        toy = up(said(manifest, {AUTO: value}))
        groups = [body for id, body in sorted(toy.objects.items()) if id.kind == "PodCliqueScalingGroup"]
        return [(one["metadata"].get("annotations") or {}).get(AUTO) for one in groups]

    assert (of_groups("disabled"), of_groups("enabled")) == ([None, None], ["enabled", "enabled"])


def test_T18_no_two_sets_have_the_same_automatic_domain() -> None:
    toy = up(auto(2, name="a"), auto(2, name="a-0"), auto(1, name="a-0-1"))

    assert {name: body["metadata"]["labels"]["app.kubernetes.io/part-of"] for name, body in toy.domains().items()} == {
        "a-0": "a",
        "a-1": "a",
        "a-0-0": "a-0",
        "a-0-1": "a-0",
        "a-0-1-0": "a-0-1",
    }
