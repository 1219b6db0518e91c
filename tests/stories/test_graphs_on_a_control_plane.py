"""Graphs on a real control plane with the real LeaderWorkerSet controller and the real KAI scheduler, from their creation to their end."""

import base64
import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from msgspec.structs import replace

from engine.runtime.sync_report import Ending
from resources.base import kinds
from resources.base.labels import VLLM_EXECUTORS
from resources.ports.configuration import Configuration, DynamoSettings
from tests.builders import clique, group, podcliqueset
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.fixtures import RACK, RACKS, started
from tests.controlplane.schedulers.kai import queue
from tests.controlplane.schedulers.volcano import volcano_substitute
from tests.controlplane.test_schedulers import delete_pod, namespace, occupy, unschedulable
from tests.maps import binding
from tests.stories.graph_cluster import (
    COMPONENT_OBJECTS,
    GROVE_OBJECTS,
    KAI_SETUP,
    GraphCluster,
    install_crds,
    remarks,
)
from tests.stories.graphs import graph, service
from tests.stories.stage import SETUP

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

READY = ("successful", "All resources are ready")
QUEUE = "nvidia.com/kai-scheduler-queue"
GROVE = "nvidia.com/enable-grove"
BACKEND = "nvidia.com/vllm-distributed-executor-backend"
WITHOUT_GROVE = {GROVE: "false"}
REPLACED = {"engine.grove.io/allow-replace": "true"}
WHOLE_NODE = {"limits": {"gpu": "8"}}


@pytest.fixture(scope="module")
def plane(scheduling_plane: ControlPlane) -> ControlPlane:
    """The control plane with the schedulers, and our kinds."""
    install_crds(scheduling_plane)
    return scheduling_plane


@asynccontextmanager
async def cluster_of(plane: ControlPlane, name: str, configuration: Configuration = KAI_SETUP) -> AsyncIterator[GraphCluster]:
    """A new namespace for one story. No pod of it is left on a node afterwards."""
    async with namespace(plane, name) as client:
        yield GraphCluster(plane, client, name, configuration)


def chat(name: str, replicas: int = 2, *, nodes: int = 2, frontends: int = 1, annotations: dict[str, str] | None = None) -> dict[str, Any]:
    """A graph of a frontend and a decoder, each replica of which has whole nodes."""
    frontend = service(frontends, componentType="frontend", script="python3 -m dynamo.frontend", resources={})
    return graph(name, annotations, Frontend=frontend, decode=service(replicas, nodes=nodes, resources=WHOLE_NODE))


async def nodes_of(cluster: GraphCluster, prefix: str) -> dict[str, str | None]:
    """Pod -> its node, for the pods whose names have the prefix."""
    return {name: pod["spec"].get("nodeName") for name, pod in (await cluster.objects(kinds.POD)).items() if name.startswith(prefix)}


async def until_not_placed(cluster: GraphCluster, gang: str, reason: str = "") -> None:
    """Wait until KAI has found no place for a gang, for that reason."""
    await cluster.until(kinds.KAI_POD_GROUP, lambda groups: gang in groups and bool(said := unschedulable(groups[gang])) and reason in said)


def sub_groups(pod_group: Mapping[str, Any]) -> dict[str, int]:
    """Sub-group -> the least number of its pods."""
    return {entry["name"]: entry["minMember"] for entry in pod_group["spec"]["subGroups"]}


async def test_kai_brings_up_a_graph_that_is_scaled_and_deleted_with_few_writes(plane: ControlPlane) -> None:
    async with cluster_of(plane, "graph-kai") as cluster:
        await cluster.apply(chat("talk"))
        await cluster.settle()
        assert (await cluster.state("talk"), await cluster.running()) == (READY, 5)
        groups = await cluster.objects(kinds.KAI_POD_GROUP)
        assert set(groups) == set(await cluster.objects(kinds.PODGANG)) == {"talk-0", "talk-0-decode-0"}
        assert {group["spec"]["queue"] for group in groups.values()} == {"dynamo"}
        assert sub_groups(groups["talk-0"]) == {"talk-0-frontend": 1, "talk-0-decode-0-decode-ldr": 1, "talk-0-decode-0-decode-wkr": 1}
        assert {pod["spec"]["schedulerName"] for pod in (await cluster.objects(kinds.POD)).values()} == {"kai-scheduler"}

        assert await cluster.settle() == {}

        await cluster.apply(chat("talk", 3, frontends=2))
        writes = await cluster.settle()
        assert (await cluster.state("talk"), await cluster.running(), writes["create pods"], writes["delete pods"]) == (READY, 8, 3, 0)
        await cluster.apply(chat("talk", 1))
        writes = await cluster.settle()
        assert (await cluster.state("talk"), await cluster.running(), writes["create pods"], writes["delete pods"]) == (READY, 3, 0, 5)
        assert set(await cluster.objects(kinds.KAI_POD_GROUP)) == {"talk-0"}
        assert await cluster.settle() == {}

        await cluster.delete(kinds.DYNAMO_GRAPH, "talk")
        await cluster.settle()
        assert await cluster.left() == []


