"""Domains are created before the pods that join them, and deleted after them."""

from datetime import timedelta
from typing import Any

from msgspec.structs import replace

from engine.ids import ResourceId
from engine.plan import Plan
from engine.verb import Verb
from providers.fabrics.nvidia.names import AUTO
from resources.base import kinds
from tests.builders import group
from tests.laws.rack import DRIVERS_FINALIZER, Rack
from tests.mnnvl.sets import OURS, auto, computedomain, gpu, named

Body = dict[str, Any]


def rack(*manifests: Body, settled: bool = True) -> Rack:
    """A rack with these sets, settled unless told otherwise."""
    made = Rack()
    for manifest in manifests:
        made.put(manifest)
    if settled:
        made.settle()
    return made


def calls(plan: Plan) -> list[tuple[str, str]]:
    """Verb and name of each operation, statuses left out."""
    return [(str(operation.verb), operation.id.name) for operation in plan.operations if operation.verb is not Verb.STATUS]


def root(name: str = "demo") -> ResourceId:
    """The set of that name."""
    return kinds.PODCLIQUESET.id("default", name)


def pods(toy: Rack) -> list[Body]:
    """The pods, by name."""
    return [toy.objects[id] for id in toy.pods()]


def deferred(plan: Plan) -> dict[str, str]:
    """Name -> why it is deferred."""
    return {wait.id.name: wait.why for wait in plan.deferred}


def step(toy: Rack, times: int = 1) -> None:
    """One pass after another."""
    for _ in range(times):
        for plan in toy.plans():
            toy.apply(plan.operations)
        toy.live()
        toy.now += timedelta(seconds=1)


def scale(toy: Rack, replicas: int, name: str = "demo") -> None:
    """A user changes the number of replicas."""
    toy.write(
        root(name), {"spec": {"replicas": replicas}, "metadata": {"generation": toy.objects[root(name)]["metadata"]["generation"] + 1}}
    )


