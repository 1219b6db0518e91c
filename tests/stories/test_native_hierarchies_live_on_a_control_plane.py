"""`engine run` with hierarchies of a real kube-scheduler: crashes, updates, lost nodes, and API servers that stop serving them."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from engine.ids import Kind
from engine.paths import get
from providers.kubernetes.client import KubernetesClient
from resources.base import kinds
from tests.builders import clique, group, podcliqueset
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.fixtures import scheduling_gangs
from tests.mnnvl.sets import gpus
from tests.stories.engine_processes import engine_run
from tests.stories.gang_cluster import (
    GROUPS,
    HALL,
    IN_ONE_RACK,
    NAMESPACE,
    RACKS,
    TOPOLOGY,
    Body,
    add_node,
    commands,
    left,
    nodes_in_racks,
    placed,
    pods_of,
    prepare,
    run_on,
    says,
    uids,
)
from tests.stories.test_control_plane import connection
from tests.stories.test_native_gangs_served_on_a_control_plane import WITHOUT_HIERARCHIES, start_with
from tests.waiting import eventually

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]


@pytest.fixture
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A cluster with four nodes in two racks that schedules gangs and hierarchies, for this test alone."""
    with scheduling_gangs(tmp_path_factory, ["kcm", "scheduler", "kwok"]) as plane, nodes_in_racks(plane):
        yield plane


def tree(name: str, *, extra: int = 0, image: str = "x") -> Body:
    """A set that needs three nodes: one for its front, and two in one rack for its scaling group. `extra`: fronts beyond the minimum."""
    spec = gpus("8")
    spec["containers"][0]["image"] = image
    cliques = (clique("front", 1 + extra, minAvailable=1, pod_spec=spec), clique("l", pod_spec=spec), clique("w", pod_spec=spec))
    return podcliqueset(name, *cliques, groups=(group("g", "l", "w") | IN_ONE_RACK,), namespace=NAMESPACE)


