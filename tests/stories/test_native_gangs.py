"""Gangs of kube-scheduler: whole or not at all, in one rack, through updates and lost pods, and gone with their set."""

from collections.abc import Collection
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
from msgspec.structs import replace

from engine.conditions import find
from engine.forecast.forecast import End
from engine.operation import Patch
from engine.reason import Reason
from engine.runtime.sync_report import Ending, SyncReport
from providers.fabrics.nvidia.names import NAMED, NVLINK_CLIQUE_LABEL
from providers.schedulers.kube import kube_scheduler
from resources.base import kinds
from resources.base.labels import DOMAIN_PLACEMENT
from resources.ports.configuration import Configuration, GangMode
from resources.preview.shown import gang_notices
from resources.reports.summary import summary
from tests.builders import clique, group, podcliqueset
from tests.laws.test_forecast_room import assert_ends_as_forecast
from tests.mnnvl.sets import OPTED_OUT, gpu, said
from tests.stories.native import RACK, native_stage
from tests.stories.pods import asking, images, is_bound, is_ready, label
from tests.stories.stage import DEFAULT, Stage
from tests.stories.test_gangs import add_node

pytestmark = pytest.mark.anyio

NODE = {"cpu": "4", "memory": "64Gi", "pods": "20", "nvidia.com/gpu": "8"}
GROUPS = (kinds.POD_GROUP, kinds.COMPOSITE_POD_GROUP, kinds.WORKLOAD)
IN_A_RACK = {"topologyName": "hall", "pack": {"required": "rack"}}
WHOLE = asking(4)
"""A pod that takes a node."""


def gangs(nodes: int = 4, nodes_per_rack: int = 2) -> AbstractAsyncContextManager[Stage]:
    """A cluster with small nodes in small racks."""
    return native_stage(nodes=nodes, capacity=NODE, nodes_per_rack=nodes_per_rack)


def three(name: str, **template: Any) -> dict[str, Any]:
    """A set whose gang needs three nodes."""
    return podcliqueset(name, clique("l", 1, pod_spec=WHOLE), clique("w", 2, minAvailable=2, pod_spec=WHOLE), **template)


def placed(cluster: Stage, gang: str = "") -> dict[str, str]:
    """The pods of a gang, or of all, that have a node, with it."""
    pods = cluster.there(kinds.POD)
    return {name: pod["spec"]["nodeName"] for name, pod in pods.items() if is_bound(pod) and gang in ("", label(pod, "podgang"))}


def values(cluster: Stage, nodes: Collection[str], key: str) -> set[str]:
    """The values of a label on these nodes."""
    known = cluster.there(kinds.NODE)
    return {known[node]["metadata"]["labels"][key] for node in nodes}


def scheduled(cluster: Stage, gang: str) -> tuple[str, str]:
    """What the PodGang says of the scheduler."""
    condition = find(cluster.there(kinds.PODGANG)[gang]["status"]["conditions"], "Scheduled") or {}
    return condition["status"], condition["reason"]


def left(cluster: Stage) -> list[str]:
    """What is left of sets and gangs."""
    of = (*GROUPS, kinds.POD, kinds.PODGANG, kinds.PODCLIQUE, kinds.PODCLIQUESET)
    return [f"{kind.name} {name}" for kind in of for name in cluster.there(kind)]


