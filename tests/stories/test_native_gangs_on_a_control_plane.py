"""Gangs of a real kube-scheduler: whole or not at all, in one rack, through updates, lost nodes and crashes, and gone with their set."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from enginectl.base.exit_codes import Exit
from providers.kubernetes.client import KubernetesClient
from resources.base import kinds
from tests.builders import clique, group, podcliqueset
from tests.controlplane.cluster import ControlPlane
from tests.mnnvl.sets import gpus
from tests.stories.engine_processes import engine_run
from tests.stories.gang_cluster import (
    GROUPS,
    HALL,
    IN_ONE_RACK,
    NAMESPACE,
    RACK,
    RACKS,
    Body,
    add_node,
    commands,
    empty,
    fill,
    nodes_in_racks,
    placed,
    prepare,
    removed,
    run_on,
    says,
    stuck,
    whole_nodes,
    written,
)
from tests.stories.test_control_plane import connection
from tests.waiting import eventually

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

EXAMPLE = Path(__file__).parents[2] / "examples" / "12-native-gangs"


@pytest.fixture(scope="module")
def four_nodes(gang_plane: ControlPlane) -> Iterator[ControlPlane]:
    """The cluster with four nodes, each with room for one pod of these tests, in two racks."""
    with nodes_in_racks(gang_plane) as plane:
        yield plane


async def test_of_two_gangs_one_runs_whole_and_the_other_not_at_all(four_nodes: ControlPlane, tmp_path: Path) -> None:
    run = commands(four_nodes, tmp_path)
    async with connection(four_nodes, "admin") as admin:
        await prepare(admin)
        assert (await run("sync", "-f", written(tmp_path, whole_nodes("one")), "--yes", "--timeout", "60s")).code == Exit.DONE
        waiting = await stuck(run, "-f", written(tmp_path, whole_nodes("two")))

        assert all((await placed(admin, "one")).values()) and set((await placed(admin, "two")).values()) == {""}
        (line,) = [line for line in waiting.out.splitlines() if "PodGang/two-0" in line]
        assert "Unschedulable: " in line, waiting.out
        gang = await admin.get(kinds.PODGANG, NAMESPACE, "two-0")
        (scheduled,) = [each for each in gang["status"]["conditions"] if each["type"] == "Scheduled"]
        assert (scheduled["status"], scheduled["reason"]) == ("False", "Unschedulable")

        await admin.delete(kinds.PODCLIQUESET, NAMESPACE, "one")
        assert (await run("sync", "--yes", "--timeout", "60s")).code == Exit.DONE
        assert await placed(admin, "one") == {} and len(set((await placed(admin, "two")).values())) == 3
        assert (await run("diff")).out.startswith("No changes.")
        await removed(admin, run, "two")


async def test_a_gang_that_waits_in_a_cluster_without_nodes_is_told_so(four_nodes: ControlPlane, tmp_path: Path) -> None:
    run = commands(four_nodes, tmp_path)
    async with connection(four_nodes, "admin") as admin:
        await prepare(admin)
        for node in RACKS:
            await admin.delete(kinds.NODE, "", node)
        await run("sync", "-f", written(tmp_path, whole_nodes("alone")), "--yes", "--timeout", "15s", "--assume-nodes")
        status = (await run("status")).out
        assert "waits for room: 0 of its minimum of 3 pods are on nodes" in status and "the cluster has no nodes" in status, status
        for node in RACKS:
            add_node(four_nodes, node)
        assert (await run("sync", "--yes", "--timeout", "60s")).code == Exit.DONE
        await removed(admin, run, "alone")


async def test_the_example_does_what_its_readme_says(four_nodes: ControlPlane, tmp_path: Path) -> None:
    run = commands(four_nodes, tmp_path, EXAMPLE / "config" / "operator.yaml")
    async with connection(four_nodes, "admin") as admin:
        await prepare(admin)
        shown = await run("diff", "-f", EXAMPLE / "gangs.yaml")
        assert shown.code == Exit.STUCK and "6 pods need 6 nodes, one for each: 4 of 4 are free" in shown.out

        await stuck(run, "-f", EXAMPLE / "gangs.yaml")
        nodes = {name: set((await placed(admin, name)).values()) for name in ("red", "blue")}
        whole, waiting = sorted(nodes, key=lambda name: nodes[name] == {""})
        assert len(nodes[whole]) == 3 and nodes[waiting] == {""}
        status = (await run("status")).out
        assert "waits for room: 0 of its minimum of 3 pods are on nodes, 1 of the other 3 has room" in status
        assert f"on the full nodes is gang {NAMESPACE}/{whole}-0 (3 pods); the scheduler says: " in status

        assert (await run("delete", f"pcs/{whole}", "--yes", "--timeout", "60s")).code == Exit.DONE
        assert (await run("sync", "--yes", "--timeout", "60s")).code == Exit.DONE
        assert len(set((await placed(admin, waiting)).values())) == 3
        await removed(admin, run, waiting)

        racks = ("-f", EXAMPLE / "racks.yaml", "-f", EXAMPLE / "one-rack.yaml")
        assert (await run("sync", *racks, "--yes", "--timeout", "60s")).code == Exit.DONE
        assert len({RACKS[node] for node in (await placed(admin, "near")).values()}) == 1
        await removed(admin, run, "near")
        await admin.delete(kinds.TOPOLOGY_BINDING, "", "racks")


async def test_a_gang_that_no_rack_has_room_for_is_forecast_to_wait_and_waits(four_nodes: ControlPlane, tmp_path: Path) -> None:
    run = commands(four_nodes, tmp_path)
    manifest = whole_nodes("wide")
    manifest["spec"]["template"] |= IN_ONE_RACK
    async with connection(four_nodes, "admin") as admin:
        await prepare(admin)
        await admin.create(kinds.TOPOLOGY_BINDING, "", HALL)
        file = written(tmp_path, manifest)
        shown = await run("diff", "-f", file)
        assert shown.code == Exit.STUCK and f"all 3 pods must be at one value of node label {RACK}" in shown.out, shown.out

        await stuck(run, "-f", file)
        assert set((await placed(admin, "wide")).values()) == {""}
        assert f"no value of node label {RACK} has room for all of them" in (await run("status")).out
        await removed(admin, run, "wide")
        await admin.delete(kinds.TOPOLOGY_BINDING, "", "hall")


def tree() -> Body:
    """A set of a small pod and a scaling group of two pods on nodes of one rack."""
    small = {"containers": [{"name": "main", "image": "x"}]}
    cliques = (clique("front", 1, pod_spec=small), clique("l", 1, pod_spec=gpus("8")), clique("w", 1, pod_spec=gpus("8")))
    return podcliqueset("tree", *cliques, groups=(group("g", "l", "w") | IN_ONE_RACK,), namespace=NAMESPACE)


async def test_a_hierarchy_that_no_rack_has_room_for_waits_whole_and_runs_whole(four_nodes: ControlPlane, tmp_path: Path) -> None:
    run = commands(four_nodes, tmp_path)
    async with connection(four_nodes, "admin") as admin:
        await prepare(admin)
        await admin.create(kinds.TOPOLOGY_BINDING, "", HALL)
        await fill(admin, "node-a", "node-c")  # Two nodes are free, one in each rack.
        await stuck(run, "-f", written(tmp_path, tree()))
        nodes = await placed(admin, "tree")
        assert len(nodes) == 3 and set(nodes.values()) == {""}
        status = (await run("status")).out
        assert f"2 of the other 3 have room; no value of node label {RACK} has room for all of them" in status, status

        await empty(admin, "node-c")
        assert (await run("sync", "--yes", "--timeout", "60s")).code == Exit.DONE
        nodes = await placed(admin, "tree")
        assert {nodes[name] for name in nodes if name.startswith("tree-0-g-")} == {"node-c", "node-d"} and "" not in nodes.values()
        await removed(admin, run, "tree")
        await admin.delete(kinds.TOPOLOGY_BINDING, "", "hall")


async def test_a_hierarchy_keeps_a_scaling_group_in_one_rack_and_goes_from_the_pods_upwards(
    four_nodes: ControlPlane, tmp_path: Path
) -> None:
    run = commands(four_nodes, tmp_path)
    async with connection(four_nodes, "admin") as admin:
        await prepare(admin)
        await admin.create(kinds.TOPOLOGY_BINDING, "", HALL)
        for round_number in range(3):
            code = (await run("sync", "-f", written(tmp_path, tree()), "--yes", "--timeout", "60s")).code
            assert code == Exit.DONE, round_number
            nodes = {name: node for name, node in (await placed(admin, "tree")).items() if name.startswith("tree-0-g-")}
            assert len(nodes) == 2 and len({RACKS[node] for node in nodes.values()}) == 1
            names = {kind.name: len((await admin.list(kind, NAMESPACE)).items) for kind in GROUPS}
            assert names == {"PodGroup": 3, "CompositePodGroup": 2, "Workload": 1}
            await removed(admin, run, "tree")
        await admin.delete(kinds.TOPOLOGY_BINDING, "", "hall")


async def test_an_update_a_lost_node_and_a_killed_engine_end_well(four_nodes: ControlPlane, tmp_path: Path) -> None:
    async with connection(four_nodes, "admin") as admin:
        log = tmp_path / "engine.log"
        words = ("-n", NAMESPACE, "--kubeconfig", four_nodes.kubeconfig("admin"))
        with engine_run(log, *words) as killed:
            await admin.create(kinds.PODCLIQUESET, NAMESPACE, whole_nodes("life", extra=1))
            await eventually(partial(_exists, admin, "life-0"))
            killed.kill()
        with engine_run(log, *words) as engine:
            await eventually(partial(run_on, admin, "life", 4))
            groups = (await admin.list(kinds.POD_GROUP, NAMESPACE)).items
            pods = (await admin.list(kinds.POD, NAMESPACE)).items
            assert [body["metadata"]["name"] for body in groups] == ["life-0"] and len(pods) == 4
            assert sum("schedulingGroup" in pod["spec"] for pod in pods) == 3

            update = {"spec": whole_nodes("life", extra=1, image="y")["spec"]}
            await admin.patch(kinds.PODCLIQUESET, NAMESPACE, "life", update, how="merge")
            await eventually(partial(_has_image, admin, "y"))
            (after,) = (await admin.list(kinds.POD_GROUP, NAMESPACE)).items
            assert after["metadata"]["uid"] == groups[0]["metadata"]["uid"]

            leader = next(pod for pod in (await admin.list(kinds.POD, NAMESPACE)).items if pod["metadata"]["name"].startswith("life-0-l-"))
            lost = leader["spec"]["nodeName"]
            await admin.delete(kinds.NODE, "", lost)
            await admin.delete(kinds.POD, NAMESPACE, leader["metadata"]["name"], grace=0)
            await eventually(partial(says, admin, "life-0", "MembersMissing"))
            add_node(four_nodes, lost)
            await eventually(partial(run_on, admin, "life", 4))
            await eventually(partial(says, admin, "life-0", "Scheduled"))
            engine.end()
        await removed(admin, commands(four_nodes, tmp_path), "life")


async def _exists(admin: KubernetesClient, name: str) -> bool:
    return any(body["metadata"]["name"] == name for body in (await admin.list(kinds.POD_GROUP, NAMESPACE)).items)


async def _has_image(admin: KubernetesClient, image: str) -> bool:
    pods = (await admin.list(kinds.POD, NAMESPACE)).items
    return len(pods) == 4 and all(pod["spec"]["containers"][0]["image"] == image and pod["spec"].get("nodeName") for pod in pods)