async def test_kai_runs_no_pod_of_a_graph_until_all_of_its_gang_fit(plane: ControlPlane) -> None:
    async with cluster_of(plane, "graph-whole") as cluster:
        await occupy(cluster.client, cluster.namespace, list(RACKS)[:8])
        await cluster.apply(chat("whole", 1, nodes=3))
        await cluster.sync(wait=False)

        await until_not_placed(cluster, "whole-0", "sub-group whole-0-decode-0-decode-wkr requires 2 pods for gang scheduling")
        pods = await nodes_of(cluster, "whole-0-")
        assert (len(pods), set(pods.values())) == (4, {None})
        assert (await cluster.state("whole"))[0] == "pending"

        await delete_pod(cluster.client, cluster.namespace, "node-0003")
        await cluster.settle()
        assert (await cluster.state("whole"), await cluster.running()) == (READY, 11)


async def test_a_gang_beyond_the_limit_of_its_queue_waits_until_the_limit_is_raised(plane: ControlPlane) -> None:
    async with cluster_of(plane, "graph-limit") as cluster:
        await cluster.client.create(kinds.KAI_QUEUE, "", queue("sixteen", gpus=16))
        await cluster.apply(chat("limited", annotations={QUEUE: "sixteen"}))
        await cluster.sync(wait=False)
        await cluster.until(kinds.POD, lambda pods: sum(pod["status"].get("phase") == "Running" for pod in pods.values()) == 3)
        await cluster.sync(wait=False)

        await until_not_placed(cluster, "limited-0-decode-0", "OverLimit")
        assert set((await nodes_of(cluster, "limited-0-decode-1-")).values()) == {None}

        await cluster.client.patch(kinds.KAI_QUEUE, "", "sixteen", {"spec": queue("sixteen", gpus=32)["spec"]})
        await cluster.settle()
        assert (await cluster.state("limited"), await cluster.running()) == (READY, 5)


async def test_a_graph_in_a_queue_that_does_not_exist_waits_for_it_with_the_reason(plane: ControlPlane) -> None:
    async with cluster_of(plane, "graph-queue") as cluster:
        await cluster.apply(chat("queued", 1, annotations={QUEUE: "later"}))
        report = await cluster.sync()

        assert report.ending is Ending.STUCK
        state, message = await cluster.state("queued")
        assert (state, "queue 'later' not found in cluster" in message) == ("failed", True)
        assert await cluster.left() == ["DynamoGraphDeployment queued"]

        await cluster.client.create(kinds.KAI_QUEUE, "", queue("later"))
        await cluster.settle()
        assert (await cluster.state("queued"), await cluster.running()) == (READY, 3)


