"""The objects of scheduler back ends for gangs: created before the pods, removed after them, and never fought over with their owners."""

from collections.abc import Mapping
from typing import Any, ClassVar

import pytest
from msgspec.structs import replace

from engine.ids import Kind
from engine.observed import Live
from engine.operation import Operation, body_of
from engine.plan import Plan
from engine.proposal import propose
from engine.resource import Body
from engine.verb import Verb
from providers.schedulers.kai import KaiPodGroups, KaiScheduler
from providers.schedulers.kube import KubeScheduler
from providers.schedulers.volcano import VolcanoScheduler
from resources.base import kinds
from resources.blueprints.podcliqueset import PodCliqueSetBlueprint
from resources.blueprints.topology_binding import TopologyBindingBlueprint
from resources.install.permissions import permissions
from resources.ports.configuration import Configuration
from resources.ports.scheduler import GangObject, SetMetadata
from tests.builders import clique, group, podcliqueset
from tests.laws.toy import Toy

BACK_ENDS = {back_end.name: back_end for back_end in (KubeScheduler(), KaiScheduler(), VolcanoScheduler())}
KAI = Configuration(BACK_ENDS, "kai-scheduler")
VOLCANO = Configuration(BACK_ENDS, "volcano")
ROOT = kinds.PODCLIQUESET.id("default", "web")


class Placed(Toy):
    """A toy cluster whose sets are placed by a back end with objects for gangs."""

    configuration = KAI
    kind: ClassVar[Kind] = kinds.KAI_POD_GROUP

    def plan(self) -> Plan:
        """The plan of the set."""
        (plan,) = [plan for plan in self.plans() if plan.root == ROOT]
        return plan

    def pod_groups(self) -> dict[str, dict[str, Any]]:
        """The PodGroups by name."""
        return {id.name: body for id, body in sorted(self.objects.items()) if id.kind == "PodGroup"}

    def make_pass(self) -> Plan:
        """Apply the plan of the set and let the cluster act on it."""
        plan = self.plan()
        self.apply(plan.operations)
        self.live()
        return plan


class Volcanic(Placed):
    """The same with Volcano."""

    configuration = VOLCANO
    kind = kinds.VOLCANO_POD_GROUP


BOTH = pytest.mark.parametrize("toy", [Placed, Volcanic])


def web(**template: Any) -> dict[str, Any]:
    """A set with a clique and a scaling group whose second replica has a gang of its own."""
    groups = (group("g", "l", "w", replicas=2),)
    manifest = podcliqueset("web", clique("a", 2), clique("l"), clique("w", 2), groups=groups, **template)
    manifest["metadata"]["labels"] = {"kai.scheduler/queue": "q", "team": "x"}
    return manifest


def started(make: type[Placed], manifest: dict[str, Any] | None = None) -> Placed:
    """A cluster with that set."""
    toy = make()
    for name in ("default", "r"):
        metadata = {"name": name}
        toy.put({"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": metadata, "status": {"state": "Open"}})
    toy.put(manifest or web())
    return toy


def settled(make: type[Placed], manifest: dict[str, Any] | None = None) -> Placed:
    """The same after everything is done."""
    toy = started(make, manifest)
    toy.settle()
    return toy


def kinds_of(operations: tuple[Operation, ...], verb: Verb) -> list[str]:
    """The kinds of the objects of these operations, in order, without repetitions."""
    return list(dict.fromkeys(operation.id.kind for operation in operations if operation.verb is verb))


@BOTH
def test_a_pod_group_is_created_after_its_podgang_and_before_its_pods(toy: type[Placed]) -> None:
    plan = started(toy).plan()

    created = kinds_of(plan.operations, Verb.CREATE)
    assert created.index("PodGang") < created.index("PodGroup") < created.index("Pod")
    by_id = {operation.id: operation for operation in plan.operations if operation.verb is Verb.CREATE}
    for id, operation in by_id.items():
        if id.kind == "Pod":
            gang = body_of(operation)["metadata"]["labels"]["grove.io/podgang"]
            assert by_id[toy.kind.id("default", gang)].key in operation.after
        if id.kind == "PodGroup":
            assert by_id[kinds.PODGANG.id("default", id.name)].key in operation.after


