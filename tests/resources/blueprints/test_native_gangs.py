"""Gangs of kube-scheduler in their flat form: one PodGroup for each PodGang, whose members are the pods below the minimum."""

from typing import Any

import pytest
from msgspec.structs import replace

from engine.operation import body_of
from engine.resource import Body
from engine.verb import Verb
from providers.schedulers.kube import KubeScheduler, kube_scheduler
from providers.schedulers.pod_groups import KubePodGroups
from resources.base import kinds
from resources.ports.configuration import Configuration, GangMode
from resources.ports.scheduler import GangFacts, GangPlan, SetMetadata
from resources.preview.shown import gang_notices
from tests.builders import clique, group, podcliqueset
from tests.laws.native import NATIVE, NOT_LISTED, Native, group_of, node_of
from tests.laws.toy import CONFIGURATION

GATES = ("spec", "schedulingGates")


def web(*, replicas: int = 2, least: int = 2, **template: Any) -> dict[str, Any]:
    """A set with a clique of pods beyond its minimum and a scaling group whose second replica has a gang of its own."""
    groups = (group("g", "l", "w", replicas=2),)
    return podcliqueset("web", clique("a", replicas, minAvailable=least), clique("l"), clique("w", 2), groups=groups, **template)


def alone(replicas: int = 4, least: int = 2) -> dict[str, Any]:
    """A set with one clique."""
    return podcliqueset("web", clique("a", replicas, minAvailable=least))


def cluster_with(manifest: dict[str, Any], room: int = 1_000) -> Native:
    """A cluster with that set, and with room for so many pods."""
    cluster = Native()
    cluster.room = room
    cluster.put(manifest)
    return cluster


def gated(cluster: Native) -> list[str]:
    """The pods with a gate."""
    return [name for name, body in cluster.of("Pod").items() if body["spec"].get("schedulingGates")]


def test_a_gang_is_one_pod_group_of_its_minimum_created_after_the_podgang_and_before_the_pods() -> None:
    cluster = cluster_with(web(replicas=3))
    created = [operation.id.kind for operation in cluster.plan().operations if operation.verb is Verb.CREATE]
    order = list(dict.fromkeys(created))
    assert order.index("PodGang") < order.index("PodGroup") < order.index("Pod")
    cluster.settle()

    assert cluster.minimums() == {"web-0": 5, "web-0-g-0": 3}
    assert cluster.members() == {"web-0": 5, "web-0-g-0": 3, "": 1}
    assert {gang["metadata"]["annotations"]["engine.grove.io/gang-form"] for gang in cluster.of("PodGang").values()} == {"flat"}
    owners = [body["metadata"]["ownerReferences"] for body in cluster.of("PodGroup").values()]
    assert [(owner["kind"], owner["name"], owner["controller"]) for (owner,) in owners] == [
        ("PodGang", "web-0", True),
        ("PodGang", "web-0-g-0", True),
    ]
    assert cluster.plan().operations == () and gated(cluster) == []


class Counted(KubePodGroups):
    """The PodGroups of gangs, and how often each gang was expressed."""

    def __init__(self) -> None:
        super().__init__(trees=False)
        self.planned: list[str] = []

    def plan_for(self, podgang: Body, gang: GangFacts, metadata: SetMetadata) -> GangPlan:
        self.planned.append(gang.id.name)
        return super().plan_for(podgang, gang, metadata)


def test_a_pass_expresses_each_gang_once() -> None:
    gangs, cluster = Counted(), Native(trees=True)
    cluster.put(web())
    cluster.configuration = Configuration({"default-scheduler": KubeScheduler(gangs, GangMode.AUTO)}, "default-scheduler")

    assert cluster.plan().operations
    assert sorted(gangs.planned) == ["web-0", "web-0-g-0"]


def test_pods_beyond_the_minimum_stay_gated_until_the_minimum_has_nodes() -> None:
    cluster = cluster_with(alone(), room=1)
    for _ in range(4):
        cluster.make_pass()
    assert len(gated(cluster)) == 2 and cluster.bound() == {}

    cluster.room = 3
    for _ in range(3):
        cluster.make_pass()
    assert gated(cluster) == [] and cluster.bound() == {"web-0-a": 3}
    members = [name for name, body in cluster.of("Pod").items() if group_of(body) == "web-0"]
    assert members == sorted(cluster.pods_of("web-0-a")[:2]) and all(node_of(cluster.of("Pod")[name]) for name in members)