async def test_hierarchies_of_a_running_engine_outlive_crashes_updates_lost_nodes_and_a_server_without_them(
    plane: ControlPlane, tmp_path: Path
) -> None:
    operator = tmp_path / "operator.yaml"
    operator.write_text(TOPOLOGY)
    words = ("-n", NAMESPACE, "--config", operator, "--kubeconfig", plane.kubeconfig("admin"))
    run = commands(plane, tmp_path)
    log = tmp_path / "engine.log"
    async with connection(plane, "admin") as admin:
        await prepare(admin)
        await admin.create(kinds.TOPOLOGY_BINDING, "", HALL)
        # Killed as soon as there is a part of the hierarchy: the next process creates the rest, and nothing twice.
        with engine_run(log, *words) as engine:
            await admin.create(kinds.PODCLIQUESET, NAMESPACE, tree("red", extra=1))
            await eventually(partial(has, admin, kinds.WORKLOAD, "red-0"))
            engine.kill()
        with engine_run(log, *words) as engine:
            await eventually(partial(run_on, admin, "red", 4))
            assert [len(await uids(admin, kind)) for kind in GROUPS] == [3, 2, 1] and await in_one_rack(admin, "red")
            groups = {kind: await uids(admin, kind) for kind in GROUPS}

            # Of two that want the same nodes one runs whole and the other not at all.
            await admin.create(kinds.PODCLIQUESET, NAMESPACE, tree("blue"))
            await eventually(partial(says, admin, "blue-0", "Unschedulable"))
            assert list((await placed(admin, "blue")).values()) == [""] * 3
            status = (await run("status")).out
            assert "waits for room: 0 of its minimum of 3 pods are on nodes" in status and "on the full nodes is gang gangs/red-0" in status
            await admin.delete(kinds.PODCLIQUESET, NAMESPACE, "blue")
            await eventually(partial(is_gone, admin, "blue"))

            # Killed in the middle of an update.
            before = set((await uids(admin, kinds.POD)).values())
            await admin.patch(kinds.PODCLIQUESET, NAMESPACE, "red", {"spec": tree("red", extra=1, image="y")["spec"]}, how="merge")
            await eventually(partial(is_replacing, admin, before))
            engine.kill()
        with engine_run(log, *words) as engine:
            await eventually(partial(has_image, admin, "red", "y"))
            assert {kind: await uids(admin, kind) for kind in GROUPS} == groups and await in_one_rack(admin, "red")

            # A lost worker waits for a node in the rack of its group; who is beyond the minimum has the other rack.
            lost = await lose(admin, "red-0-g-0-w-")
            await eventually(partial(says, admin, "red-0", "MembersMissing"))
            add_node(plane, lost)
            await eventually(partial(run_on, admin, "red", 4))
            assert await in_one_rack(admin, "red") and {kind: await uids(admin, kind) for kind in GROUPS} == groups

            # The API server loses the gate while an engine runs: what runs stays, a lost pod comes back, new gangs have one group.
            running = await uids(admin, kinds.POD)
            start_with(plane, WITHOUT_HIERARCHIES)
            lost = await lose(admin, "red-0-g-0-l-")
            add_node(plane, lost)
            await eventually(partial(run_on, admin, "red", 4))
            assert len(running.items() & (await uids(admin, kinds.POD)).items()) == 3
            await admin.create(kinds.PODCLIQUESET, NAMESPACE, tree("green"))
            await eventually(partial(says, admin, "green-0", "Unschedulable"))
            assert [name for name in await uids(admin, kinds.POD_GROUP) if name.startswith("green")] == ["green-0"]

            # It serves them again: nothing of what runs is touched.
            running = await uids(admin, kinds.POD)
            start_with(plane, {new: old for old, new in WITHOUT_HIERARCHIES.items()})
            await eventually(partial(has, admin, kinds.COMPOSITE_POD_GROUP, "red-0"))
            lost = await lose(admin, "red-0-g-0-w-")
            add_node(plane, lost)
            await eventually(partial(run_on, admin, "red", 4))
            assert len(running.items() & (await uids(admin, kinds.POD)).items()) == len(running) - 1
            assert await in_one_rack(admin, "red") and groups[kinds.WORKLOAD].items() <= (await uids(admin, kinds.WORKLOAD)).items()

            for name in ("red", "green"):
                await admin.delete(kinds.PODCLIQUESET, NAMESPACE, name)
            await eventually(partial(is_empty, admin))
            engine.end()
        assert [line["event"] for line in engine.logged() if line["level"] in ("error", "critical")] == []


async def is_empty(admin: KubernetesClient) -> bool:
    """Whether no pods and no groups are left."""
    return not await left(admin)


async def has(admin: KubernetesClient, kind: Kind, name: str) -> bool:
    """Whether there is such an object."""
    return name in await uids(admin, kind)


async def in_one_rack(admin: KubernetesClient, name: str) -> bool:
    """Whether the scaling group of a set is in one rack."""
    nodes = [node for pod, node in (await placed(admin, name)).items() if pod.startswith(f"{name}-0-g-")]
    return len(nodes) == 2 and len({RACKS[node] for node in nodes}) == 1


async def is_gone(admin: KubernetesClient, name: str) -> bool:
    """Whether nothing is left of a set, its groups and its pods."""
    return not any(each.split()[1].startswith(f"{name}-") for each in await left(admin))


async def is_replacing(admin: KubernetesClient, before: set[str]) -> bool:
    """Whether pods of an update exist beside some of those before it."""
    now = set((await uids(admin, kinds.POD)).values())
    return bool(now - before) and bool(now & before)


async def has_image(admin: KubernetesClient, name: str, image: str) -> bool:
    """Whether all four pods of a set have an image, and nodes."""
    pods = (await pods_of(admin, name)).values()
    return len(pods) == 4 and all(get(pod, ("spec", "nodeName")) and pod["spec"]["containers"][0]["image"] == image for pod in pods)


async def lose(admin: KubernetesClient, start: str) -> str:
    """Lose the pod whose name begins so with its node, and return that."""
    pod = next(body for body in (await admin.list(kinds.POD, NAMESPACE)).items if body["metadata"]["name"].startswith(start))
    node = str(pod["spec"]["nodeName"])
    await admin.delete(kinds.NODE, "", node)
    await admin.delete(kinds.POD, NAMESPACE, pod["metadata"]["name"], grace=0)
    return node
