"""Recipes on a real API server with real controllers: in both versions of graphs, with Grove's objects and with LeaderWorkerSets."""

from collections.abc import Iterator
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

import pytest

from engine.runtime.sync_report import Ending
from providers.kubernetes.client import KubernetesClient
from resources.base import kinds
from resources.dynamo.objects.labels import GRAPH_NAME
from tests.controlplane.cluster import ControlPlane, register
from tests.controlplane.fixtures import start_parts, started
from tests.controlplane.schedulers.lws import lws
from tests.controlplane.schedulers.volcano import install_volcano_crds, volcano_substitute
from tests.stories.graph_cluster import ALL_OBJECTS
from tests.stories.test_control_plane import connection, define, synced
from tests.stories.test_graph_versions_on_a_control_plane import definition
from tests.stories.test_recipes import ADDONS, JOINED_AS, RECIPES, VERSIONS, leading_lines, needs, recipe, services
from tests.waiting import Objects, until_objects

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

NODES = 48
DRIVER = "channels.example.com"
GRAPHS = {"v1alpha1": kinds.DYNAMO_GRAPH, "v1beta1": kinds.DYNAMO_GRAPH_V1BETA1}
Body = dict[str, Any]


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A cluster with the LeaderWorkerSet controller and Volcano's kinds, whose nodes have 8 GPUs and two channels each."""
    with started(tmp_path_factory, []) as plane:
        install_volcano_crds(plane)
        with lws(plane):
            start_parts(plane)
            for number in range(NODES):
                register(plane, f"node-{number:04d}")
            yield plane


async def serve_channels(admin: KubernetesClient) -> None:
    """The devices that claims of channels are allocated from; they stay."""
    if (await admin.list(kinds.DEVICE_CLASS)).items:
        return
    selectors = [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]
    await admin.create(kinds.DEVICE_CLASS, "", of(kinds.DEVICE_CLASS.api_version, "DeviceClass", DRIVER, {"selectors": selectors}))
    for number in range(NODES):
        node = f"node-{number:04d}"
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": [{"name": "channel-0"}, {"name": "channel-1"}]}
        await admin.create(kinds.RESOURCE_SLICE, "", of(kinds.RESOURCE_SLICE.api_version, "ResourceSlice", node, spec))


async def provide(admin: KubernetesClient, namespace: str, graph: Body) -> None:
    """Create what the graph names and does not make, as `tests.stories.test_recipes.provide` does."""
    named = needs(graph)
    for name in named.config_maps:
        await admin.create(kinds.CONFIG_MAP, namespace, of("v1", "ConfigMap", name))
    for name in named.claim_templates:
        request = {"name": "channel", "exactly": {"deviceClassName": DRIVER}}
        spec = {"spec": {"devices": {"requests": [request]}}}
        await admin.create(kinds.RESOURCE_CLAIM_TEMPLATE, namespace, of("resource.k8s.io/v1", "ResourceClaimTemplate", name, spec))
    for name in named.secrets:
        await admin.create(kinds.SECRET, namespace, of("v1", "Secret", name))


def of(api_version: str, kind: str, name: str, spec: Body | None = None) -> Body:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **({"spec": spec} if spec else {})}


async def serve(admin: KubernetesClient, namespace: str, version: str) -> None:
    """Make the namespace, and define graphs in that version only."""
    name = f"{kinds.DYNAMO_GRAPH.plural}.{kinds.DYNAMO_GRAPH.group}"
    defined = {each["metadata"]["name"]: each for each in (await admin.list(kinds.CRD)).items}
    if name in defined and [each["name"] for each in defined[name]["spec"]["versions"]] != [version]:
        await admin.delete(kinds.CRD, "", name)
        await until_objects(admin, kinds.CRD, "", lambda left: name not in left)
    await define(admin, namespace, *([definition(converts=False)] if version == "v1beta1" else []))


@pytest.mark.parametrize(("version", "path"), [(version, path) for version in VERSIONS for path in ADDONS])
async def test_all_recipes_come_up_beside_one_another_and_leave_nothing(plane: ControlPlane, version: str, path: str) -> None:
    namespace, kind = f"recipes-{version}-{path}", GRAPHS[version]
    graphs = {name: recipe(name, path, version) for name in RECIPES}
    async with connection(plane, "admin") as admin, AsyncExitStack() as stack:
        if path == "components":
            await stack.enter_async_context(volcano_substitute(plane))
        await serve(admin, namespace, version)
        await serve_channels(admin)
        for graph in graphs.values():
            await provide(admin, namespace, graph)
        left = {each.name: await names(admin, each, namespace) for each in ALL_LEFT}
        for graph in graphs.values():
            await admin.create(kind, namespace, {**graph, "metadata": {**graph["metadata"], "namespace": namespace}})

        report = await synced(plane, namespace)

        assert (report.ending, [str(each)[:300] for each in report.failures]) == (Ending.DONE, [])
        pods = (await admin.list(kinds.POD, namespace)).items
        assert {pod["status"].get("phase") for pod in pods} == {"Running"}
        for name, graph in graphs.items():
            own = [pod for pod in pods if pod["metadata"]["labels"][GRAPH_NAME] == graph["metadata"]["name"]]
            wanted = [(spec.get("replicas", 1), spec.get("multinode", {}).get("nodeCount", 1)) for spec in services(graph).values()]
            assert len(own) == sum(replicas * nodes for replicas, nodes in wanted), name
            lines = leading_lines(own)
            assert len(lines) == sum(replicas for replicas, nodes in wanted if nodes > 1), name
            assert all(JOINED_AS[version][name] in line for line in lines), lines

        for graph in graphs.values():
            await admin.delete(kind, namespace, graph["metadata"]["name"], propagation="Background")
        assert (await synced(plane, namespace)).ending is Ending.DONE
        for each in ALL_LEFT:
            await until_objects(admin, each, namespace, partial(are_named, left[each.name]))
        assert (await admin.list(kind, namespace)).items == []


ALL_LEFT = tuple(kind for kind in ALL_OBJECTS if kind not in (kinds.DYNAMO_GRAPH, kinds.KAI_POD_GROUP))


def are_named(names: set[str], objects: Objects) -> bool:
    return objects.keys() == names


async def names(admin: KubernetesClient, kind: Any, namespace: str) -> set[str]:
    return {body["metadata"]["name"] for body in (await admin.list(kind, namespace)).items}