def test_new_pods_of_a_gang_that_runs_have_no_gate() -> None:
    cluster = cluster_with(alone())
    cluster.settle()
    cluster.write(kinds.PODCLIQUE.id("default", "web-0-a"), {"spec": {"replicas": 6}})
    created = [body_of(operation) for operation in cluster.plan().operations if operation.id.kind == "Pod"]

    assert [(GATES[1] in body["spec"], "schedulingGroup" in body["spec"]) for body in created] == [(False, False)] * 2


def test_new_pods_of_a_gang_below_its_minimum_are_gated_although_its_condition_is_true() -> None:
    cluster = cluster_with(alone(), room=4)
    cluster.settle()
    cluster.room = 3
    cluster.lose(cluster.pods_of("web-0-a")[0])
    cluster.write(kinds.PODCLIQUE.id("default", "web-0-a"), {"spec": {"replicas": 6}})
    cluster.make_pass()

    assert cluster.of("PodGroup")["web-0"]["status"]["conditions"][0]["status"] == "True"
    assert len(gated(cluster)) == 2
    cluster.room = 10
    cluster.settle()
    assert gated(cluster) == [] and cluster.bound() == {"web-0-a": 6}


def test_a_member_that_is_lost_is_replaced_by_a_member() -> None:
    cluster = cluster_with(alone())
    cluster.settle()
    cluster.lose(*cluster.pods_of("web-0-a")[:2])
    cluster.settle()

    assert cluster.members() == {"web-0": 2, "": 2} and cluster.minimums() == {"web-0": 2}


def test_a_gang_that_is_scaled_in_keeps_its_members() -> None:
    cluster = cluster_with(alone())
    cluster.settle()
    for name in cluster.pods_of("web-0-a")[:2]:
        cluster.write(kinds.POD.id("default", name), {"metadata": {"creationTimestamp": "2026-02-01T00:00:00Z"}})
    cluster.write(kinds.PODCLIQUE.id("default", "web-0-a"), {"spec": {"replicas": 2}})
    cluster.settle()

    assert cluster.members() == {"web-0": 2}


def test_a_gang_scaled_below_its_minimum_needs_the_pods_that_it_has() -> None:
    cluster = cluster_with(alone(3, 3))
    cluster.settle()
    cluster.write(kinds.PODCLIQUE.id("default", "web-0-a"), {"spec": {"replicas": 2}})
    cluster.settle()
    assert cluster.minimums() == {"web-0": 2} and cluster.plan().notes == ()

    cluster.lose(cluster.pods_of("web-0-a")[0])
    cluster.write(kinds.PODCLIQUE.id("default", "web-0-a"), {"spec": {"replicas": 3}})
    cluster.settle()
    assert cluster.minimums() == {"web-0": 3} and cluster.bound() == {"web-0-a": 3}


def test_an_update_replaces_members_by_members_and_changes_no_group() -> None:
    cluster = cluster_with(web(replicas=3))
    cluster.settle()
    before = {name: body["metadata"]["uid"] for name, body in cluster.of("PodGroup").items()}
    pods = {cluster.objects[id]["metadata"]["uid"] for id in cluster.pods()}
    manifest = web(replicas=3)
    for each in manifest["spec"]["template"]["cliques"]:
        each["spec"]["podSpec"] = {"containers": [{"name": "main", "image": "new"}]}
    cluster.write(kinds.PODCLIQUESET.id("default", "web"), {"spec": manifest["spec"]})
    cluster.settle(200)

    assert pods.isdisjoint(cluster.objects[id]["metadata"]["uid"] for id in cluster.pods())
    assert {name: body["metadata"]["uid"] for name, body in cluster.of("PodGroup").items()} == before
    assert cluster.members() == {"web-0": 5, "web-0-g-0": 3, "": 1} and cluster.minimums() == {"web-0": 5, "web-0-g-0": 3}