async def test_of_two_gangs_one_runs_whole_and_the_other_not_at_all_until_there_are_nodes() -> None:
    async with gangs() as cluster, cluster.running():
        for name in ("one", "two"):
            await cluster.apply(three(name))
            await cluster.settle()
        assert len(set(placed(cluster, "one-0").values())) == 3 and placed(cluster, "two-0") == {}
        assert (scheduled(cluster, "one-0"), scheduled(cluster, "two-0")) == (("True", "Scheduled"), ("False", "Unschedulable"))

        seen = await cluster.look()
        waiting = next(
            summary(root, plan) for root, plan in zip(seen.world.roots, seen.planned.plans, strict=True) if plan.root.name == "two"
        )
        assert any("minCount (3) cannot be satisfied" in each.why for each in waiting.waits)
        warned = [event["message"] for event in cluster.there(kinds.EVENT).values() if event["reason"] == "FailedScheduling"]
        assert any("minCount (3) cannot be satisfied" in message for message in warned)

        for name in ("fifth", "sixth"):
            assert placed(cluster, "two-0") == {}
            await cluster.kubectl.create(kinds.NODE, "", {"metadata": {"name": name, "labels": {"sandbox.grove.io/simulated": "true"}}})
            await cluster.settle()
        assert len(placed(cluster, "two-0")) == 3 and scheduled(cluster, "two-0") == ("True", "Scheduled")

        for name in ("one", "two"):
            await cluster.delete(kinds.PODCLIQUESET, name)
        await cluster.settle()
        assert left(cluster) == []


async def test_sync_says_what_the_scheduler_says_and_leaves_nothing() -> None:
    async with gangs(nodes=2) as cluster:
        report = await cluster.sync(manifests=[three("big")], patience=30)
        assert report.ending is Ending.TIMED_OUT and any("minCount (3) cannot be satisfied" in each.why for each in report.pending)

        await cluster.sync(removals=cluster.removing(kinds.PODCLIQUESET, "big"))
        assert left(cluster) == []


async def test_a_gang_is_in_one_rack_or_nowhere() -> None:
    async with gangs() as cluster, cluster.running():
        await cluster.apply(podcliqueset("near", clique("w", 2, minAvailable=2, pod_spec=WHOLE), topologyConstraint=IN_A_RACK))
        await cluster.apply(three("wide", topologyConstraint=IN_A_RACK))
        await cluster.settle()

        assert len(placed(cluster, "near-0")) == 2 and len(values(cluster, placed(cluster, "near-0").values(), RACK)) == 1
        assert placed(cluster, "wide-0") == {}
        (message,) = [each["message"] for each in cluster.there(kinds.POD_GROUP)["wide-0"]["status"]["conditions"]]
        assert "0/2 placements are available" in message


async def test_pods_beyond_a_minimum_stay_in_the_rack_of_their_gang_or_wait() -> None:
    async with gangs() as cluster, cluster.running():
        await cluster.apply(podcliqueset("near", clique("w", 3, minAvailable=2, pod_spec=WHOLE), topologyConstraint=IN_A_RACK))
        await cluster.settle()
        assert len(placed(cluster, "near-0")) == 2 and len(values(cluster, placed(cluster, "near-0").values(), RACK)) == 1
        (waiting,) = (pod for pod in cluster.there(kinds.POD).values() if not is_bound(pod))
        assert not waiting["spec"].get("schedulingGates"), "The scheduler itself keeps it from the other rack."

        (rack,) = values(cluster, placed(cluster, "near-0").values(), RACK)
        labels = {"sandbox.grove.io/simulated": "true", RACK: rack}
        await cluster.kubectl.create(kinds.NODE, "", {"metadata": {"name": "new", "labels": labels}})
        await cluster.settle()
        assert len(placed(cluster, "near-0")) == 3 and values(cluster, placed(cluster, "near-0").values(), RACK) == {rack}


async def test_a_hierarchy_keeps_each_replica_of_a_group_in_one_rack_and_goes_from_the_pods_upwards() -> None:
    pool = group("g", "l", "w", replicas=2, min_available=2, topologyConstraint=IN_A_RACK)
    manifest = podcliqueset("tree", clique("front"), clique("l", pod_spec=WHOLE), clique("w", pod_spec=WHOLE), groups=(pool,))
    async with gangs() as cluster:
        assert (await cluster.sync(manifests=[manifest])).ending is Ending.DONE
        assert [len(cluster.there(kind)) for kind in GROUPS] == [5, 3, 1]
        for index in (0, 1):
            nodes = [node for name, node in placed(cluster).items() if name.startswith(f"tree-0-g-{index}-")]
            assert len(set(nodes)) == 2 and len(values(cluster, nodes, RACK)) == 1

        await cluster.sync(removals=cluster.removing(kinds.PODCLIQUESET, "tree"))
        assert left(cluster) == []


