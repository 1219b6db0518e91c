"""Gangs of a real kube-scheduler beside what was there before: pods placed one by one, PodGroups of others, clusters without any."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from engine.paths import get
from enginectl.base.exit_codes import Exit
from resources.base import kinds
from tests.builders import clique, group, podcliqueset
from tests.controlplane.cluster import PARTS, ControlPlane, binary, kill, part_flags, start
from tests.controlplane.fixtures import scheduling_gangs, started
from tests.controlplane.gangs import FLAT_GATES
from tests.stories.gang_cluster import (
    HALL,
    IN_ONE_RACK,
    NAMESPACE,
    commands,
    empty,
    fill,
    is_member,
    minimums,
    mode,
    nodes_in_racks,
    placed,
    pods_of,
    prepare,
    removed,
    stuck,
    uids,
    whole_nodes,
    written,
)
from tests.stories.test_control_plane import connection
from tests.waiting import eventually

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

WITHOUT_GATE = "said nothing of the group for a minute: its feature gate GenericWorkload is off, and it places pods one by one"
NOT_SERVED = "gangScheduling of default-scheduler is Require, and the cluster does not serve PodGroup of scheduling.k8s.io/v1beta1"


@pytest.fixture(scope="module")
def four_nodes(gang_plane: ControlPlane) -> Iterator[ControlPlane]:
    """The cluster with four nodes, each with room for one pod of these tests."""
    with nodes_in_racks(gang_plane) as plane:
        yield plane


@pytest.fixture(scope="module")
def without_gangs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A cluster that does not serve PodGroups."""
    with started(tmp_path_factory, ["kcm"], gangs="") as plane:
        yield plane


