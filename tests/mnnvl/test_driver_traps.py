"""C1–C12: wrong assumptions about the driver (docs/behaviour)."""

from typing import Any

import pytest

from engine.operation import body_of
from engine.verb import Verb
from providers.fabrics.nvidia.names import COMPUTE_DOMAIN, DOMAIN_LABEL
from resources.base import kinds
from tests.builders import clique, group
from tests.laws.fabric_worlds import scale, settle
from tests.laws.rack import DRIVERS_FINALIZER, Rack
from tests.mnnvl.asking import (
    claimed,
    deferred,
    done_to_domains,
    owners,
    plan_of,
    root,
    uids,
    up,
)
from tests.mnnvl.sets import auto, computedomain, gpu, named

DEMO = root()


def test_C1_our_finalizer_keeps_the_object_and_an_event_says_that_the_domain_terminates() -> None:
    toy = up(auto(1))
    toy.delete(toy.domain("demo-0"))
    settle(toy)
    (alarm,) = plan_of(toy).alarms

    assert "demo-0" in toy.domains() and not any(id.kind == "ResourceClaimTemplate" for id in toy.objects)
    assert alarm.reason == "ComputeDomainTerminating"


def test_C2_pods_are_deleted_first_and_the_wait_for_them_is_bounded() -> None:
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


def test_C3_pods_are_created_when_the_template_belongs_to_the_domain_whatever_its_status() -> None:
    toy = Rack()
    toy.driver = False
    toy.put(auto(1))
    settle(toy)
    toy.write(toy.domain("demo-0"), {"status": {"status": "Ready"}})
    settle(toy)
    assert toy.pods() == []
    toy.driver = True
    settle(toy)

    assert len(toy.pods()) == 1


def test_C4_foreign_finalizers_are_never_removed_and_ours_is_never_added_later() -> None:
    toy = up(auto(1))
    toy.write(toy.domain("demo-0"), {"metadata": {"finalizers": [DRIVERS_FINALIZER]}})
    toy.delete(toy.domain("demo-0"))
    written = [body_of(one) for plan in toy.plans() for one in plan.operations if one.id.kind == COMPUTE_DOMAIN.name]

    assert (written, toy.domains()["demo-0"]["metadata"]["finalizers"]) == ([], [DRIVERS_FINALIZER])


def test_C5_server_defaults_are_no_drift_and_a_replaced_domain_is_reported() -> None:
    toy = up(auto(1))
    toy.write(toy.domain("demo-0"), {"spec": {"numNodes": 4, "channel": {"allocationMode": "All"}}})
    assert [plan.operations for plan in toy.plans()] == [()]
    uid = uids(toy)["demo-0"]
    del toy.objects[toy.domain("demo-0")]
    toy.live()
    settle(toy)

    assert uids(toy)["demo-0"] != uid
    (alarm,) = plan_of(toy).alarms
    assert (alarm.reason, "demo-0 was created again" in alarm.text) == ("ComputeDomainReplaced", True)
    for id in toy.pods():
        toy.delete(id)
    settle(toy)
    assert plan_of(toy).alarms == ()


