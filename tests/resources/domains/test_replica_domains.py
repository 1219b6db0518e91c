"""Domains come before the pods that are in them, and go after them."""

from datetime import timedelta
from typing import Any

from engine.ids import ResourceId
from engine.plan import Plan
from engine.verb import Verb
from providers.fabrics.nvidia_words import AUTO
from resources.base import kinds
from tests.builders import group
from tests.laws.rack import DRIVERS_FINALIZER, Rack
from tests.mnnvl.sets import OURS, auto, gpu, named

Body = dict[str, Any]


def rack(*manifests: Body, settled: bool = True) -> Rack:
    """A rack with these sets, up."""
    made = Rack()
    for manifest in manifests:
        made.put(manifest)
    if settled:
        made.settle()
    return made


def told(plan: Plan) -> list[tuple[str, str]]:
    """What is to be done, by verb and name, states apart."""
    return [(str(operation.verb), operation.id.name) for operation in plan.operations if operation.verb is not Verb.STATUS]


def root(name: str = "demo") -> ResourceId:
    """The set of that name."""
    return kinds.PODCLIQUESET.id("default", name)


def pods(toy: Rack) -> list[Body]:
    """The pods, by name."""
    return [toy.objects[id] for id in toy.pods()]


def held(plan: Plan) -> dict[str, str]:
    """What is held, and why."""
    return {one.id.name: one.why for one in plan.deferred}


def step(toy: Rack, times: int = 1) -> None:
    """Passes, one after the other."""
    for _ in range(times):
        for plan in toy.plans():
            toy.apply(plan.operations)
        toy.live()
        toy.now += timedelta(seconds=1)


def scale(toy: Rack, replicas: int, name: str = "demo") -> None:
    """Somebody asks for another number of replicas."""
    toy.write(
        root(name), {"spec": {"replicas": replicas}, "metadata": {"generation": toy.objects[root(name)]["metadata"]["generation"] + 1}}
    )


def test_each_replica_has_a_domain_of_its_own_which_is_made_before_its_pods() -> None:
    toy = rack(auto(2), settled=False)
    toy.driver = False
    step(toy)
    (plan,) = toy.plans()

    assert sorted(toy.domains()) == ["demo-0", "demo-1"]
    assert pods(toy) == []
    assert [why for why in held(plan).values()] == [
        "ResourceClaimTemplate demo-0 of ComputeDomain demo-0 is not made yet by its driver",
        "ResourceClaimTemplate demo-1 of ComputeDomain demo-1 is not made yet by its driver",
    ]

    toy.driver = True
    toy.settle()
    assert len(pods(toy)) == 2
    for pod in pods(toy):
        (claim,) = pod["spec"]["resourceClaims"]
        assert claim["resourceClaimTemplateName"] in ("demo-0", "demo-1")
        assert pod["spec"]["containers"][0]["resources"]["claims"] == [{"name": "mnnvl-claim"}]