@pytest.fixture(scope="module")
def without_topology(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A cluster with the four nodes that schedules gangs, and whose API server drops their topology."""
    with scheduling_gangs(tmp_path_factory, ["kcm", "scheduler", "kwok"], FLAT_GATES) as plane, nodes_in_racks(plane):
        yield plane


@pytest.fixture
def without_gate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A cluster with the four nodes that serves PodGroups, and whose scheduler knows nothing of them."""
    with scheduling_gangs(tmp_path_factory, ["kcm", "kwok"]) as plane, nodes_in_racks(plane):
        start_scheduler(replace(plane, gangs=""))
        yield plane


def start_scheduler(plane: ControlPlane) -> None:
    """Start the scheduler with the feature gates of the plane."""
    start(plane.folder, binary(PARTS["scheduler"]), part_flags(plane, "scheduler"))


async def test_preflight_says_that_the_scheduler_lacks_its_gate_until_it_has_it(without_gate: ControlPlane, tmp_path: Path) -> None:
    run, strict = commands(without_gate, tmp_path), commands(without_gate, tmp_path, mode("Require"))

    async def is_told() -> bool:
        return WITHOUT_GATE in (await run("preflight")).out

    async def is_placed() -> bool:
        return all((await placed(admin, "half")).values())

    async with connection(without_gate, "admin") as admin:
        await prepare(admin)
        await fill(admin, "node-c", "node-d")
        await stuck(run, "-f", written(tmp_path, whole_nodes("half")))
        nodes = await placed(admin, "half")
        assert len(set(nodes.values()) - {""}) == 2 and len(nodes) == 3, "It places them one by one."
        assert not await is_told()

        await eventually(is_told)
        checked = await strict("preflight")
        assert checked.code == Exit.PREFLIGHT and WITHOUT_GATE in checked.out
        assert "do: start kube-scheduler with --feature-gates=GenericWorkload=true" in checked.out
        said = "kube-scheduler has said nothing of PodGroup half-0 for a minute: its feature gate GenericWorkload is probably off"
        for words in (("status",), ("why", "podgang/half-0")):
            assert (await run(*words)).out.count(said) == 1, words

        kill(without_gate.folder, PARTS["scheduler"])
        start_scheduler(without_gate)
        await empty(admin, "node-c")
        await eventually(is_placed)
        checked = await strict("preflight")
        assert WITHOUT_GATE not in checked.out and "gangs" in checked.out, checked.out
        await removed(admin, run, "half")


async def test_a_gang_runs_without_the_topology_that_the_server_drops_and_one_sentence_says_so(
    without_topology: ControlPlane, tmp_path: Path
) -> None:
    run, file = (
        commands(without_topology, tmp_path),
        written(tmp_path, whole_nodes("wide", topologyConstraint=IN_ONE_RACK["topologyConstraint"])),
    )
    async with connection(without_topology, "admin") as admin:
        await prepare(admin)
        await admin.create(kinds.TOPOLOGY_BINDING, "", HALL)
        assert (await run("sync", "-f", file, "--yes", "--timeout", "60s")).code == Exit.DONE
        # No rack has three nodes.
        assert await minimums(admin) == {"wide-0": 3} and len(set((await placed(admin, "wide")).values()) - {""}) == 3

        shown = await run("diff")
        assert shown.code == Exit.DONE and "\nNo changes." in shown.out, shown
        assert (shown.out + shown.err).count("topology constraints have no effect") == 1, shown
        gang = await admin.get(kinds.PODGANG, NAMESPACE, "wide-0")
        assert gang["metadata"]["annotations"]["engine.grove.io/gang-topology"] == "unsupported"
        assert (await run("delete", "wide", "--yes", "--timeout", "60s")).code == Exit.DONE
        assert not await minimums(admin) and not await placed(admin, "wide")


async def test_a_fleet_that_runs_stays_as_it_is_and_new_replicas_are_gangs(four_nodes: ControlPlane, tmp_path: Path) -> None:
    before, after = commands(four_nodes, tmp_path, mode("Off")), commands(four_nodes, tmp_path)
    manifest = whole_nodes("old")
    manifest["spec"]["template"]["cliques"][1]["spec"] |= {"replicas": 1, "minAvailable": 1}
    async with connection(four_nodes, "admin") as admin:
        await prepare(admin)
        assert (await before("sync", "-f", written(tmp_path, manifest), "--yes", "--timeout", "60s")).code == Exit.DONE
        running = await uids(admin, kinds.POD)
        assert await minimums(admin) == {} and len(running) == 2

        shown = await after("diff")
        note = f"the pods of {NAMESPACE}/old-0 are placed one by one until they are created anew"
        assert shown.code == Exit.DONE and shown.out.startswith("No changes.") and note in shown.out + shown.err, shown
        status = await after("status")
        assert note in status.out + status.err
        assert (await after("sync", "--yes", "--timeout", "60s")).code == Exit.DONE
        assert await uids(admin, kinds.POD) == running and await minimums(admin) == {}

        manifest["spec"]["replicas"] = 2
        assert (await after("sync", "-f", written(tmp_path, manifest), "--yes", "--timeout", "60s")).code == Exit.DONE
        pods = await pods_of(admin, "old")
        assert running.items() <= (await uids(admin, kinds.POD)).items() and await minimums(admin) == {"old-1": 2}
        assert {name for name, pod in pods.items() if is_member(pod)} == pods.keys() - running.keys()
        assert note in (shown := await after("diff")).out + shown.err

        # A member that is lost in the old gang comes back as its others are: by itself.
        lost = next(iter(running))
        await admin.delete(kinds.POD, NAMESPACE, lost, grace=0)
        assert (await after("sync", "--yes", "--timeout", "60s")).code == Exit.DONE
        assert await minimums(admin) == {"old-1": 2} and "" not in (await placed(admin, "old")).values()
        await removed(admin, after, "old")


async def test_gangs_that_are_switched_off_and_on_again_are_whole_after_an_update(four_nodes: ControlPlane, tmp_path: Path) -> None:
    on, off = commands(four_nodes, tmp_path), commands(four_nodes, tmp_path, mode("Off"))

    def tree(image: str) -> Path:
        spec = {"containers": [{"name": "main", "image": image}]}
        cliques = (clique("a", 2, minAvailable=1, pod_spec=spec), clique("l", pod_spec=spec), clique("w", pod_spec=spec))
        return written(tmp_path, podcliqueset("tree", *cliques, groups=(group("g", "l", "w") | IN_ONE_RACK,), namespace=NAMESPACE))

    async with connection(four_nodes, "admin") as admin:
        await prepare(admin)
        await admin.create(kinds.TOPOLOGY_BINDING, "", HALL)
        assert (await on("sync", "-f", tree("x:1"), "--yes", "--timeout", "60s")).code == Exit.DONE
        running = await uids(admin, kinds.POD)
        assert (await off("diff")).out.startswith("No changes.")
        for name in running:
            await admin.delete(kinds.POD, NAMESPACE, name, grace=0)
        assert (await off("sync", "--yes", "--timeout", "60s")).code == Exit.DONE
        assert not any(map(is_member, (await pods_of(admin, "tree")).values()))

        running = await uids(admin, kinds.POD)
        assert (await on("sync", "--yes", "--timeout", "60s")).code == Exit.DONE
        assert await uids(admin, kinds.POD) == running
        # No pod waits for members that cannot come, neither one beyond the minimum nor one that replaces another.
        assert (await on("sync", "-f", tree("x:2"), "--yes", "--timeout", "90s")).code == Exit.DONE
        assert [is_member(pod) for pod in (await pods_of(admin, "tree")).values()].count(True) == 3
        assert all((await placed(admin, "tree")).values()) and (await on("diff")).out.startswith("No changes.")
        await removed(admin, on, "tree")
        await admin.delete(kinds.TOPOLOGY_BINDING, "", "hall")


async def test_a_pod_group_of_others_under_the_name_of_a_gang_blocks_it_with_the_way_out(four_nodes: ControlPlane, tmp_path: Path) -> None:
    run = commands(four_nodes, tmp_path)
    foreign = {
        "apiVersion": kinds.POD_GROUP.api_version,
        "kind": kinds.POD_GROUP.name,
        "metadata": {"name": "taken-0", "namespace": NAMESPACE},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 7}}},
    }
    async with connection(four_nodes, "admin") as admin:
        await prepare(admin)
        await admin.create(kinds.POD_GROUP, NAMESPACE, foreign)
        blocked = await stuck(run, "-f", written(tmp_path, whole_nodes("taken")))
        assert await placed(admin, "taken") == {}
        why = f"PodGroup {NAMESPACE}/taken-0 already exists but is not controlled by PodGang {NAMESPACE}/taken-0"
        status = await run("status")
        assert why in blocked.out and why in status.out, (blocked.out, status.out)
        group = await admin.get(kinds.POD_GROUP, NAMESPACE, "taken-0")
        assert get(group, ("spec", "schedulingPolicy", "gang", "minCount")) == 7 and "ownerReferences" not in group["metadata"]

        await admin.delete(kinds.POD_GROUP, NAMESPACE, "taken-0")
        assert (await run("sync", "--yes", "--timeout", "60s")).code == Exit.DONE
        assert await minimums(admin) == {"taken-0": 3} and len(set((await placed(admin, "taken")).values())) == 3
        await removed(admin, run, "taken")