def test_without_an_answer_pods_beyond_the_minimum_wait_a_minute_and_it_is_told() -> None:
    cluster = cluster_with(alone(), room=0)
    cluster.answers = False
    cluster.make_pass()
    assert len(gated(cluster)) == 2 and cluster.plan().alarms == ()
    wake_at = cluster.plan().wake_at
    assert wake_at is not None and (wake_at - cluster.now).total_seconds() == 60
    cluster.now = wake_at
    plan = cluster.make_pass()

    assert gated(cluster) == []
    (alarm,) = plan.alarms
    assert (alarm.reason, alarm.blocking) == ("GangSchedulingUnanswered", False)
    assert alarm.text.startswith(
        "kube-scheduler has said nothing of PodGroup web-0 for a minute: its feature gate GenericWorkload is probably"
    )


def test_with_an_answer_pods_beyond_the_minimum_wait_as_long_as_it_takes() -> None:
    cluster = cluster_with(alone(), room=1)
    cluster.make_pass()
    cluster.now = cluster.now.replace(year=2027)
    plan = cluster.make_pass()

    assert len(gated(cluster)) == 2 and plan.alarms == ()


def test_a_running_gang_of_pods_without_a_group_is_left_as_it_is() -> None:
    cluster = cluster_with(web(replicas=3))
    cluster.configuration = CONFIGURATION
    cluster.settle()
    cluster.configuration = NATIVE
    assert [operation.verb for operation in cluster.plan().operations if operation.verb is not Verb.STATUS] == []

    cluster.lose(cluster.pods_of("web-0-a")[0])
    cluster.settle()
    assert cluster.of("PodGroup") == {} and cluster.members() == {"": 9}
    notices = list(gang_notices(cluster.world(), cluster.plans(), NATIVE))
    assert notices == [
        "the pods of default/web-0, default/web-0-g-0 are placed one by one until they are created anew: they run without a PodGroup, "
        "which a pod cannot join"
    ]


@pytest.mark.parametrize(("lost", "waits"), [(1, False), (2, True)])
def test_once_gangs_are_off_only_pods_that_wait_for_one_another_are_said_to_wait_in_groups(lost: int, *, waits: bool) -> None:
    cluster = cluster_with(alone(3, 3))
    cluster.settle()
    cluster.room = 3 - lost
    for name in cluster.pods_of("web-0-a")[:lost]:
        cluster.lose(name)
    for _ in range(3):
        cluster.make_pass()
    bodies = cluster.of("Pod").values()
    assert [node_of(body) for body in bodies].count("") == lost and len(bodies) == 3

    off = replace(NATIVE, schedulers={**NATIVE.schedulers, "default-scheduler": kube_scheduler(GangMode.OFF)})
    notices = list(gang_notices(cluster.world(), cluster.plans(), off))
    assert any("wait in PodGroups of kube-scheduler" in notice for notice in notices) == waits


def test_gangs_with_a_group_are_not_said_to_be_left_alone() -> None:
    cluster = cluster_with(web(replicas=3))
    cluster.settle()

    assert list(gang_notices(cluster.world(), cluster.plans(), NATIVE)) == []


def test_a_gang_without_pods_is_created_anew_with_a_group() -> None:
    cluster = cluster_with(alone())
    cluster.configuration = CONFIGURATION
    cluster.settle()
    cluster.configuration = NATIVE
    cluster.lose(*cluster.pods_of("web-0-a"))
    cluster.settle()

    assert cluster.members() == {"web-0": 2, "": 2} and cluster.minimums() == {"web-0": 2}


def test_a_gang_keeps_its_form_while_it_lives() -> None:
    cluster = cluster_with(alone())
    cluster.settle()
    gang = kinds.PODGANG.id("default", "web-0")
    del cluster.objects[gang]
    cluster.settle()
    assert cluster.objects[gang]["metadata"]["annotations"]["engine.grove.io/gang-form"] == "flat"

    cluster.configuration = CONFIGURATION
    assert [operation for operation in cluster.plan().operations if operation.id.kind == "PodGang"] == []