async def test_kai_puts_all_pods_of_a_replica_in_one_rack_if_a_binding_and_a_set_require_it(plane: ControlPlane) -> None:
    packed = group("pool", "worker", replicas=2, topologyConstraint={"topologyName": "racked-hall", "pack": {"required": "rack"}})
    worker = clique("worker", 2, minAvailable=2, pod_spec=whole_node_pod(), labels={"kai.scheduler/queue": "dynamo"})
    manifest = podcliqueset("racked", worker, groups=(packed,))
    async with cluster_of(plane, "graph-rack", replace(KAI_SETUP, topology=True)) as cluster:
        one_is_free_in_each = [node for node in RACKS if node not in ("node-0004", "node-0009")]
        await occupy(cluster.client, cluster.namespace, one_is_free_in_each)
        await cluster.apply(binding("racked-hall", RACK))
        await cluster.apply(manifest)
        await cluster.sync(wait=False)
        topology = await cluster.client.get(kinds.KAI_TOPOLOGY, "", "racked-hall")
        assert topology["spec"]["levels"] == [{"nodeLabel": RACK}]
        await until_not_placed(cluster, "racked-0")
        assert set((await nodes_of(cluster, "racked-")).values()) == {None}

        for node in ("node-0003", "node-0006"):
            await delete_pod(cluster.client, cluster.namespace, node)
        await cluster.settle()

        replicas = [await nodes_of(cluster, f"racked-0-pool-{index}-") for index in range(2)]
        racks = [{RACKS[str(node)] for node in replica.values()} for replica in replicas]
        assert (list(map(len, replicas)), sorted(map(sorted, racks))) == ([2, 2], [["rack-0"], ["rack-1"]])
        assert await cluster.settle() == {}
        for kind, name in ((kinds.PODCLIQUESET, "racked"), (kinds.TOPOLOGY_BINDING, "racked-hall")):
            await cluster.client.delete(kind, cluster.namespace if kind.namespaced else "", name)
        await cluster.settle()
        assert await cluster.left(*GROVE_OBJECTS) == []


def whole_node_pod() -> dict[str, Any]:
    """The spec of a pod of one container that takes a whole node."""
    return {"containers": [{"name": "main", "image": "server:1", "resources": {"limits": {"nvidia.com/gpu": "8"}}}]}


async def test_without_grove_a_graph_runs_in_leader_worker_sets_and_deployments_and_leaves_nothing(plane: ControlPlane) -> None:
    async with cluster_of(plane, "graph-lws") as cluster, volcano_substitute(plane):
        await cluster.apply(chat("pair", 1, annotations=WITHOUT_GROVE))
        await cluster.settle()
        assert (await cluster.state("pair"), await cluster.running()) == (READY, 3)
        assert set(await cluster.objects(kinds.DEPLOYMENT)) == {"pair-frontend"}
        assert await cluster.left(*GROVE_OBJECTS) == []
        assert await cluster.settle() == {}

        await cluster.apply(chat("pair", 3, annotations=WITHOUT_GROVE))
        await cluster.settle()
        assert (await cluster.state("pair"), await cluster.running()) == (READY, 7)
        sets, groups = await cluster.objects(kinds.LEADER_WORKER_SET), await cluster.objects(kinds.VOLCANO_POD_GROUP)
        assert set(sets) == set(groups) == {"pair-decode-0", "pair-decode-1", "pair-decode-2"}
        assert {group["spec"]["minMember"] for group in groups.values()} == {2}
        assert await cluster.settle() == {}

        await cluster.apply(chat("pair", 1, annotations=WITHOUT_GROVE))
        await cluster.settle()
        await cluster.until(kinds.POD, lambda pods: len(pods) == 3)
        assert (await cluster.state("pair"), await cluster.running()) == (READY, 3)
        assert (
            set(await cluster.objects(kinds.LEADER_WORKER_SET)) == set(await cluster.objects(kinds.VOLCANO_POD_GROUP)) == {"pair-decode-0"}
        )

        await cluster.delete(kinds.DYNAMO_GRAPH, "pair")
        await cluster.settle()
        assert await cluster.left(kinds.DYNAMO_GRAPH, kinds.LEADER_WORKER_SET, kinds.VOLCANO_POD_GROUP) == []
        await cluster.emptied()


@pytest.mark.parametrize(("path", "annotations"), [("grove", {}), ("lws", WITHOUT_GROVE)])
async def test_nodes_of_vllm_join_without_ray_and_nothing_is_written_again(
    plane: ControlPlane, path: str, annotations: dict[str, str]
) -> None:
    joined = service(nodes=2, script="python3 -m dynamo.vllm --model m -tp 16", resources=WHOLE_NODE)
    ranks = service(nodes=2, script="python3 -m dynamo.vllm --model m -dp 16", resources=WHOLE_NODE)
    async with cluster_of(plane, f"graph-mp-{path}") as cluster, volcano_substitute(plane):
        await cluster.apply(graph("join", {**annotations, BACKEND: "mp"}, joined=joined, ranks=ranks))
        await cluster.settle()

        assert (await cluster.state("join"), await cluster.running()) == (READY, 4)
        pods = await cluster.objects(kinds.POD)
        (wait,) = [each for pod in pods.values() for each in pod["spec"].get("initContainers", ())]
        index = {"grove": "GROVE_PCSG_POD_INDEX", "lws": "LWS_WORKER_INDEX"}[path]
        names = [env["name"] for env in wait["env"]]
        assert wait["name"] == "wait-for-leader-mp"
        assert names.index(index) < names.index("LEADER_HOST")
        (graph_,) = (await cluster.objects(kinds.DYNAMO_GRAPH)).values()
        assert graph_["metadata"]["annotations"][VLLM_EXECUTORS] == "joined=mp,ranks=mp"
        assert await cluster.settle() == {}


