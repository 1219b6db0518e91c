"""The minimums of CompositePodGroups, which are immutable: one that is outdated is replaced, and no pod is touched."""

import pytest
from msgspec.structs import replace

from engine.reason import Reason
from engine.verb import Verb
from providers.schedulers.kube import kube_scheduler
from resources.base import kinds
from resources.ports.configuration import Configuration, GangMode
from tests.laws.native import NATIVE, ROOT, Native
from tests.resources.blueprints.test_native_hierarchies import cluster_with, web


def counts(cluster: Native) -> dict[str, int]:
    """CompositePodGroup -> its `minGroupCount`."""
    return {name: body["spec"]["schedulingPolicy"]["gang"]["minGroupCount"] for name, body in cluster.of("CompositePodGroup").items()}


def uids(cluster: Native) -> set[tuple[str, str]]:
    """The name and the uid of each pod."""
    return {(name, body["metadata"]["uid"]) for name, body in cluster.of("Pod").items()}


def test_the_root_is_replaced_when_it_has_more_or_fewer_groups_than_it_needs_and_no_pod_is_touched() -> None:
    manifest = web(of_set="zone", of_group="rack")
    manifest["spec"]["template"]["podCliqueScalingGroups"][0]["minAvailable"] = 2
    cluster = cluster_with(manifest)
    cluster.settle()
    root, pods = cluster.of("CompositePodGroup")["web-0"], uids(cluster)
    for replicas, count, reason in ((1, 2, Reason.SCALED_IN), (2, 3, Reason.SCALED_OUT)):
        cluster.write(kinds.SCALING_GROUP.id("default", "web-0-g"), {"spec": {"replicas": replicas}})
        (replaced,) = [operation for operation in cluster.plan().operations if operation.verb is Verb.REPLACE]
        assert (replaced.id.name, replaced.reason, replaced.intended) == ("web-0", reason, True)
        before = counts(cluster)["web-0"]
        assert [(change.path[-1], change.old, change.new) for change in replaced.changes] == [("minGroupCount", before, count)]
        cluster.settle()

        assert counts(cluster) == {"web-0": count} | {f"web-0-g-{replica}.group": 2 for replica in range(replicas)}
        assert {(name, uid) for name, uid in pods if "-g-1-" not in name} <= uids(cluster)
    after = cluster.of("CompositePodGroup")["web-0"]
    assert (after["spec"], after["metadata"]["uid"] == root["metadata"]["uid"]) == (root["spec"], False)


def test_a_root_that_is_gone_in_the_middle_of_its_replacement_is_created_with_the_right_count_before_new_pods() -> None:
    manifest = web(of_set="zone", of_group="rack")
    manifest["spec"]["template"]["podCliqueScalingGroups"][0]["minAvailable"] = 2
    cluster = cluster_with(manifest)
    cluster.settle()
    cluster.write(kinds.SCALING_GROUP.id("default", "web-0-g"), {"spec": {"replicas": 1}})
    cluster.delete(kinds.COMPOSITE_POD_GROUP.id("default", "web-0"))
    cluster.lose(*cluster.pods_of("web-0-g-0-m0"))
    root = kinds.COMPOSITE_POD_GROUP.id("default", "web-0")
    created = [operation.id for operation in cluster.plan().operations if operation.verb is Verb.CREATE]
    assert created.index(root) < next(index for index, id in enumerate(created) if id.kind == "Pod")
    cluster.settle()

    assert counts(cluster) == {"web-0": 2, "web-0-g-0.group": 2} and cluster.plan().operations == ()


def test_a_parent_counts_the_groups_that_name_it_not_those_that_would_if_they_were_created_now() -> None:
    cluster = cluster_with(web(of_set="zone", of_group="rack"))
    cluster.settle()
    cluster.configuration = replace(NATIVE, topology=False)
    cluster.settle()
    assert counts(cluster) == {"web-0": 2, "web-0-g-0.group": 2}

    cluster.delete(kinds.POD_GROUP.id("default", "web-0-g-0-m0.clique"))
    cluster.lose(*cluster.pods_of("web-0-g-0-m0"))
    cluster.live()
    cluster.settle()
    parents = {name: body["spec"].get("parentCompositePodGroupName") for name, body in cluster.of("PodGroup").items()}
    assert parents["web-0-g-0-m0.clique"] == "web-0" and parents["web-0-g-0-m1.clique"] == "web-0-g-0.group"
    assert counts(cluster) == {"web-0": 3, "web-0-g-0.group": 1} and cluster.plan().operations == ()


def test_a_group_without_pods_is_not_waited_for() -> None:
    cluster = cluster_with(web(of_set="zone", of_group="rack"))
    cluster.settle()
    for replicas, count in ((0, 1), (2, 2)):
        cluster.write(kinds.PODCLIQUE.id("default", "web-0-a"), {"spec": {"replicas": replicas}})
        cluster.settle()
        assert counts(cluster) == {"web-0": count, "web-0-g-0.group": 2} and cluster.plan().notes == ()


@pytest.mark.parametrize("of_group", ["", "rack"])
def test_pods_that_were_created_while_gangs_were_off_hold_up_neither_others_nor_an_update(of_group: str) -> None:
    manifest = web(of_set="zone", of_group=of_group)
    manifest["spec"]["template"]["cliques"][0]["spec"]["minAvailable"] = 1
    cluster = cluster_with(manifest)
    cluster.settle()
    on, off = cluster.configuration, Configuration({"default-scheduler": kube_scheduler(GangMode.OFF)}, "default-scheduler", topology=True)
    cluster.configuration = off
    cluster.lose(*cluster.of("Pod"))
    cluster.settle()
    assert cluster.members().keys() == {""}

    cluster.configuration = on
    cluster.settle()
    cluster.lose(*cluster.pods_of("web-0-a"))
    cluster.settle()
    assert cluster.bound()["web-0-a"] == 2 and counts(cluster).get("web-0", 1) == 1
    assert any("others cannot join it until they are replaced" in note for note in cluster.plan().notes)

    image = {"containers": [{"name": "main", "image": "example/main:2"}]}
    template = cluster.objects[ROOT]["spec"]["template"]
    cliques = [{**each, "spec": {**each["spec"], "podSpec": image}} for each in template["cliques"]]
    cluster.write(ROOT, {"spec": {"template": {"cliques": cliques}}})
    cluster.settle(200)
    assert {pod["spec"]["containers"][0]["image"] for pod in cluster.of("Pod").values()} == {"example/main:2"}
    assert cluster.members()[""] == 1 and counts(cluster).get("web-0", 2) == 2 and cluster.plan().notes == ()