def test_a_domain_is_what_the_driver_expects_and_is_owned_by_the_set() -> None:
    toy = rack(auto(1))
    domain = toy.domains()["demo-0"]

    assert domain["spec"] == {"numNodes": 0, "channel": {"resourceClaimTemplate": {"name": "demo-0"}}}
    assert domain["metadata"]["labels"] == {
        "app.kubernetes.io/managed-by": "grove-operator",
        "app.kubernetes.io/part-of": "demo",
        "app.kubernetes.io/name": "demo-0",
        "app.kubernetes.io/component": "pcs-computedomain",
        "grove.io/podcliqueset-replica-index": "0",
    }
    assert OURS in domain["metadata"]["finalizers"]
    (owner,) = domain["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["controller"], owner["blockOwnerDeletion"]) == ("PodCliqueSet", "demo", True, True)


def test_scaling_adds_and_takes_away_exactly_the_domains_of_the_replicas() -> None:
    toy = rack(auto(2))
    uids = {name: body["metadata"]["uid"] for name, body in toy.domains().items()}
    seen = []
    for count in (4, 1, 0, 2):
        scale(toy, count)
        toy.settle()
        seen.append(sorted(toy.domains()))
        if count:
            assert toy.domains()["demo-0"]["metadata"]["uid"] == uids["demo-0"] or seen[-2:] == [[], ["demo-0", "demo-1"]]

    assert seen == [["demo-0", "demo-1", "demo-2", "demo-3"], ["demo-0"], [], ["demo-0", "demo-1"]]
    assert len(pods(toy)) == 2


def test_a_domain_goes_only_after_its_pods_and_our_finalizer_last() -> None:
    toy = rack(auto(1))
    scale(toy, 0)
    (plan,) = toy.plans()
    (pod,) = pods(toy)
    assert told(plan) == [("delete", pod["metadata"]["name"])]
    assert held(plan)["demo-0"].startswith("replica 0 goes: demo is scaled to 0; waits for")

    step(toy)
    toy.driver = False
    step(toy, 3)
    domain = toy.domains()["demo-0"]
    assert domain["metadata"]["deletionTimestamp"] and domain["metadata"]["finalizers"] == [OURS, DRIVERS_FINALIZER]
    (plan,) = toy.plans()
    assert told(plan) == []
    assert held(plan)["demo-0"].endswith(f"waits for {DRIVERS_FINALIZER} to let go of it")

    toy.driver = True
    toy.live()
    (plan,) = toy.plans()
    assert told(plan) == [("release", "demo-0")]
    toy.settle()
    assert toy.domains() == {}


def test_a_domain_deleted_by_hand_stays_as_long_as_pods_use_it_and_is_made_again_when_they_are_gone() -> None:
    toy = rack(auto(1))
    uid = toy.domains()["demo-0"]["metadata"]["uid"]
    toy.delete(toy.domain("demo-0"))
    step(toy, 5)

    assert toy.domains()["demo-0"]["metadata"]["uid"] == uid
    assert len(pods(toy)) == 1
    (plan,) = toy.plans()
    assert [alarm.reason for alarm in plan.alarms] == ["ComputeDomainTerminating"]
    assert held(plan)["demo-0"].startswith("is being deleted; waits for 1 pod and 1 claim")

    toy.delete(root())
    toy.settle()
    assert toy.objects == {}


def test_a_replica_whose_domain_s_name_is_taken_is_held_and_the_others_go_on() -> None:
    taken = {
        "apiVersion": "resource.nvidia.com/v1beta1",
        "kind": "ComputeDomain",
        "metadata": {"name": "demo-1", "namespace": "default"},
        "spec": {"numNodes": 2, "channel": {"resourceClaimTemplate": {"name": "theirs"}}},
    }
    toy = Rack()
    theirs = toy.put(taken)
    toy.put(auto(2))
    step(toy, 8)
    (plan,) = toy.plans()

    why = "ComputeDomain default/demo-1 already exists but is not controlled by PodCliqueSet default/demo"
    assert held(plan)["demo-1"] == why
    assert [(alarm.reason, alarm.text, alarm.blocking) for alarm in plan.alarms] == [
        ("ComputeDomainFailed", f"Failed to create ComputeDomain for replica 1: {why}", True)
    ]
    assert len(pods(toy)) == 1
    assert toy.domains()["demo-1"]["spec"] == theirs["spec"]
    assert OURS not in toy.domains()["demo-1"]["metadata"].get("finalizers", [])


def test_a_named_domain_is_shared_and_only_by_the_cliques_that_bear_its_name() -> None:
    toy = rack(named("rack-a", replicas=2), named("rack-a", "other"))

    (domain,) = toy.domains().values()
    assert [owner["name"] for owner in domain["metadata"]["ownerReferences"]] == ["demo", "other"]
    assert not any("controller" in owner for owner in domain["metadata"]["ownerReferences"])
    assert domain["metadata"]["labels"]["app.kubernetes.io/component"] == "pcs-named-computedomain"
    claims = {pod["metadata"]["labels"]["grove.io/podclique"]: pod["spec"].get("resourceClaims") for pod in pods(toy)}
    assert claims["demo-0-frontend"] is None
    assert claims["demo-1-worker"] == claims["other-0-worker"] == [{"name": "mnnvl-claim", "resourceClaimTemplateName": "rack-a"}]


def test_the_last_of_those_who_share_a_domain_takes_it_away() -> None:
    toy = rack(named("rack-a"), named("rack-a", "other"))
    toy.delete(root())
    toy.settle()

    (domain,) = toy.domains().values()
    assert [owner["name"] for owner in domain["metadata"]["ownerReferences"]] == ["other"]
    assert domain["metadata"]["labels"]["app.kubernetes.io/part-of"] == "other"
    assert len(pods(toy)) == 2

    scale(toy, 0, "other")
    toy.settle()
    assert toy.domains() == {}
    scale(toy, 1, "other")
    toy.settle()
    assert list(toy.domains()) == ["rack-a"]


def test_a_user_s_domain_is_used_and_never_touched() -> None:
    toy = Rack()
    mine = {
        "apiVersion": "resource.nvidia.com/v1beta1",
        "kind": "ComputeDomain",
        "metadata": {"name": "rack-a", "namespace": "default"},
        "spec": {"numNodes": 0, "channel": {"resourceClaimTemplate": {"name": "my-channel"}}},
    }
    toy.put(mine)
    toy.live()
    before = toy.domains()["rack-a"]
    toy.put(named("rack-a"))
    toy.settle()

    assert toy.domains()["rack-a"] == before
    assert {claim["resourceClaimTemplateName"] for pod in pods(toy) for claim in pod["spec"].get("resourceClaims") or ()} == {"my-channel"}
    toy.delete(root())
    toy.settle()
    assert toy.domains()["rack-a"] == before


def test_a_named_domain_that_tells_the_replica_is_one_for_each() -> None:
    toy = rack(named("rack-$(GROVE_PCS_INDEX)", replicas=3))
    assert sorted(toy.domains()) == ["rack-0", "rack-1", "rack-2"]

    scale(toy, 1)
    toy.settle()
    assert sorted(toy.domains()) == ["rack-0"]


def test_members_of_scaling_groups_are_in_the_domain_of_their_replica() -> None:
    toy = rack(auto(2, gpu("leader"), gpu("worker", 2), groups=(group("pool", "leader", "worker", replicas=2),)))

    assert {
        (pod["metadata"]["labels"]["grove.io/podcliqueset-replica-index"], pod["spec"]["resourceClaims"][0]["resourceClaimTemplateName"])
        for pod in pods(toy)
    } == {
        ("0", "demo-0"),
        ("1", "demo-1"),
    }
    groups = [body for id, body in toy.objects.items() if id.kind == "PodCliqueScalingGroup"]
    assert {one["metadata"]["annotations"][AUTO] for one in groups} == {"enabled"}


def test_a_pod_that_will_not_go_does_not_keep_its_domain_for_ever() -> None:
    toy = rack(auto(1))
    (pod,) = pods(toy)
    name = pod["metadata"]["name"]
    toy.stuck = frozenset({name})
    scale(toy, 0)
    step(toy, 3)
    (plan,) = toy.plans()
    assert plan.wake_at is not None
    toy.now = plan.wake_at
    (plan,) = toy.plans()

    assert told(plan) == [("delete", "demo-0")]
    assert [alarm.reason for alarm in plan.alarms] == ["ComputeDomainDrainTimedOut"]


def test_a_user_s_domain_that_its_user_deletes_keeps_its_pods_and_is_made_by_us_once_it_is_gone() -> None:
    toy = Rack()
    mine = {
        "apiVersion": "resource.nvidia.com/v1beta1",
        "kind": "ComputeDomain",
        "metadata": {"name": "rack-a", "namespace": "default", "finalizers": ["example.com/mine"]},
        "spec": {"numNodes": 0, "channel": {"resourceClaimTemplate": {"name": "my-channel"}}},
    }
    toy.put(mine)
    toy.put(named("rack-a"))
    toy.settle()
    before = toy.pods()
    toy.delete(toy.domain("rack-a"))
    step(toy, 2)
    (plan,) = toy.plans()

    assert [(alarm.reason, alarm.text) for alarm in plan.alarms] == [
        ("ComputeDomainTerminating", "ComputeDomain rack-a is being deleted; new pods wait until it is gone")
    ]
    assert toy.pods() == before

    toy.delete(next(id for id in before if "worker" in id.name))
    toy.live()
    (plan,) = toy.plans()
    assert list(held(plan).values()) == ["ComputeDomain rack-a is being deleted"]

    toy.write(toy.domain("rack-a"), {"metadata": {"finalizers": []}})
    toy.settle()
    assert OURS in toy.domains()["rack-a"]["metadata"]["finalizers"]
    assert {claim["resourceClaimTemplateName"] for pod in pods(toy) for claim in pod["spec"].get("resourceClaims") or ()} == {"rack-a"}
