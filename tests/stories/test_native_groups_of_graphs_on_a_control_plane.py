"""Graphs without Grove and without Volcano: the real LeaderWorkerSet controller, whose pods a real kube-scheduler places as gangs."""

from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from engine.paths import get
from providers.schedulers.kube import kube_scheduler
from resources.base import kinds
from resources.ports.configuration import GangMode
from tests.controlplane.cluster import ControlPlane, Missing, register
from tests.controlplane.fixtures import scheduling_gangs, start_parts
from tests.controlplane.schedulers.lws import lws
from tests.stories.graph_cluster import STATEFUL_SET, GraphCluster, install_crds, remarks
from tests.stories.stage import DEFAULT, SETUP
from tests.stories.test_graphs_on_a_control_plane import READY, WITHOUT_GROVE, chat, cluster_of, nodes_of

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

NATIVE = replace(SETUP, schedulers={DEFAULT: kube_scheduler(GangMode.AUTO)}, fabrics=())
OBJECTS = (kinds.DYNAMO_GRAPH, kinds.LEADER_WORKER_SET, kinds.POD_GROUP, kinds.DEPLOYMENT, STATEFUL_SET, kinds.POD)


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane with LeaderWorkerSets, whose scheduler schedules gangs, and three nodes with room for one pod of a replica each."""
    with scheduling_gangs(tmp_path_factory, []) as plane:
        install_crds(plane)
        try:
            with lws(plane):
                start_parts(plane)
                for number in range(3):
                    register(plane, f"gpu-{number}")
                yield plane
        except Missing as missing:
            pytest.skip(str(missing))


async def minimums(cluster: GraphCluster) -> dict[str, int]:
    """PodGroup -> the least number of its pods."""
    groups = await cluster.objects(kinds.POD_GROUP)
    return {name: get(group, ("spec", "schedulingPolicy", "gang", "minCount")) for name, group in groups.items()}


async def test_the_replicas_of_a_graph_are_gangs_that_are_placed_whole_or_not_at_all(plane: ControlPlane) -> None:
    async with cluster_of(plane, "native-graph", NATIVE) as cluster:
        await cluster.apply(chat("pair", 1, annotations=WITHOUT_GROVE))
        await cluster.settle()
        assert (await cluster.state("pair"), await cluster.running(), await minimums(cluster)) == (READY, 3, {"pair-decode-0": 2})
        pods = await cluster.objects(kinds.POD)
        named = {
            name: get(pod, ("spec", "schedulingGroup", "podGroupName")) for name, pod in pods.items() if name.startswith("pair-decode")
        }
        assert named == {"pair-decode-0-0": "pair-decode-0", "pair-decode-0-0-1": "pair-decode-0"}
        assert await cluster.settle() == {}

        # One node is left, and a replica needs two.
        await cluster.apply(chat("pair", 2, annotations=WITHOUT_GROVE))
        report = await cluster.sync(wait=False)
        assert set(await minimums(cluster)) == {"pair-decode-0", "pair-decode-1"}, remarks(report)
        await cluster.until(kinds.POD_GROUP, lambda groups: bool(groups["pair-decode-1"].get("status", {}).get("conditions")))
        assert await nodes_of(cluster, "pair-decode-1") == {"pair-decode-1-0": None, "pair-decode-1-0-1": None}
        register(plane, "gpu-3")
        await cluster.settle()
        assert (await cluster.state("pair"), await cluster.running()) == (READY, 5)

        await cluster.apply(chat("pair", 1, nodes=4, annotations=WITHOUT_GROVE))
        await cluster.settle()
        assert (await cluster.state("pair"), await minimums(cluster)) == (READY, {"pair-decode-0": 4})
        await cluster.until(kinds.POD, lambda pods: len(pods) == 5)
        assert await cluster.settle() == {}

        await cluster.delete(kinds.DYNAMO_GRAPH, "pair")
        await cluster.settle()
        assert await cluster.left(kinds.DYNAMO_GRAPH, kinds.LEADER_WORKER_SET, kinds.POD_GROUP) == []
        await cluster.emptied(*OBJECTS)