async def test_the_groups_of_a_replica_scaled_in_below_the_minimum_of_a_hierarchy_go_with_it() -> None:
    pool = group("g", "l", "w", replicas=2, min_available=2, topologyConstraint=IN_A_RACK)
    manifest = podcliqueset("tree", clique("front"), clique("l", pod_spec=WHOLE), clique("w", pod_spec=WHOLE), groups=(pool,))
    async with gangs() as cluster:
        await cluster.sync(manifests=[manifest])
        await cluster.kubectl.patch(kinds.SCALING_GROUP, "default", "tree-0-g", {"spec": {"replicas": 1}})
        assert (await cluster.sync()).ending is Ending.DONE
        assert [len(cluster.there(kind)) for kind in GROUPS] == [3, 2, 1]

        (leader,) = (name for name in placed(cluster) if name.startswith("tree-0-g-0-l-"))
        await cluster.kubectl.delete(kinds.POD, "default", leader, grace=0)
        assert (await cluster.sync()).ending is Ending.DONE and len(placed(cluster)) == 3

        await cluster.kubectl.patch(kinds.PODCLIQUE, "default", "tree-0-front", {"spec": {"replicas": 0}})
        await cluster.sync()
        await cluster.kubectl.delete(kinds.POD, "default", leader, grace=0)
        assert (await cluster.sync()).ending is Ending.DONE and len(placed(cluster)) == 2


@pytest.mark.parametrize(("workers", "end"), [(1, End.SETTLED), (2, End.STUCK)])
async def test_whether_pods_beyond_the_minimum_have_room_in_the_rack_of_a_hierarchy_is_as_forecast(workers: int, end: End) -> None:
    cliques = clique("front"), clique("l", pod_spec=WHOLE), clique("w", workers, minAvailable=1, pod_spec=WHOLE)
    async with gangs() as cluster:
        manifest = podcliqueset("demo", *cliques, groups=(group("g", "l", "w", topologyConstraint=IN_A_RACK),))
        assert await assert_ends_as_forecast(cluster, manifest) is end
        nodes = [node for name, node in placed(cluster).items() if "-g-0-" in name]
        assert len(nodes) == 2 and len(values(cluster, nodes, RACK)) == 1


async def test_a_domain_that_asks_for_it_is_in_one_nvlink_clique() -> None:
    workers = gpu("w", 3, minAvailable=3, annotations={NAMED: "team"})
    manifest = said(podcliqueset("llm", workers), {**OPTED_OUT, DOMAIN_PLACEMENT: "required"})
    async with gangs(nodes=6, nodes_per_rack=3) as cluster:
        await cluster.sync(manifests=[podcliqueset("other", clique("w", pod_spec=WHOLE))])
        assert (await cluster.sync(manifests=[manifest])).ending is Ending.DONE

        (key,) = cluster.there(kinds.POD_GROUP)["llm-0"]["spec"]["schedulingConstraints"]["topology"]
        assert key == {"key": NVLINK_CLIQUE_LABEL}
        assert len(values(cluster, placed(cluster, "llm-0").values(), NVLINK_CLIQUE_LABEL)) == 1


async def test_pods_beyond_the_minimum_take_what_is_left() -> None:
    async with gangs(nodes=3) as cluster, cluster.running():
        await cluster.apply(podcliqueset("web", clique("a", 3, minAvailable=1, pod_spec=WHOLE), clique("b", 1, pod_spec=WHOLE)))
        await cluster.settle()
        assert {label(cluster.there(kinds.POD)[name], "podclique") for name in placed(cluster)} == {"web-0-a", "web-0-b"}
        assert len(placed(cluster)) == 3
        grouped = [pod for pod in cluster.there(kinds.POD).values() if "schedulingGroup" in pod["spec"]]
        assert len(grouped) == 2 and all(map(is_bound, grouped))


