"""Graphs of v1beta1 on a real API server: one that stores them, and one whose conversion webhook does not answer."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from engine.conditions import find
from engine.paths import get
from engine.runtime.sync_report import Ending
from providers.kubernetes.client import KubernetesClient
from resources.base import kinds
from resources.schema.crds import Conversion, crds
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.fixtures import started
from tests.resources.dynamo.versions.beta_graphs import Body, beta, component, pods
from tests.stories.test_control_plane import Audit, connection, define, synced
from tests.waiting import until_objects

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

BETA = kinds.DYNAMO_GRAPH_V1BETA1
NAMESPACE, UNCONVERTED = "versions", "unconverted"
NOBODY = {"name": "nobody", "namespace": "default", "path": "/convert", "port": 443}
LEFT = (BETA, kinds.PODCLIQUESET, kinds.PODCLIQUE, kinds.SCALING_GROUP, kinds.PODGANG, kinds.POD)


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A cluster of its own: the definition of graphs is another one."""
    with started(tmp_path_factory, ["kcm", "scheduler", "kwok"], nodes=10, audit=True) as plane:
        yield plane


def definition(*, converts: bool) -> dict[str, Any]:
    """The definition of graphs that are stored as v1beta1: in that version only, or in both, converted by a webhook that nobody serves."""
    (whole,) = (each for each in crds(Conversion(NOBODY, "v1beta1")) if each["spec"]["names"]["kind"] == BETA.name)
    if converts:
        return whole
    spec = {field: value for field, value in whole["spec"].items() if field != "conversion"}
    return {**whole, "spec": {**spec, "versions": [each for each in spec["versions"] if each["name"] == "v1beta1"]}}


SIZES = {
    "mp": ("--tensor-parallel-size", "16"),
    "data": ("--tensor-parallel-size", "1", "--data-parallel-size", "16"),
}
"""How a worker of vLLM is divided over two nodes of eight GPUs: by its executor, or by its data."""


def chat(replicas: int = 1, image: str = "example/engine:1", namespace: str = NAMESPACE, sizes: str = "mp") -> Body:
    """A frontend, and a worker whose replicas have two nodes."""
    front = {"spec": {"containers": [{"name": "main", "image": image, "command": ["sleep"], "args": ["1"]}]}}
    worker = pods("--model", "m", *SIZES[sizes], gpus=8, image=image)
    decode = component("decode", "decode", worker, multinode={"nodeCount": 2}, replicas=replicas, minAvailable=1)
    return {**beta(component("Frontend", "frontend", front), decode), "metadata": {"name": "chat", "namespace": namespace}}


async def apply(admin: KubernetesClient, graph: Body) -> None:
    await admin.patch(BETA, graph["metadata"]["namespace"], "chat", graph, how="apply", force=True)


async def started_with(admin: KubernetesClient, namespace: str) -> tuple[set[str], str]:
    """The images of all pods, and the command lines of the workers' nodes."""
    found = (await admin.list(kinds.POD, namespace)).items
    mains = [pod["spec"]["containers"][0] for pod in found]
    lines = [" ".join((*main.get("command", ()), *main.get("args", ()))) for main in mains]
    return {main["image"] for main in mains}, "\n".join(line for line in lines if "dynamo.vllm" in line)


async def left(admin: KubernetesClient, namespace: str) -> list[str]:
    return [body["metadata"]["name"] for kind in LEFT for body in (await admin.list(kind, namespace)).items]


@pytest.mark.parametrize(("sizes", "flag"), [("mp", "--distributed-executor-backend mp"), ("data", "--data-parallel-start-rank")])
async def test_a_graph_that_is_stored_as_v1beta1_comes_up_is_scaled_updated_and_deleted(plane: ControlPlane, sizes: str, flag: str) -> None:
    namespace = f"{NAMESPACE}-{sizes}"
    async with connection(plane, "admin") as admin:
        await define(admin, namespace, definition(converts=False))
        audit = Audit(plane)

        async def settled() -> Mapping[str, Any]:
            report = await synced(plane, namespace)
            assert (report.ending, report.failures) == (Ending.DONE, ())
            return await admin.get(BETA, namespace, "chat")

        await apply(admin, chat(namespace=namespace, sizes=sizes))
        graph = await settled()
        status = graph["status"]
        ready = find(status["conditions"], "Ready") or {}
        assert (status["state"], ready["reason"]) == ("successful", "all_resources_are_ready")
        assert status["observedGeneration"] == graph["metadata"]["generation"]
        assert status["components"]["decode"]["componentNames"] == ["chat-0-decode"]
        (owner,) = (await admin.get(kinds.PODCLIQUESET, namespace, "chat"))["metadata"]["ownerReferences"]
        assert owner["apiVersion"] == "nvidia.com/v1beta1"
        assert len((await admin.list(kinds.POD, namespace)).items) == 3

        audit.read()
        await settled()
        assert audit.read().writes == {}

        await apply(admin, chat(2, namespace=namespace, sizes=sizes))
        await settled()
        assert len((await admin.list(kinds.POD, namespace)).items) == 5

        await apply(admin, chat(2, "example/engine:2", namespace, sizes))
        await settled()
        images, lines = await started_with(admin, namespace)
        assert images == {"example/engine:2"}
        assert lines.count(flag) == 4

        await admin.delete(BETA, namespace, "chat", propagation="Background")
        report = await synced(plane, namespace)
        assert report.ending is Ending.DONE
        await until_objects(admin, kinds.POD, namespace, lambda pods: not pods)
        assert await left(admin, namespace) == []


async def test_graphs_are_read_as_they_are_stored_where_nothing_converts_them(plane: ControlPlane) -> None:
    async with connection(plane, "admin") as admin:
        await define(admin, UNCONVERTED, definition(converts=True))
        await apply(admin, chat(namespace=UNCONVERTED))

        report = await synced(plane, UNCONVERTED)

        assert (report.ending, report.failures) == (Ending.DONE, ())
        assert get(await admin.get(BETA, UNCONVERTED, "chat"), ("status", "state")) == "successful"