def test_each_replica_has_a_domain_that_is_created_before_its_pods() -> None:
    toy = rack(auto(2), settled=False)
    toy.driver = False
    step(toy)
    (plan,) = toy.plans()

    assert sorted(toy.domains()) == ["demo-0", "demo-1"]
    assert pods(toy) == []
    assert [why for why in deferred(plan).values()] == [
        "the driver has not created ResourceClaimTemplate demo-0 of ComputeDomain demo-0 yet",
        "the driver has not created ResourceClaimTemplate demo-1 of ComputeDomain demo-1 yet",
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


def test_scaling_creates_and_deletes_exactly_the_domains_of_the_replicas() -> None:
    toy = rack(auto(2))
    uids = {name: body["metadata"]["uid"] for name, body in toy.domains().items()}
    names = []
    for count in (4, 1, 0, 2):
        scale(toy, count)
        toy.settle()
        names.append(sorted(toy.domains()))
        if count:
            assert toy.domains()["demo-0"]["metadata"]["uid"] == uids["demo-0"] or names[-2:] == [[], ["demo-0", "demo-1"]]

    assert names == [["demo-0", "demo-1", "demo-2", "demo-3"], ["demo-0"], [], ["demo-0", "demo-1"]]
    assert len(pods(toy)) == 2


def test_a_domain_is_deleted_after_its_pods_and_our_finalizer_is_released_last() -> None:
    toy = rack(auto(1))
    scale(toy, 0)
    (plan,) = toy.plans()
    (pod,) = pods(toy)
    assert calls(plan) == [("delete", pod["metadata"]["name"])]
    assert deferred(plan)["demo-0"].startswith("replica 0 is removed: demo is scaled to 0; waits for")

    step(toy)
    toy.driver = False
    step(toy, 3)
    domain = toy.domains()["demo-0"]
    assert domain["metadata"]["deletionTimestamp"] and domain["metadata"]["finalizers"] == [OURS, DRIVERS_FINALIZER]
    (plan,) = toy.plans()
    assert calls(plan) == []
    assert deferred(plan)["demo-0"].endswith(f"waits for the removal of finalizer {DRIVERS_FINALIZER}")

    toy.driver = True
    toy.live()
    (plan,) = toy.plans()
    assert calls(plan) == [("release", "demo-0")]
    toy.settle()
    assert toy.domains() == {}


def test_a_domain_deleted_by_a_user_is_kept_while_pods_use_it_and_is_created_again_afterwards() -> None:
    toy = rack(auto(1))
    uid = toy.domains()["demo-0"]["metadata"]["uid"]
    toy.delete(toy.domain("demo-0"))
    step(toy, 5)

    assert toy.domains()["demo-0"]["metadata"]["uid"] == uid
    assert len(pods(toy)) == 1
    (plan,) = toy.plans()
    assert [alarm.reason for alarm in plan.alarms] == ["ComputeDomainTerminating"]
    assert deferred(plan)["demo-0"].startswith("is being deleted; waits for 1 pod and 1 claim")

    toy.delete(root())
    toy.settle()
    assert toy.objects == {}


def test_a_name_conflict_blocks_one_replica_and_no_other() -> None:
    foreign = {
        "apiVersion": "resource.nvidia.com/v1beta1",
        "kind": "ComputeDomain",
        "metadata": {"name": "demo-1", "namespace": "default"},
        "spec": {"numNodes": 2, "channel": {"resourceClaimTemplate": {"name": "theirs"}}},
    }
    toy = Rack()
    before = toy.put(foreign)
    toy.put(auto(2))
    step(toy, 8)
    (plan,) = toy.plans()

    why = "ComputeDomain default/demo-1 already exists but is not controlled by PodCliqueSet default/demo"
    assert deferred(plan)["demo-1"] == why
    assert [(alarm.reason, alarm.text, alarm.blocking) for alarm in plan.alarms] == [
        ("ComputeDomainFailed", f"Failed to create ComputeDomain for replica 1: {why}", True)
    ]
    assert len(pods(toy)) == 1
    assert toy.domains()["demo-1"]["spec"] == before["spec"]
    assert OURS not in toy.domains()["demo-1"]["metadata"].get("finalizers", [])


def test_a_named_domain_is_shared_by_the_cliques_that_have_its_name() -> None:
    toy = rack(named("rack-a", replicas=2), named("rack-a", "other"))

    (domain,) = toy.domains().values()
    assert [owner["name"] for owner in domain["metadata"]["ownerReferences"]] == ["demo", "other"]
    assert not any("controller" in owner for owner in domain["metadata"]["ownerReferences"])
    assert domain["metadata"]["labels"]["app.kubernetes.io/component"] == "pcs-named-computedomain"
    claims = {pod["metadata"]["labels"]["grove.io/podclique"]: pod["spec"].get("resourceClaims") for pod in pods(toy)}
    assert claims["demo-0-frontend"] is None
    assert claims["demo-1-worker"] == claims["other-0-worker"] == [{"name": "mnnvl-claim", "resourceClaimTemplateName": "rack-a"}]


def test_the_last_set_that_shares_a_domain_deletes_it() -> None:
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


def test_a_domain_of_a_user_is_used_and_never_changed() -> None:
    toy = Rack()
    manifest = {
        "apiVersion": "resource.nvidia.com/v1beta1",
        "kind": "ComputeDomain",
        "metadata": {"name": "rack-a", "namespace": "default"},
        "spec": {"numNodes": 0, "channel": {"resourceClaimTemplate": {"name": "my-channel"}}},
    }
    toy.put(manifest)
    toy.live()
    before = toy.domains()["rack-a"]
    toy.put(named("rack-a"))
    toy.settle()

    assert toy.domains()["rack-a"] == before
    assert {claim["resourceClaimTemplateName"] for pod in pods(toy) for claim in pod["spec"].get("resourceClaims") or ()} == {"my-channel"}
    toy.delete(root())
    toy.settle()
    assert toy.domains()["rack-a"] == before


def test_a_named_domain_with_the_index_is_one_for_each_replica() -> None:
    toy = rack(named("rack-$(GROVE_PCS_INDEX)", replicas=3))
    assert sorted(toy.domains()) == ["rack-0", "rack-1", "rack-2"]

    scale(toy, 1)
    toy.settle()
    assert sorted(toy.domains()) == ["rack-0"]


def test_the_cliques_of_scaling_groups_join_the_domain_of_their_replica() -> None:
    toy = rack(auto(2, gpu("leader"), gpu("worker", 2), groups=(group("pool", "leader", "worker", replicas=2),)))

    assert {
        (pod["metadata"]["labels"]["grove.io/podcliqueset-replica-index"], pod["spec"]["resourceClaims"][0]["resourceClaimTemplateName"])
        for pod in pods(toy)
    } == {
        ("0", "demo-0"),
        ("1", "demo-1"),
    }
    groups = [body for id, body in toy.objects.items() if id.kind == "PodCliqueScalingGroup"]
    assert {body["metadata"]["annotations"][AUTO] for body in groups} == {"enabled"}


def test_a_pod_that_does_not_terminate_keeps_its_domain_only_until_the_drain_times_out() -> None:
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

    assert calls(plan) == [("delete", "demo-0")]
    assert [alarm.reason for alarm in plan.alarms] == ["ComputeDomainDrainTimedOut"]


def test_a_domain_of_a_user_that_the_user_deletes_keeps_its_pods_and_is_then_created_by_the_engine() -> None:
    toy = Rack()
    manifest = {
        "apiVersion": "resource.nvidia.com/v1beta1",
        "kind": "ComputeDomain",
        "metadata": {"name": "rack-a", "namespace": "default", "finalizers": ["example.com/mine"]},
        "spec": {"numNodes": 0, "channel": {"resourceClaimTemplate": {"name": "my-channel"}}},
    }
    toy.put(manifest)
    toy.put(named("rack-a"))
    toy.settle()
    before = toy.pods()
    toy.delete(toy.domain("rack-a"))
    step(toy, 2)
    (plan,) = toy.plans()

    (alarm,) = plan.alarms
    assert (alarm.reason, "; new pods wait until it is gone; delete it: kubectl" in alarm.text) == ("ComputeDomainTerminating", True)
    assert toy.pods() == before

    toy.delete(next(id for id in before if "worker" in id.name))
    toy.live()
    (plan,) = toy.plans()
    assert list(deferred(plan).values()) == ["ComputeDomain rack-a is being deleted"]

    toy.write(toy.domain("rack-a"), {"metadata": {"finalizers": []}})
    toy.settle()
    assert OURS in toy.domains()["rack-a"]["metadata"]["finalizers"]
    assert {claim["resourceClaimTemplateName"] for pod in pods(toy) for claim in pod["spec"].get("resourceClaims") or ()} == {"rack-a"}


def blocked(plan: Plan) -> dict[str, bool]:
    """Kind and clique or domain -> whether somebody else has to act before the object can be created."""
    return {f"{wait.id.kind} {wait.id.name[: len('demo-0-worker')]}": wait.blocked for wait in plan.deferred}


def test_a_domain_and_its_pods_are_blocked_where_the_kind_is_not_served() -> None:
    toy = Rack()
    toy.unserved = frozenset({"ComputeDomain"})
    toy.put(auto(1))
    step(toy, 2)
    (plan,) = toy.plans()

    assert blocked(plan) == {"ComputeDomain demo-0": True, "Pod demo-0-worker": True}


def test_a_domain_and_its_pods_are_blocked_where_the_kind_could_not_be_listed() -> None:
    toy = rack(auto(1), settled=False)
    world = toy.world()
    (observed,) = world.roots
    (plan,) = toy.plans_of(replace(world, roots=(replace(observed, incomplete=frozenset({"ComputeDomain"})),)))

    assert blocked(plan)["ComputeDomain demo-0"] and blocked(plan)["Pod demo-0-worker"]
    assert deferred(plan)["demo-0"] == "ComputeDomain objects could not be listed completely"


def test_a_domain_and_its_pods_are_blocked_where_the_name_belongs_to_another_owner() -> None:
    toy = Rack()
    toy.put(computedomain("demo-0"))
    toy.put(auto(1))
    step(toy, 2)
    (plan,) = toy.plans()

    assert blocked(plan) == {"ComputeDomain demo-0": True, "Pod demo-0-worker": True}


def test_pods_that_only_wait_for_the_driver_are_not_blocked() -> None:
    toy = rack(auto(1), settled=False)
    toy.driver = False
    step(toy, 2)
    (plan,) = toy.plans()

    assert blocked(plan) == {"Pod demo-0-worker": False}


def test_a_drain_that_times_out_is_no_deletion_of_a_domain_that_another_set_owns_too() -> None:
    toy = Rack()
    for name in ("demo", "other"):
        toy.put(named("rack", name))
    toy.settle()
    toy.stuck = frozenset(id.name for id in toy.pods() if id.name.startswith("demo-"))
    toy.write(kinds.PODCLIQUESET.id("default", "demo"), {"spec": {"replicas": 0}, "metadata": {"generation": 2}})
    step(toy, 3)
    toy.now += timedelta(hours=1)
    plans = toy.plans()

    assert [
        (operation.verb, operation.id.name) for plan in plans for operation in plan.operations if operation.id.kind == "ComputeDomain"
    ] == [(Verb.PATCH, "rack")]
    assert [alarm.reason for plan in plans for alarm in plan.alarms] == []