async def test_a_gang_lives_through_an_update_and_scaling_in_its_group() -> None:
    async with gangs(nodes=6) as cluster, cluster.running():
        manifest = podcliqueset("web", clique("w", 3, minAvailable=2, pod_spec=WHOLE))
        await cluster.apply(manifest)
        await cluster.settle()
        before = cluster.there(kinds.POD_GROUP)["web-0"]["metadata"]["uid"]

        manifest["spec"]["template"]["cliques"][0]["spec"]["podSpec"] = {
            "containers": [{**WHOLE["containers"][0], "image": "example/worker:2"}]
        }
        await cluster.apply(manifest)
        await cluster.settle()
        assert images(cluster.there(kinds.POD).values()) == {"example/worker:2"} and len(placed(cluster)) == 3

        for replicas in (5, 2, 4):
            await cluster.scale(kinds.PODCLIQUE, "web-0-w", replicas)
            await cluster.settle()
            assert len(placed(cluster)) == replicas and all(map(is_ready, cluster.there(kinds.POD).values()))
        assert cluster.there(kinds.POD_GROUP)["web-0"]["metadata"]["uid"] == before


async def test_the_minimum_of_a_group_changes_because_its_clique_is_scaled_or_its_pods_change() -> None:
    def why(report: SyncReport[Configuration]) -> list[Reason]:
        done = (result.operation for result in report.results)
        return [each.reason for each in done if each.id.kind == kinds.POD_GROUP.name and isinstance(each, Patch)]

    async with gangs() as cluster:
        assert why(await cluster.sync(manifests=[podcliqueset("web", clique("w", 3, minAvailable=2, pod_spec=WHOLE))])) == []
        await cluster.scale(kinds.PODCLIQUE, "web-0-w", 1)
        assert why(await cluster.sync()) == [Reason.SCALED_IN]
        await cluster.scale(kinds.PODCLIQUE, "web-0-w", 3)
        assert why(await cluster.sync()) == [Reason.SCALED_OUT]


async def test_a_gang_that_comes_back_from_no_replicas_takes_no_node_until_all_of_it_has_room() -> None:
    async with gangs(nodes=3) as cluster:
        await cluster.sync(manifests=[podcliqueset("web", clique("w", 3, minAvailable=3, pod_spec=WHOLE))])
        await cluster.scale(kinds.PODCLIQUE, "web-0-w", 0)
        await cluster.sync()
        await cluster.kubectl.delete(kinds.NODE, "", next(iter(cluster.there(kinds.NODE))))

        await cluster.scale(kinds.PODCLIQUE, "web-0-w", 3)
        await cluster.sync(patience=60)
        assert len(cluster.there(kinds.POD)) == 3 and placed(cluster) == {}
        await add_node(cluster, "third")
        assert (await cluster.sync()).ending is Ending.DONE and len(placed(cluster)) == 3


async def test_pods_beyond_the_minimum_wait_for_members_also_once_gangs_are_off_and_on_again() -> None:
    async with gangs(nodes=2) as cluster:
        await cluster.apply(podcliqueset("web", clique("l", 1, pod_spec=WHOLE), clique("w", 4, minAvailable=2, pod_spec=WHOLE)))
        on = cluster.setup
        for setup in (on, replace(on, schedulers={DEFAULT: kube_scheduler(GangMode.OFF)}), on):
            cluster.setup = setup
            assert (await cluster.sync(patience=60)).ending is not Ending.DONE
            gated = [bool(pod["spec"].get("schedulingGates")) for pod in cluster.there(kinds.POD).values()]
            assert sorted(gated) == [False] * 3 + [True] * 2 and placed(cluster) == {}, setup

        cluster.setup = replace(on, schedulers={DEFAULT: kube_scheduler(GangMode.OFF)})
        seen = await cluster.look()
        (note,) = (text for text in gang_notices(seen.world, seen.planned.plans, cluster.setup) if "web-0" in text)
        assert note.startswith("the pods of default/web-0 wait in PodGroups of kube-scheduler")
        await cluster.delete(kinds.POD, next(name for name, pod in cluster.there(kinds.POD).items() if pod["spec"].get("schedulingGates")))
        await cluster.scale(kinds.PODCLIQUE, "web-0-w", 5)
        await cluster.sync(patience=60)
        assert len(cluster.there(kinds.POD)) == 6 and placed(cluster) == {}
        await add_node(cluster, "third")
        await cluster.sync(patience=60)
        assert {name for name, pod in cluster.there(kinds.POD).items() if "schedulingGroup" in pod["spec"]} == set(placed(cluster))
        assert not any(pod["spec"].get("schedulingGates") for pod in cluster.there(kinds.POD).values())