@pytest.mark.parametrize("mode", [GangMode.AUTO, GangMode.REQUIRE])
def test_where_pod_groups_are_not_served_auto_places_pods_one_by_one_and_require_holds_them(mode: GangMode) -> None:
    cluster = cluster_with(alone())
    cluster.configuration = Configuration({"default-scheduler": kube_scheduler(mode)}, "default-scheduler")
    cluster.unserved |= {kinds.POD_GROUP.key}
    plan = cluster.make_pass()

    assert cluster.of("PodGroup") == {}
    if mode is GangMode.AUTO:
        assert cluster.members() == {"": 4} and gated(cluster) == []
        conditions = cluster.of("PodCliqueSet")["web"].get("status", {}).get("conditions", [])
        cluster.settle()
        conditions = cluster.of("PodCliqueSet")["web"]["status"]["conditions"]
        assert "GangSchedulingUnavailable" in {condition["type"] for condition in conditions}
    else:
        assert cluster.of("Pod") == {}
        blocked = {wait.why for wait in plan.deferred if wait.blocked}
        assert "the cluster does not serve PodGroup of scheduling.k8s.io/v1beta1" in blocked


def test_where_gangs_are_scheduled_no_condition_says_otherwise() -> None:
    cluster = cluster_with(alone())
    cluster.settle()

    conditions = cluster.of("PodCliqueSet")["web"]["status"].get("conditions", [])
    assert "GangSchedulingUnavailable" not in {condition["type"] for condition in conditions}


def test_new_gangs_wait_where_pod_groups_cannot_be_listed_and_running_ones_are_left_alone() -> None:
    cluster = cluster_with(alone())
    cluster.settle()
    cluster.unlisted = NOT_LISTED
    assert [operation for operation in cluster.plan().operations if operation.verb is not Verb.STATUS] == []

    fresh = cluster_with(alone())
    fresh.unlisted = NOT_LISTED
    plan = fresh.make_pass()
    assert fresh.of("Pod") == {} and any("could not be listed completely" in wait.why for wait in plan.deferred if wait.blocked)


def test_a_foreign_pod_group_of_that_name_blocks_the_gang() -> None:
    cluster = cluster_with(alone())
    labels = {"app.kubernetes.io/managed-by": "grove-operator", "app.kubernetes.io/part-of": "web"}
    kind = kinds.POD_GROUP
    metadata = {"name": "web-0", "namespace": "default", "labels": labels}
    cluster.put({"apiVersion": kind.api_version, "kind": kind.name, "metadata": metadata, "spec": {"schedulingPolicy": {"basic": {}}}})
    plan = cluster.make_pass()

    why = "PodGroup default/web-0 already exists but is not controlled by PodGang default/web-0"
    assert (kind.id("default", "web-0"), why, True) in [(wait.id, wait.why, wait.blocked) for wait in plan.deferred]
    assert cluster.of("Pod") == {} and cluster.of("PodGroup")["web-0"]["spec"] == {"schedulingPolicy": {"basic": {}}}


def test_a_deleted_group_works_until_its_last_pod_is_gone_and_is_created_again_then() -> None:
    cluster = cluster_with(alone())
    cluster.settle()
    group_id = kinds.POD_GROUP.id("default", "web-0")
    cluster.delete(group_id)
    old = cluster.objects[group_id]["metadata"]["uid"]
    cluster.lose(cluster.pods_of("web-0-a")[0])
    plan = cluster.make_pass()
    assert "PodGroup web-0 is being deleted: it works until its last pod is gone, and is created again then" in plan.notes
    cluster.settle()
    assert cluster.members() == {"web-0": 2, "": 2} and not (plan := cluster.plan()).deferred and not plan.pending

    cluster.lose(*cluster.pods_of("web-0-a"))
    cluster.live()
    cluster.settle()
    assert cluster.objects[group_id]["metadata"]["uid"] != old and cluster.members() == {"web-0": 2, "": 2}