async def test_a_running_graph_changes_from_grove_to_leader_worker_sets_and_back(plane: ControlPlane) -> None:
    async with cluster_of(plane, "graph-switch") as cluster, volcano_substitute(plane):
        await cluster.apply(chat("swap"))
        await cluster.settle()
        assert (await cluster.state("swap"), await cluster.left(*COMPONENT_OBJECTS)) == (READY, [])

        await cluster.apply(chat("swap", annotations=WITHOUT_GROVE | REPLACED))
        await cluster.settle()
        assert (await cluster.state("swap"), await cluster.left(*GROVE_OBJECTS)) == (READY, [])
        assert await cluster.running() == 5
        assert await cluster.settle() == {}

        await cluster.apply(chat("swap", annotations={GROVE: "true"} | REPLACED))
        await cluster.settle()
        await cluster.emptied(*COMPONENT_OBJECTS)
        await cluster.until(kinds.POD, lambda pods: len(pods) == 5)
        assert (await cluster.state("swap"), await cluster.running()) == (READY, 5)
        assert await cluster.settle() == {}


async def test_without_any_orchestrator_a_graph_fails_with_the_reason_until_grove_is_installed(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with started(tmp_path_factory, ["kcm"], audit=True) as plane:
        install_crds(plane, kinds.DYNAMO_GRAPH)
        async with cluster_of(plane, "graph-bare") as cluster:
            await cluster.apply(chat("many"))
            await cluster.apply(graph("single", None, Frontend=service(componentType="frontend", resources={})))
            report = await cluster.sync(wait=False)

            assert report.ending is Ending.STUCK
            state, message = await cluster.state("many")
            assert (state, message.startswith("no multinode orchestrator available")) == ("failed", True)
            assert all(group in message for group in ("grove.io", "leaderworkerset.x-k8s.io", "scheduling.volcano.sh"))
            assert set(await cluster.objects(kinds.DEPLOYMENT)) == {"single-frontend"}

            install_crds(plane)
            await cluster.sync(wait=False)
            state, message = await cluster.state("many")
            assert (state, "queue 'dynamo' not found in cluster" in message) == ("failed", True)
            cluster.configuration = SETUP
            report = await cluster.sync(wait=False)
            assert set(await cluster.objects(kinds.PODCLIQUESET)) == {"many"}, remarks(report)
            assert set(await cluster.objects(kinds.DEPLOYMENT)) == {"single-frontend"}  # What runs a graph stays.
            assert (await cluster.state("many"))[0] == "pending"


async def test_the_key_pair_that_is_created_for_tensorrt_llm_is_one_that_ssh_can_use(plane: ControlPlane, tmp_path: Path) -> None:
    trtllm = service(1, nodes=2, script="python3 -m dynamo.trtllm --model m", resources=WHOLE_NODE)
    setup = replace(KAI_SETUP, dynamo=DynamoSettings(create_ssh_secret=True))
    async with cluster_of(plane, "graph-ssh", setup) as cluster:
        await cluster.apply(graph("secure", None, decode=trtllm))
        await cluster.settle()
        assert (await cluster.state("secure"), await cluster.running()) == (READY, 2)
        assert await cluster.settle() == {}
        data = (await cluster.objects(kinds.SECRET))["mpirun-ssh-key-secure-decode"]["data"]

        await cluster.delete(kinds.DYNAMO_GRAPH, "secure")
        await cluster.settle()
        assert await cluster.left() == []
    if program := shutil.which("ssh-keygen"):
        private = tmp_path / "private"
        private.touch(mode=0o600)
        private.write_bytes(base64.b64decode(data["private.key"]))
        derived = await anyio.run_process([program, "-y", "-f", str(private)])
        assert derived.stdout.split()[:2] == base64.b64decode(data["private.key.pub"]).split()[:2]
