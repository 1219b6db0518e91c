"""Gangs of a real kube-scheduler while they change: scaled, edited, recycled, short of room; nothing is created twice and nothing left."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from engine.conditions import is_true
from engine.observed import moment
from engine.runtime.sync_report import Ending
from enginectl.base.exit_codes import Exit
from providers.kubernetes.client import KubernetesClient
from providers.schedulers.kube import kube_scheduler
from resources.base import kinds
from resources.lifecycle.availability import FIRST_MOMENTS, SCHEDULED
from resources.ports.configuration import GangMode
from tests.builders import clique, group, podcliqueset
from tests.controlplane.cluster import ControlPlane
from tests.mnnvl.sets import gpus
from tests.stories.engine_processes import engine_run
from tests.stories.gang_cluster import (
    GROUPS,
    HALL,
    IN_ONE_RACK,
    NAMESPACE,
    RACKS,
    Body,
    add_node,
    commands,
    empty,
    fill,
    is_gated,
    is_member,
    left,
    minimums,
    nodes_in_racks,
    placed,
    pods_of,
    prepare,
    removed,
    run_on,
    stuck,
    uids,
    whole_nodes,
    written,
)
from tests.stories.stage import DEFAULT, SETUP
from tests.stories.test_control_plane import Audit, connection, synced
from tests.waiting import eventually

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

NATIVE = replace(SETUP, schedulers={DEFAULT: kube_scheduler(GangMode.AUTO)})
SMALL = {"containers": [{"name": "main", "image": "x"}]}


@pytest.fixture(scope="module")
def four_nodes(gang_plane: ControlPlane) -> Iterator[ControlPlane]:
    """The cluster with four nodes, each with room for one whole-node pod of these tests."""
    with nodes_in_racks(gang_plane) as plane:
        yield plane


def grouped() -> Body:
    """A set of a clique with pods beyond its minimum, and a scaling group each further replica of which is a gang of two whole nodes."""
    cliques = (clique("a", 4, pod_spec=SMALL, minAvailable=2), clique("l", pod_spec=gpus("8")), clique("w", pod_spec=gpus("8")))
    return podcliqueset("web", *cliques, groups=(group("g", "l", "w"),), namespace=NAMESPACE)


async def scale(admin: KubernetesClient, kind: Any, name: str, replicas: int) -> None:
    """`kubectl scale`, as an autoscaler does it."""
    await admin.patch(kind, NAMESPACE, name, {"spec": {"replicas": replicas}}, subresource="scale")


async def test_gangs_follow_autoscalers_with_few_writes_and_as_forecast(four_nodes: ControlPlane) -> None:
    async with connection(four_nodes, "admin") as admin:
        await prepare(admin)
        audit = Audit(four_nodes)

        async def settled() -> Audit:
            report = await synced(four_nodes, NAMESPACE, NATIVE)
            assert (report.ending, report.failures) == (Ending.DONE, ()), [(wait.id.name, wait.why) for wait in report.pending]
            assert audit.read().refused == []
            return audit

        await admin.create(kinds.PODCLIQUESET, NAMESPACE, grouped())
        writes = (await settled()).writes
        assert (writes["create podgroups"], writes["create pods"]) == (1, 6) and await minimums(admin) == {"web-0": 4}
        assert (await settled()).writes.total() == 0

        await scale(admin, kinds.SCALING_GROUP, "web-0-g", 2)
        writes = (await settled()).writes
        assert (writes["create podgroups"], writes["create pods"], writes["delete pods"]) == (1, 2, 0)
        assert await minimums(admin) == {"web-0": 4, "web-0-g-0": 2}
        await scale(admin, kinds.SCALING_GROUP, "web-0-g", 1)
        writes = (await settled()).writes
        assert (writes["create pods"], writes["delete pods"]) == (0, 2) and await minimums(admin) == {"web-0": 4}

        # Below its minimum the clique needs the pods that it has; above it the new pods of the minimum are members again.
        await scale(admin, kinds.PODCLIQUE, "web-0-a", 1)
        writes = (await settled()).writes
        assert (writes["patch podgroups"], writes["delete pods"]) == (1, 3) and await minimums(admin) == {"web-0": 3}
        await scale(admin, kinds.PODCLIQUE, "web-0-a", 5)
        writes = (await settled()).writes
        assert (writes["create pods"], writes["delete pods"]) == (4, 0) and await minimums(admin) == {"web-0": 4}
        pods = (await pods_of(admin, "web")).values()
        assert (len(pods), sum(map(is_member, pods)), any(map(is_gated, pods))) == (7, 4, False)
        assert (await settled()).writes.total() == 0

        await admin.delete(kinds.PODCLIQUESET, NAMESPACE, "web", propagation="Background")
        await settled()
        assert await left(admin) == []


async def test_a_scaled_gang_without_room_takes_no_node_and_an_update_creates_nothing_twice(four_nodes: ControlPlane) -> None:
    async with connection(four_nodes, "admin") as admin:
        await prepare(admin)
        await fill(admin, "node-d")
        await admin.create(kinds.PODCLIQUESET, NAMESPACE, grouped())
        assert (await synced(four_nodes, NAMESPACE, NATIVE)).ending is Ending.DONE

        await scale(admin, kinds.SCALING_GROUP, "web-0-g", 2)  # One node is free, and it needs two.
        assert (await synced(four_nodes, NAMESPACE, NATIVE, patience=8)).ending is not Ending.DONE
        scaled = {name: node for name, node in (await placed(admin, "web")).items() if name.startswith("web-0-g-1-")}
        assert len(scaled) == 2 and set(scaled.values()) == {""}
        await empty(admin, "node-d")
        assert (await synced(four_nodes, NAMESPACE, NATIVE)).ending is Ending.DONE
        groups, audit = await uids(admin, kinds.POD_GROUP), Audit(four_nodes)

        changed = grouped()
        for each in changed["spec"]["template"]["cliques"]:
            each["spec"]["podSpec"] = {"containers": [{**each["spec"]["podSpec"]["containers"][0], "image": "example/model:2"}]}
        await admin.patch(kinds.PODCLIQUESET, NAMESPACE, "web", {"spec": changed["spec"]}, how="merge")
        assert (await synced(four_nodes, NAMESPACE, NATIVE)).ending is Ending.DONE
        writes = audit.read().writes
        pods = (await pods_of(admin, "web")).values()
        assert {pod["spec"]["containers"][0]["image"] for pod in pods} == {"example/model:2"} and len(pods) == 8
        assert (writes["create pods"], writes["delete pods"], writes["create podgroups"]) == (8, 8, 0)
        assert (await uids(admin, kinds.POD_GROUP), sum(map(is_member, pods))) == (groups, 6)

        await admin.delete(kinds.PODCLIQUESET, NAMESPACE, "web", propagation="Background")
        await synced(four_nodes, NAMESPACE, NATIVE)
        assert await left(admin) == []


async def test_a_gang_that_comes_back_from_no_replicas_takes_no_node_until_all_of_it_has_room(
    four_nodes: ControlPlane, tmp_path: Path
) -> None:
    run = commands(four_nodes, tmp_path)
    async with connection(four_nodes, "admin") as admin:
        await prepare(admin)
        manifest = podcliqueset("back", clique("w", 3, pod_spec=gpus("8")), namespace=NAMESPACE)
        assert (await run("sync", "-f", written(tmp_path, manifest), "--yes", "--timeout", "60s")).code == Exit.DONE
        await scale(admin, kinds.PODCLIQUE, "back-0-w", 0)
        assert (await run("sync", "--yes", "--timeout", "60s")).code == Exit.DONE
        await fill(admin, "node-c", "node-d")

        await scale(admin, kinds.PODCLIQUE, "back-0-w", 3)
        assert "minCount: 1 → 3 in PodGroup/back-0   ScaledOut" in (await run("diff")).out
        assert (await run("sync", "--yes", "--timeout", "10s")).code != Exit.DONE
        assert list((await placed(admin, "back")).values()) == ["", "", ""]
        await empty(admin, "node-c")
        assert (await run("sync", "--yes", "--timeout", "60s")).code == Exit.DONE and await run_on(admin, "back", 3)
        await removed(admin, run, "back")


async def test_pods_beyond_the_minimum_are_gated_until_it_has_nodes(four_nodes: ControlPlane, tmp_path: Path) -> None:
    run = commands(four_nodes, tmp_path)
    async with connection(four_nodes, "admin") as admin:
        await prepare(admin)
        await fill(admin, "node-c", "node-d")
        await stuck(run, "-f", written(tmp_path, whole_nodes("more", extra=2)))
        pods = (await pods_of(admin, "more")).values()
        assert [is_gated(pod) for pod in pods if not is_member(pod)] == [True, True]
        shown = await run("why", f"pod/{next(pod['metadata']['name'] for pod in pods if is_gated(pod))}")
        assert "it is beyond the minimum of its gang more-0, which has not its minimum: more-0-l has 0 of 1 pods scheduled" in shown.out
        assert "do: engine why podgang/more-0 -n gangs" in shown.out and "podgang/ " not in (await run("status")).out
        assert [is_gated(pod) for pod in pods if is_member(pod)] == [False] * 3
        assert set((await placed(admin, "more")).values()) == {""}

        await empty(admin, "node-c")
        await run("sync", "--yes", "--timeout", "15s")
        pods = (await pods_of(admin, "more")).values()
        assert [bool(pod["spec"].get("nodeName")) for pod in pods if is_member(pod)] == [True] * 3
        assert [(bool(pod["spec"].get("nodeName")), is_gated(pod)) for pod in pods if not is_member(pod)] == [(False, False)] * 2

        await empty(admin, "node-d")
        await eventually(partial(run_on_nodes, admin, "more", 4))
        await removed(admin, run, "more")


async def test_pods_beyond_the_minimum_stay_in_the_rack_of_their_gang(four_nodes: ControlPlane, tmp_path: Path) -> None:
    run = commands(four_nodes, tmp_path)
    cliques = (clique("w", 3, minAvailable=2, pod_spec=gpus("8")),)
    near = podcliqueset("near", *cliques, namespace=NAMESPACE, topologyConstraint=IN_ONE_RACK["topologyConstraint"])
    async with connection(four_nodes, "admin") as admin:
        await prepare(admin)
        await admin.create(kinds.TOPOLOGY_BINDING, "", HALL)
        # A rack has two nodes, and the other one is empty.
        await stuck(run, "-f", written(tmp_path, near))
        nodes = [RACKS[node] for node in (await placed(admin, "near")).values() if node]
        assert len(nodes) == 2 and len(set(nodes)) == 1
        await removed(admin, run, "near")
        await admin.delete(kinds.TOPOLOGY_BINDING, "", "hall")


async def test_the_groups_of_a_replica_scaled_in_below_the_minimum_of_a_hierarchy_go_and_come_back(
    four_nodes: ControlPlane, tmp_path: Path
) -> None:
    run = commands(four_nodes, tmp_path)
    cliques = (clique("front", pod_spec=SMALL), clique("l", pod_spec=gpus("8")), clique("w", pod_spec=gpus("8")))
    pools = (group("g", "l", "w", replicas=2, min_available=2) | IN_ONE_RACK,)
    async with connection(four_nodes, "admin") as admin:
        await prepare(admin)
        await admin.create(kinds.TOPOLOGY_BINDING, "", HALL)
        tree = written(tmp_path, podcliqueset("tree", *cliques, groups=pools, namespace=NAMESPACE))
        assert (await run("sync", "-f", tree, "--yes", "--timeout", "60s")).code == Exit.DONE
        assert [len(await uids(admin, kind)) for kind in GROUPS] == [5, 3, 1]

        await scale(admin, kinds.SCALING_GROUP, "tree-0-g", 1)
        assert "CompositePodGroup/tree-0" in (await run("diff")).out
        assert (await run("sync", "--yes", "--timeout", "60s")).code == Exit.DONE
        assert [len(await uids(admin, kind)) for kind in GROUPS] == [3, 2, 1]

        # The root needs the groups that are left, so a pod that is lost comes back; also if the engine ends in the middle.
        for _ in range(2):
            before = await uids(admin, kinds.POD)
            leader = next(name for name in before if name.startswith("tree-0-g-0-l-"))
            await admin.delete(kinds.POD, NAMESPACE, leader, grace=0)
            assert (await run("sync", "--yes", "--timeout", "60s")).code == Exit.DONE
            assert [bool(node) for node in (await placed(admin, "tree")).values()] == [True] * 3
            assert len(before.items() & (await uids(admin, kinds.POD)).items()) == 2
            assert (await minimum_groups(admin))["tree-0"] == 2
            await admin.delete(kinds.COMPOSITE_POD_GROUP, NAMESPACE, "tree-0")

        # Nor is a clique without pods waited for.
        await scale(admin, kinds.PODCLIQUE, "tree-0-front", 0)
        assert (await run("sync", "--yes", "--timeout", "60s")).code == Exit.DONE
        await admin.delete(kinds.POD, NAMESPACE, leader, grace=0)
        assert (await run("sync", "--yes", "--timeout", "60s")).code == Exit.DONE
        assert [bool(node) for node in (await placed(admin, "tree")).values()] == [True] * 2
        await scale(admin, kinds.PODCLIQUE, "tree-0-front", 1)
        assert (await run("sync", "--yes", "--timeout", "60s")).code == Exit.DONE

        before = await uids(admin, kinds.POD)
        await scale(admin, kinds.SCALING_GROUP, "tree-0-g", 2)
        assert (await run("sync", "--yes", "--timeout", "60s")).code == Exit.DONE
        assert [len(await uids(admin, kind)) for kind in GROUPS] == [5, 3, 1]
        assert [bool(node) for node in (await placed(admin, "tree")).values()] == [True] * 5
        assert before.items() < (await uids(admin, kinds.POD)).items() and (await minimum_groups(admin))["tree-0"] == 3
        assert (await run("diff")).out.startswith("No changes.")
        await removed(admin, run, "tree")
        await admin.delete(kinds.TOPOLOGY_BINDING, "", "hall")


async def minimum_groups(admin: KubernetesClient) -> dict[str, int]:
    """CompositePodGroup -> the least number of groups below it."""
    groups = (await admin.list(kinds.COMPOSITE_POD_GROUP, NAMESPACE)).items
    return {body["metadata"]["name"]: body["spec"]["schedulingPolicy"]["gang"]["minGroupCount"] for body in groups}


async def run_on_nodes(admin: KubernetesClient, name: str, number: int) -> bool:
    """Whether so many pods of a set are on nodes; others may wait."""
    return sum(map(bool, (await placed(admin, name)).values())) == number


async def test_a_gang_that_has_lost_a_member_for_too_long_is_recycled_and_takes_no_node_until_all_fit(
    four_nodes: ControlPlane, tmp_path: Path
) -> None:
    words = ("-n", NAMESPACE, "--kubeconfig", four_nodes.kubeconfig("admin"))
    async with connection(four_nodes, "admin") as admin:
        await prepare(admin)
        await fill(admin, "node-d")
        with engine_run(tmp_path / "engine.log", *words) as engine:
            await admin.create(kinds.PODCLIQUESET, NAMESPACE, whole_nodes("frail", terminationDelay="8s"))
            await eventually(partial(run_on, admin, "frail", 3))
            await eventually(partial(_has_run, admin))
            before = await uids(admin, kinds.PODCLIQUE)

            leader, pod = next((name, pod) for name, pod in (await pods_of(admin, "frail")).items() if name.startswith("frail-0-l-"))
            lost = pod["spec"]["nodeName"]
            await admin.delete(kinds.NODE, "", lost)
            await admin.delete(kinds.POD, NAMESPACE, leader, grace=0)
            await eventually(partial(_is_recycled, admin, before))
            await eventually(partial(run_on_nodes, admin, "frail", 0))
            assert set(await minimums(admin)) == {"frail-0"}

            add_node(four_nodes, lost)
            await eventually(partial(run_on, admin, "frail", 3))
            engine.end()
        await removed(admin, commands(four_nodes, tmp_path), "frail")


async def _has_run(admin: KubernetesClient) -> bool:
    """Whether all cliques are known to have been scheduled, and are so old that what becomes of them now is no part of their creation."""
    cliques = (await admin.list(kinds.PODCLIQUE, NAMESPACE)).items
    ages = [datetime.now(UTC) - moment(body["metadata"]["creationTimestamp"]) for body in cliques]
    return min(ages) > FIRST_MOMENTS + timedelta(seconds=1) and all(is_true(body["status"]["conditions"], SCHEDULED) for body in cliques)


async def _is_recycled(admin: KubernetesClient, before: dict[str, str]) -> bool:
    """Whether all cliques are others, and all of their pods exist again."""
    now = await uids(admin, kinds.PODCLIQUE)
    return now.keys() == before.keys() and not set(now.values()) & set(before.values()) and len(await placed(admin, "frail")) == 3


async def test_pods_that_start_in_order_are_members_from_the_beginning(four_nodes: ControlPlane, tmp_path: Path) -> None:
    run = commands(four_nodes, tmp_path)
    manifest = whole_nodes("ordered", cliqueStartupType="CliqueStartupTypeInOrder")
    async with connection(four_nodes, "admin") as admin:
        await prepare(admin)
        await fill(admin, "node-c", "node-d")
        file = written(tmp_path, manifest)
        await stuck(run, "-f", file)
        pods = await pods_of(admin, "ordered")
        assert len(pods) == 3 and all(map(is_member, pods.values())) and not any(map(is_gated, pods.values()))
        waiters = {name.rsplit("-", 1)[0]: len(pod["spec"].get("initContainers", ())) for name, pod in pods.items()}
        assert waiters == {"ordered-0-l": 0, "ordered-0-w": 1} and set((await placed(admin, "ordered")).values()) == {""}

        await empty(admin, "node-c")
        assert (await run("sync", "--yes", "--timeout", "60s")).code == Exit.DONE
        assert await run_on(admin, "ordered", 3) and await minimums(admin) == {"ordered-0": 3}
        await removed(admin, run, "ordered")