@pytest.mark.parametrize("is_collected", [True, False])
def test_a_podgang_that_a_user_deletes_comes_back_and_new_pods_join_the_group_that_it_leaves(is_collected: bool) -> None:
    cluster = cluster_with(web())
    cluster.settle()
    group_id = kinds.POD_GROUP.id("default", "web-0")
    del cluster.objects[kinds.PODGANG.id("default", "web-0")]
    if is_collected:
        cluster.delete(group_id)  # Kubernetes keeps it for its pods.
    old = cluster.objects[group_id]["metadata"]["uid"]
    cluster.lose(*cluster.pods_of("web-0-a"))
    cluster.settle()

    assert cluster.members() == {"web-0": 5, "web-0-g-0": 3} and cluster.objects[group_id]["metadata"]["uid"] == old
    assert not (plan := cluster.plan()).deferred and not plan.pending and not plan.operations


@pytest.mark.parametrize(("finalizers", "is_blocked"), [(["foregroundDeletion"], False), (["example.com/hold"], True)])
def test_a_group_waits_for_its_podgang_that_is_being_deleted_and_is_blocked_if_others_keep_that(
    finalizers: list[str], is_blocked: bool
) -> None:
    cluster = cluster_with(alone())
    cluster.settle()
    gang_id, group_id = kinds.PODGANG.id("default", "web-0"), kinds.POD_GROUP.id("default", "web-0")
    cluster.write(gang_id, {"metadata": {"finalizers": finalizers, "deletionTimestamp": cluster.stamp()}})

    assert [wait.blocked for wait in cluster.plan().deferred if wait.id == group_id] == [is_blocked]


def test_a_set_that_is_deleted_takes_its_pods_first_then_its_groups() -> None:
    cluster = cluster_with(web(replicas=3))
    cluster.settle()
    cluster.delete(kinds.PODCLIQUESET.id("default", "web"))
    gone: list[str] = []
    for _ in range(20):
        before = {id.kind for id in cluster.objects}
        cluster.make_pass() if cluster.objects else None
        gone += sorted(before - {id.kind for id in cluster.objects})
        if not cluster.objects:
            break

    assert gone.index("Pod") < gone.index("PodGroup") and cluster.objects == {}


def test_the_priority_class_is_that_of_the_gang_and_is_not_compared_later() -> None:
    cluster = cluster_with(web(priorityClassName="high"))
    cluster.settle()
    assert {body["spec"]["priorityClassName"] for body in cluster.of("PodGroup").values()} == {"high"}

    cluster.write(kinds.PODCLIQUESET.id("default", "web"), {"spec": {"template": {"priorityClassName": "low"}}})
    assert [operation for operation in cluster.plan().operations if operation.id.kind == "PodGroup"] == []


def test_a_gang_without_room_says_in_the_scheduler_s_words_why() -> None:
    cluster = cluster_with(alone(), room=1)
    for _ in range(3):
        plan = cluster.make_pass()
    gang = kinds.PODGANG.id("default", "web-0")
    assert [wait.why for wait in plan.pending if wait.id == gang] == ["Unschedulable: minCount cannot be satisfied"]
    conditions = {condition["type"]: condition for condition in cluster.objects[gang]["status"]["conditions"]}
    scheduled = conditions["Scheduled"]
    assert (scheduled["status"], scheduled["reason"], scheduled["message"]) == ("False", "Unschedulable", "minCount cannot be satisfied")

    cluster.room = 10
    cluster.settle()
    conditions = {condition["type"]: condition for condition in cluster.objects[gang]["status"]["conditions"]}
    assert conditions["Scheduled"]["status"] == "True" and cluster.objects[gang]["status"]["phase"] == "Running"


def test_a_gang_that_has_lost_members_is_not_scheduled_although_its_group_was() -> None:
    cluster = cluster_with(alone())
    cluster.settle()
    cluster.room = 1
    cluster.lose(*cluster.pods_of("web-0-a")[:3])
    for _ in range(3):
        cluster.make_pass()
    (scheduled,) = [each for each in cluster.of("PodGang")["web-0"]["status"]["conditions"] if each["type"] == "Scheduled"]

    assert cluster.of("PodGroup")["web-0"]["status"]["conditions"][0]["status"] == "True"
    assert (scheduled["status"], scheduled["reason"]) == ("False", "MembersMissing")
    assert scheduled["message"] == "1 of 2 pods that the gang needs are scheduled"