@pytest.mark.parametrize("labels", [{}, {DOMAIN_LABEL: "somebody"}])
def test_C6_pods_wait_while_the_template_of_that_name_does_not_belong_to_the_domain(labels: dict[str, str]) -> None:
    toy = Rack()
    metadata = {"name": "demo-0", "namespace": "default", "labels": {**labels, "keep": "me"}}
    foreign = toy.put({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": metadata, "spec": {"spec": {}}})
    toy.driver = False
    toy.put(auto(1))
    settle(toy)
    (why,) = [why for name, why in deferred(plan_of(toy)).items() if "worker" in name]

    assert why.startswith("ResourceClaimTemplate demo-0 cannot be used for ComputeDomain demo-0: it ")
    assert (toy.pods(), toy.objects[kinds.RESOURCE_CLAIM_TEMPLATE.id("default", "demo-0")]) == ([], foreign)


def test_C8_the_number_of_nodes_is_always_set() -> None:
    toy = Rack()
    toy.put(auto(1))
    toy.put(named("rack", "other"))
    made = [body_of(one)["spec"] for plan in toy.plans() for one in plan.operations if one.id.kind == COMPUTE_DOMAIN.name]

    assert [spec["numNodes"] for spec in made] == [0, 0]


def test_C9_no_pod_is_created_before_its_template_not_even_a_gated_one() -> None:
    toy = Rack()
    toy.driver = False
    toy.put(auto(1, gpu(), groups=(group("pool", "worker", replicas=3, min_available=1),)))
    settle(toy)
    assert toy.pods() == []
    toy.driver = True
    settle(toy)

    assert len(toy.pods()) == 3


@pytest.mark.parametrize(("finalizer", "pods"), [(DRIVERS_FINALIZER, 2), ("foregroundDeletion", 1)])
def test_C9_pods_are_created_from_a_template_that_is_being_deleted_only_while_the_driver_keeps_it(finalizer: str, pods: int) -> None:
    toy = up(auto(1))
    template = kinds.RESOURCE_CLAIM_TEMPLATE.id("default", "demo-0")
    toy.write(template, {"metadata": {"finalizers": [finalizer]}})
    toy.delete(template)
    clique_id = kinds.PODCLIQUE.id("default", "demo-0-worker")
    scale(toy, clique_id, 2)
    settle(toy)

    waits = "ResourceClaimTemplate demo-0 of ComputeDomain demo-0 is being deleted" in deferred(plan_of(toy)).values()
    assert (len(toy.pods()), waits) == (pods, pods == 1)


def test_C10_our_finalizer_is_released_in_a_deleted_namespace_although_the_set_is_gone() -> None:
    toy = up(auto(2), named("rack", "other"))
    for id in [id for id in toy.objects if id.kind == "PodCliqueSet"]:
        del toy.objects[id]
    for id in [id for id in toy.objects if id.kind not in ("ResourceClaim", "ResourceClaimTemplate")]:
        toy.delete(id) if id.kind in ("ComputeDomain", "PodClique", "Pod") else toy.objects.pop(id)
    settle(toy)

    assert [id for id in toy.objects if id.kind not in ("ResourceClaim", "ResourceClaimTemplate")] == []


def test_C11_a_domain_is_created_with_a_spec_and_without_labels_that_are_too_long() -> None:
    long = "r" * 200
    toy = Rack()
    toy.put(named(long))
    (made,) = [body_of(one) for plan in toy.plans() for one in plan.operations if one.id.kind == COMPUTE_DOMAIN.name]

    assert made["spec"]["channel"]["resourceClaimTemplate"]["name"] == long
    assert max(map(len, made["metadata"]["labels"].values())) <= 63


def test_C12_where_claims_are_only_served_in_older_versions_pods_of_domains_are_deferred_with_the_reason() -> None:
    toy = Rack()
    toy.unserved = frozenset({"ResourceClaim", "ResourceClaimTemplate"})
    toy.driver = False
    toy.put(auto(1, gpu(), clique("frontend")))
    settle(toy)

    why = "ResourceClaimTemplate demo-0 of ComputeDomain demo-0 is not served by the cluster"
    assert (why in deferred(plan_of(toy)).values(), claimed(toy)) == (True, {"demo-0-frontend": []})


SENSELESS: list[Any] = [None, {}, {"channel": None}, {"channel": []}, {"channel": {"resourceClaimTemplate": 5}}]


@pytest.mark.parametrize("spec", SENSELESS)
def test_C11_an_incomplete_domain_of_a_user_is_not_changed_and_pods_wait_for_it(spec: Any) -> None:
    toy = Rack()
    toy.driver = False  # It would not survive that.
    toy.put({**computedomain("rack"), "spec": spec})
    toy.put(named("rack"))
    settle(toy)

    why = "the driver has not created ResourceClaimTemplate rack of ComputeDomain rack yet"
    assert (why in deferred(plan_of(toy)).values(), toy.domains()["rack"]["spec"]) == (True, spec)


def test_our_finalizer_on_a_shared_domain_is_released_when_its_owners_are_gone() -> None:
    toy = up(named("rack"), named("rack", "other"))
    assert owners(toy, "rack") == ["demo", "other"]
    for name in ("demo", "other"):
        toy.delete(root(name))
    settle(toy)

    assert toy.objects == {}
