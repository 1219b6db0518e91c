"""C1–C12: what is easily believed about the driver, and is not so (docs/behaviour)."""

from typing import Any

import pytest

from engine.verb import Verb
from providers.fabrics.nvidia_words import COMPUTE_DOMAIN, DOMAIN_LABEL
from resources.base import kinds
from tests.builders import clique, group
from tests.laws.fabric_worlds import rest, scale
from tests.laws.rack import DRIVERS_FINALIZER, Rack
from tests.mnnvl.asking import (
    claimed,
    done_to_domains,
    held,
    owners,
    plan_of,
    root,
    uids,
    up,
)
from tests.mnnvl.sets import auto, computedomain, gpu, named

DEMO = root()


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


def test_C9_nor_while_the_template_is_being_deleted() -> None:
    toy = up(auto(1))
    template = kinds.RESOURCE_CLAIM_TEMPLATE.id("default", "demo-0")
    toy.write(template, {"metadata": {"finalizers": [DRIVERS_FINALIZER]}})
    toy.delete(template)
    clique_id = kinds.PODCLIQUE.id("default", "demo-0-worker")
    scale(toy, clique_id, 2)
    rest(toy)

    assert len(toy.pods()) == 1
    assert "ResourceClaimTemplate demo-0 of ComputeDomain demo-0 is being deleted" in held(plan_of(toy)).values()


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