async def test_a_pod_group_of_a_deleted_set_that_a_finalizer_keeps_is_told_and_takes_no_pod_of_the_next(
    four_nodes: ControlPlane, tmp_path: Path
) -> None:
    run, smaller = commands(four_nodes, tmp_path), whole_nodes("again")
    smaller["spec"]["template"]["cliques"][1]["spec"] |= {"replicas": 1, "minAvailable": 1}
    async with connection(four_nodes, "admin") as admin:
        await prepare(admin)
        assert (await run("sync", "-f", written(tmp_path, whole_nodes("again")), "--yes", "--timeout", "60s")).code == Exit.DONE
        group = await admin.get(kinds.POD_GROUP, NAMESPACE, "again-0")
        kept = {"metadata": {"finalizers": [*group["metadata"]["finalizers"], "example.com/keep"]}}
        await admin.patch(kinds.POD_GROUP, NAMESPACE, "again-0", kept, how="merge")
        assert (await run("delete", "again", "--yes", "--timeout", "60s")).code == Exit.DONE

        blocked = await stuck(run, "-f", written(tmp_path, smaller))
        why = "PodGroup gangs/again-0 of an earlier PodGang is being deleted, and finalizer example.com/keep keeps it; do: end what uses it"
        assert why in blocked.out and why in (await run("status")).out, blocked.out
        assert await placed(admin, "again") == {} and await minimums(admin) == {"again-0": 3}

        await admin.patch(kinds.POD_GROUP, NAMESPACE, "again-0", {"metadata": {"finalizers": None}}, how="merge")
        assert (await run("sync", "--yes", "--timeout", "60s")).code == Exit.DONE
        assert await minimums(admin) == {"again-0": 2} and "" not in (await placed(admin, "again")).values()
        await removed(admin, run, "again")


async def test_required_gangs_refuse_a_cluster_that_does_not_serve_them(without_gangs: ControlPlane, tmp_path: Path) -> None:
    run = commands(without_gangs, tmp_path, mode("Require"))
    async with connection(without_gangs, "admin") as admin:
        await prepare(admin)
        file = written(tmp_path, whole_nodes("never"))
        refused = await run("sync", "-f", file, "--yes", "--timeout", "20s")
        assert refused.code == Exit.PREFLIGHT and NOT_SERVED in refused.err
        checked = await run("preflight")
        assert checked.code == Exit.PREFLIGHT and "PodGroups of default-scheduler" in checked.out
        assert (await admin.list(kinds.PODCLIQUESET, NAMESPACE)).items == []
        shown = await commands(without_gangs, tmp_path)("diff", "-f", file)
        assert "default-scheduler does not schedule gangs" in shown.out + shown.err