async def test_replicas_and_scaled_gangs_come_and_go_with_groups_of_their_own() -> None:
    groups = (group("g", "w", replicas=2, min_available=1),)
    async with gangs(nodes=6) as cluster, cluster.running():
        await cluster.apply(podcliqueset("llm", clique("w", 2, pod_spec=WHOLE), groups=groups))
        await cluster.settle()
        assert set(cluster.there(kinds.POD_GROUP)) == {"llm-0", "llm-0-g-0"} and len(placed(cluster)) == 4

        await cluster.scale(kinds.SCALING_GROUP, "llm-0-g", 1)
        await cluster.settle()
        assert set(cluster.there(kinds.POD_GROUP)) == {"llm-0"} and len(placed(cluster)) == 2

        await cluster.scale(kinds.PODCLIQUESET, "llm", 2)
        await cluster.settle()
        assert set(cluster.there(kinds.POD_GROUP)) == {"llm-0", "llm-1", "llm-1-g-0"} and len(placed(cluster)) == 6

        await cluster.scale(kinds.PODCLIQUESET, "llm", 1)
        await cluster.settle()
        assert set(cluster.there(kinds.POD_GROUP)) == {"llm-0"} and len(placed(cluster)) == 2


async def test_a_gang_that_is_terminated_starts_whole_again() -> None:
    async with gangs(nodes=3) as cluster, cluster.running():
        await cluster.apply(three("llm", terminationDelay="10m"))
        await cluster.settle()
        before = {pod["metadata"]["uid"] for pod in cluster.there(kinds.POD).values()}
        for name in cluster.there(kinds.POD):
            cluster.fail(name, "unready")
        await cluster.clock.advance(11 * 60)
        await cluster.settle()

        after = cluster.there(kinds.POD).values()
        assert len(placed(cluster)) == 3 and before.isdisjoint(pod["metadata"]["uid"] for pod in after)
        assert all(is_ready(pod) and pod["spec"]["schedulingGroup"] == {"podGroupName": "llm-0"} for pod in after)


async def test_a_lost_member_is_replaced_alone() -> None:
    async with gangs(nodes=4) as cluster, cluster.running():
        cliques = clique("l", 1, pod_spec=WHOLE), clique("w", 3, minAvailable=2, pod_spec=WHOLE)
        await cluster.apply(podcliqueset("web", *cliques))
        await cluster.settle()
        ((leader, node),) = [(name, node) for name, node in placed(cluster).items() if name.startswith("web-0-l-")]
        await cluster.kubectl.delete(kinds.NODE, "", node)
        await cluster.kubectl.delete(kinds.POD, "default", leader, grace=0)
        await cluster.settle()
        assert scheduled(cluster, "web-0") == ("False", "MembersMissing") and len(placed(cluster)) == 3

        await cluster.kubectl.create(kinds.NODE, "", {"metadata": {"name": "new", "labels": {"sandbox.grove.io/simulated": "true"}}})
        await cluster.settle()
        assert scheduled(cluster, "web-0") == ("True", "Scheduled") and len(placed(cluster)) == 4