@BOTH
def test_every_podgang_has_one_pod_group_which_it_owns(toy: type[Placed]) -> None:
    cluster = settled(toy)

    gangs = {id.name: body for id, body in cluster.objects.items() if id.kind == "PodGang"}
    assert set(cluster.pod_groups()) == set(gangs) == {"web-0", "web-0-g-0"}
    for name, body in cluster.pod_groups().items():
        (owner,) = body["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["name"], owner["uid"]) == ("PodGang", name, gangs[name]["metadata"]["uid"])
        assert owner["apiVersion"] == "scheduler.grove.io/v1alpha1" and owner["controller"] is True
        assert body["metadata"]["labels"] == gangs[name]["metadata"]["labels"]
    assert [body["spec"]["minMember"] for body in cluster.pod_groups().values()] == [5, 3]


@BOTH
def test_nothing_is_planned_once_everything_exists(toy: type[Placed]) -> None:
    cluster = settled(toy)
    for name in cluster.pod_groups():
        body = cluster.objects[cluster.kind.id("default", name)]
        spec = {"markUnschedulable": True, "schedulingBackoff": 1, "minResources": {"cpu": "1"}}
        metadata = {"labels": {"kai.scheduler/node-pool": "n"}, "annotations": {"theirs": "x"}}
        cluster.write(cluster.kind.id("default", name), {"spec": spec, "status": {"phase": "Running"}, "metadata": metadata})
        assert body["spec"]["minMember"]
    cluster.previous = None

    assert (cluster.plan().operations, cluster.plan().deferred) == ((), ())


def test_pods_of_kai_carry_their_gang_their_sub_group_and_their_queue() -> None:
    cluster = settled(Placed)

    for id in cluster.pods():
        pod = cluster.objects[id]
        labels, annotations = pod["metadata"]["labels"], pod["metadata"]["annotations"]
        assert (labels["kai.scheduler/subgroup-name"], labels["kai.scheduler/queue"]) == (labels["grove.io/podclique"], "q")
        assert annotations == {"pod-group-name": labels["grove.io/podgang"], "kai.scheduler/skip-podgrouper": "true"}
        assert pod["spec"]["schedulerName"] == "kai-scheduler"
    gang = cluster.objects[kinds.PODGANG.id("default", "web-0")]
    assert gang["metadata"]["annotations"] == {"kai.scheduler/skip-podgrouper": "true"}


def test_pods_of_volcano_name_their_pod_group() -> None:
    cluster = settled(Volcanic)

    for id in cluster.pods():
        metadata = cluster.objects[id]["metadata"]
        gang = metadata["labels"]["grove.io/podgang"]
        assert metadata["annotations"] == {"scheduling.k8s.io/group-name": gang, "scheduling.volcano.sh/group-name": gang}
    assert "annotations" not in cluster.objects[kinds.PODGANG.id("default", "web-0")]["metadata"]


def test_a_queue_that_changes_stays_that_of_the_existing_pod_group_and_pods_of_kai() -> None:
    cluster = settled(Placed)
    cluster.write(ROOT, {"metadata": {"labels": {"kai.scheduler/queue": "r"}}})
    cluster.settle()

    assert [body["spec"]["queue"] for body in cluster.pod_groups().values()] == ["q", "q"]
    assert {cluster.objects[id]["metadata"]["labels"]["kai.scheduler/queue"] for id in cluster.pods()} == {"q"}


def test_the_queue_of_volcano_follows_the_set() -> None:
    cluster = settled(Volcanic)
    cluster.write(ROOT, {"metadata": {"annotations": {"scheduling.grove.io/volcano-queue": "r"}}})
    cluster.settle()

    assert [body["spec"]["queue"] for body in cluster.pod_groups().values()] == ["r", "r"]


@BOTH
def test_a_replica_of_a_group_that_is_scaled_in_loses_its_pods_then_its_pod_group(toy: type[Placed]) -> None:
    cluster = settled(toy)
    cluster.write(kinds.SCALING_GROUP.id("default", "web-0-g"), {"spec": {"replicas": 1}})
    first = cluster.plan()

    assert kinds_of(first.operations, Verb.DELETE) == ["Pod"]
    (wait,) = [wait for wait in first.deferred if wait.id.kind == "PodGroup"]
    assert wait.why.endswith("waits for 3 pods to be gone")
    cluster.make_pass()
    deleted = kinds_of(cluster.plan().operations, Verb.DELETE)
    assert deleted.index("PodGroup") < deleted.index("PodGang")
    cluster.settle()
    assert set(cluster.pod_groups()) == {"web-0"}


@BOTH
def test_a_replica_of_the_set_that_is_scaled_in_loses_its_pod_group(toy: type[Placed]) -> None:
    cluster = settled(toy, podcliqueset_of_two())
    assert set(cluster.pod_groups()) == {"web-0", "web-1"}
    cluster.write(ROOT, {"spec": {"replicas": 1}})
    cluster.settle()

    assert set(cluster.pod_groups()) == {"web-0"}


def podcliqueset_of_two() -> dict[str, Any]:
    """A set with two replicas."""
    manifest = podcliqueset("web", clique("a"), replicas=2)
    return {**manifest, "metadata": {**manifest["metadata"], "labels": {"kai.scheduler/queue": "q"}}}


@BOTH
def test_a_set_that_is_deleted_takes_its_pod_groups_with_it_after_the_pods(toy: type[Placed]) -> None:
    cluster = settled(toy)
    cluster.delete(ROOT)

    assert set(kinds_of(cluster.plan().operations, Verb.DELETE)) == {"Pod"}
    cluster.settle()
    assert {id.kind for id in cluster.objects} == {"Queue"}


@BOTH
def test_a_deleted_pod_group_is_created_again(toy: type[Placed]) -> None:
    cluster = settled(toy)
    del cluster.objects[cluster.kind.id("default", "web-0")]
    plan = cluster.plan()

    assert [(operation.verb, operation.id.kind) for operation in plan.operations] == [(Verb.CREATE, "PodGroup")]


@BOTH
def test_pods_wait_while_the_kind_of_their_pod_group_is_not_served_and_nothing_else_does(toy: type[Placed]) -> None:
    cluster = started(toy)
    other = podcliqueset("other", clique("a", pod_spec={"containers": [{"name": "c"}], "schedulerName": "default-scheduler"}))
    cluster.put(other)
    cluster.unserved = frozenset({cluster.kind.key})
    plan = cluster.plan()

    missing = f"the cluster does not serve PodGroup of {cluster.kind.api_version}"
    waits = {
        wait.id.kind: (wait.why, wait.blocked) for wait in plan.deferred if wait.id.name.startswith("web-0-a") or wait.id.name == "web-0"
    }
    assert waits["PodGroup"] == (missing, True)
    assert waits["Pod"] == (f"PodGroup web-0 cannot be created: {missing}", True)
    assert "PodGang" in kinds_of(plan.operations, Verb.CREATE) and "Pod" not in kinds_of(plan.operations, Verb.CREATE)
    (others,) = [plan for plan in cluster.plans() if plan.root.name == "other"]
    assert "Pod" in kinds_of(others.operations, Verb.CREATE) and others.deferred == ()

    cluster.unserved = frozenset()
    cluster.settle()
    assert len([id for id in cluster.pods() if id.name.startswith("web")]) == 8


def test_queues_are_not_checked_where_their_kind_is_not_served() -> None:
    cluster = Volcanic()
    cluster.put(web())
    assert cluster.plan().problems == (
        'metadata.annotations[scheduling.grove.io/volcano-queue]: Invalid value: "default": volcano queue "default" does not exist',
    )

    cluster.unserved = frozenset({kinds.VOLCANO_QUEUE.key, kinds.VOLCANO_POD_GROUP.key})
    assert cluster.plan().problems == ()
    assert {wait.id.kind for wait in cluster.plan().deferred if wait.blocked} == {"PodGroup", "Pod"}


@BOTH
def test_pods_that_run_stay_where_the_kind_is_no_longer_served(toy: type[Placed]) -> None:
    cluster = settled(toy)
    before = cluster.pods()
    for name in cluster.pod_groups():
        del cluster.objects[cluster.kind.id("default", name)]
    cluster.unserved = frozenset({cluster.kind.key})

    assert [operation for operation in cluster.plan().operations if operation.id.kind == "Pod"] == []
    assert cluster.pods() == before


@BOTH
def test_a_foreign_pod_group_of_that_name_is_left_alone_and_the_pods_of_that_gang_wait(toy: type[Placed]) -> None:
    cluster = started(toy)
    kind = cluster.kind
    labels = {"app.kubernetes.io/managed-by": "grove-operator", "app.kubernetes.io/part-of": "web"}
    metadata = {"name": "web-0", "namespace": "default", "labels": labels}
    cluster.put({"apiVersion": kind.api_version, "kind": kind.name, "metadata": metadata, "spec": {}})
    plan = cluster.plan()

    why = "PodGroup default/web-0 already exists but is not controlled by PodGang default/web-0"
    assert (kind.id("default", "web-0"), why, True) in [(wait.id, wait.why, wait.blocked) for wait in plan.deferred]
    pods = {body_of(operation)["metadata"]["labels"]["grove.io/podgang"] for operation in plan.operations if operation.id.kind == "Pod"}
    assert pods == {"web-0-g-0"}
    assert f"PodGroup web-0 cannot be created: {why}" in {wait.why for wait in plan.deferred if wait.id.kind == "Pod"}
    assert cluster.objects[kind.id("default", "web-0")]["spec"] == {}


@BOTH
def test_new_pods_wait_while_their_pod_group_is_being_deleted(toy: type[Placed]) -> None:
    cluster = settled(toy)
    cluster.write(cluster.kind.id("default", "web-0"), {"metadata": {"deletionTimestamp": cluster.stamp(), "finalizers": ["theirs"]}})
    lost = next(id for id in cluster.pods() if id.name.startswith("web-0-a-"))
    del cluster.objects[lost]
    plan = cluster.plan()

    assert "Pod" not in kinds_of(plan.operations, Verb.CREATE)
    (wait,) = [wait for wait in plan.deferred if wait.id.kind == "Pod"]
    assert (wait.why, wait.blocked) == ("PodGroup web-0 is being deleted; it is created again once it is gone", False)


def test_a_set_of_the_default_scheduler_has_no_pod_group() -> None:
    cluster = started(Placed)
    cluster.configuration = replace(KAI, default_scheduler="default-scheduler")
    cluster.settle()

    assert cluster.pod_groups() == {}
    assert all("annotations" not in cluster.objects[id]["metadata"] for id in cluster.pods())


@BOTH
def test_a_pod_group_stays_until_the_last_pod_that_its_scheduler_placed_is_gone(toy: type[Placed]) -> None:
    cluster = settled(toy)
    before = cluster.pod_groups()
    cluster.configuration = replace(cluster.configuration, default_scheduler="default-scheduler")
    plan = cluster.plan()

    assert "PodGroup" not in {each.id.kind for each in (*plan.deferred, *plan.operations)}
    cluster.settle()
    assert cluster.pod_groups() == before and not cluster.plan().deferred
    for id in cluster.pods():
        del cluster.objects[id]
    cluster.settle()
    assert cluster.pod_groups() == {}


def test_a_pod_that_another_scheduler_placed_is_not_marked() -> None:
    cluster = started(Placed)
    cluster.configuration = replace(KAI, default_scheduler="default-scheduler")
    cluster.settle()
    cluster.configuration = KAI
    cluster.settle()

    assert set(cluster.pod_groups()) == {"web-0", "web-0-g-0"}
    assert all("kai.scheduler/subgroup-name" not in cluster.objects[id]["metadata"]["labels"] for id in cluster.pods())


class Unmappable(KaiPodGroups):
    """PodGroups that can express no PodGang."""

    def object_for(self, podgang: Body, live: Live | None, metadata: SetMetadata) -> GangObject:
        """Always a problem."""
        return GangObject({}, problem="topology name cannot be empty when topology constraints are defined")


def test_a_podgang_that_cannot_be_mapped_is_an_alarm_and_its_pods_wait() -> None:
    cluster = started(Placed)
    kai = KaiScheduler()
    kai.gangs = Unmappable()
    cluster.configuration = Configuration({**BACK_ENDS, "kai-scheduler": kai}, "kai-scheduler")
    plan = cluster.plan()

    problem = "topology name cannot be empty when topology constraints are defined"
    expected = f"PodGang default/web-0 cannot be mapped to a PodGroup of scheduling.run.ai/v2alpha2: {problem}"
    assert ("KAIBackendMappingFailed", expected, True) in [(alarm.reason, alarm.text, alarm.blocking) for alarm in plan.alarms]
    assert {wait.id.kind for wait in plan.deferred if wait.blocked} == {"PodGroup", "Pod"}
    assert {"PodGroup", "Pod"}.isdisjoint(kinds_of(plan.operations, Verb.CREATE))


def racks() -> dict[str, Any]:
    """A binding of zones and racks."""
    levels = [{"domain": "zone", "key": "example.com/zone"}, {"domain": "rack", "key": "example.com/rack"}]
    kind = kinds.TOPOLOGY_BINDING
    return {"apiVersion": kind.api_version, "kind": kind.name, "metadata": {"name": "hall"}, "spec": {"levels": levels}}


def test_constraints_of_a_set_reach_the_pod_group_as_levels_of_the_topology() -> None:
    cluster = Placed()
    cluster.configuration = replace(KAI, topology=True)
    cluster.put(racks())
    manifest = web(topologyConstraint={"topologyName": "hall", "pack": {"required": "zone"}})
    manifest["spec"]["template"]["podCliqueScalingGroups"][0]["topologyConstraint"] = {"pack": {"required": "rack"}}
    cluster.put(manifest)
    first = cluster.make_pass()
    assert {wait.why for wait in first.deferred} == {"PodGroup web-0 waits for its first read"}
    assert {operation.id.name for operation in first.operations if operation.id.kind == "PodGroup"} == {"web-0", "web-0-g-0"}
    assert all(operation.id.name.startswith("web-0-g-1") for operation in first.operations if operation.id.kind == "Pod")
    cluster.settle()

    base, scaled = cluster.pod_groups().values()
    rack = {"topology": "hall", "requiredTopologyLevel": "example.com/rack"}
    assert base["spec"]["topologyConstraint"] == {"topology": "hall", "requiredTopologyLevel": "example.com/zone"}
    assert scaled["spec"]["topologyConstraint"] == rack
    assert base["spec"]["subGroups"][0] == {"name": "web-0-g-0", "minSubGroup": 2, "topologyConstraint": rack}
    assert [entry.get("parent") for entry in base["spec"]["subGroups"]] == [None, None, "web-0-g-0", "web-0-g-0"]

    assert cluster.plan().operations == ()

    proposed = propose(cluster.world(), [{**manifest, "metadata": {**manifest["metadata"], "name": "new"}}])
    (new,) = [plan for plan in cluster.plans_of(proposed) if plan.root.name == "new"]
    assert new.deferred == () and "Pod" in kinds_of(new.operations, Verb.CREATE)


def test_constraints_of_cliques_reach_the_pod_groups_of_every_gang() -> None:
    cluster = Placed()
    cluster.configuration = replace(KAI, topology=True)
    cluster.put(racks())
    manifest = web()
    cliques = {clique["name"]: clique for clique in manifest["spec"]["template"]["cliques"]}
    cliques["a"]["topologyConstraint"] = {"topologyName": "hall", "pack": {"required": "zone"}}
    cliques["w"]["topologyConstraint"] = {"topologyName": "hall", "pack": {"required": "rack"}}
    cluster.put(manifest)
    cluster.settle()

    def keys(gang: str) -> dict[str, Any]:
        groups = cluster.objects[kinds.PODGANG.id("default", gang)]["spec"]["podgroups"]
        return {group["name"]: group.get("topologyConstraint", {}).get("packConstraint") for group in groups}

    zone, rack = {"required": "example.com/zone"}, {"required": "example.com/rack"}
    assert keys("web-0") == {"web-0-a": zone, "web-0-g-0-l": None, "web-0-g-0-w": rack}
    assert keys("web-0-g-0") == {"web-0-g-1-l": None, "web-0-g-1-w": rack}
    (_, with_constraint) = cluster.pod_groups()["web-0-g-0"]["spec"]["subGroups"]
    assert with_constraint["topologyConstraint"] == {"topology": "hall", "requiredTopologyLevel": "example.com/rack"}


def test_a_set_whose_back_end_is_no_longer_enabled_stays_as_it_is_and_can_be_deleted() -> None:
    manifest = web()
    for template in manifest["spec"]["template"]["cliques"]:
        template["spec"]["podSpec"]["schedulerName"] = "kai-scheduler"
    cluster = settled(Placed, manifest)
    cluster.configuration = Configuration({"default-scheduler": KubeScheduler()}, "default-scheduler")

    plan = cluster.plan()
    assert [(operation.verb, operation.id) for operation in plan.operations] == [(Verb.STATUS, ROOT)]
    assert "schedulerName must be an enabled scheduler backend" in plan.problems[0]

    cluster.delete(ROOT)
    cluster.settle()
    assert [id for id in cluster.objects if id.kind in ("PodCliqueSet", "PodGang", "PodGroup", "Pod")] == []


def test_the_kinds_of_enabled_back_ends_are_listed_and_allowed() -> None:
    def verbs(configuration: Configuration) -> Mapping[tuple[str, str], tuple[str, ...]]:
        needed = permissions((PodCliqueSetBlueprint(), TopologyBindingBlueprint()), configuration, "")
        return {(permission.resource, permission.kind.group): permission.verbs for permission in needed}

    read, all_verbs = ("list", "watch"), ("get", "list", "watch", "create", "patch", "delete")
    enabled = verbs(VOLCANO)
    assert enabled["podgroups", "scheduling.volcano.sh"] == enabled["podgroups", "scheduling.run.ai"] == all_verbs
    assert enabled["topologies", "kai.scheduler"] == ("get", "list", "watch", "create", "delete")
    assert enabled["queues", "scheduling.volcano.sh"] == read and ("queues", "scheduling.run.ai") not in enabled
    plain = verbs(Configuration({"default-scheduler": KubeScheduler()}, "default-scheduler"))
    assert not {"podgroups", "queues", "topologies"} & {resource for resource, _ in plain}
