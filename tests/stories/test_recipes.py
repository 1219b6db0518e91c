"""Graphs of the kinds that people publish as recipes: they are planned, come up on every orchestrator, and start what they say."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from engine.operation import Create
from engine.runtime.sync_report import Ending
from engine.verb import Verb
from providers.fabrics.nvidia.names import COMPUTE_DOMAIN
from resources.base import kinds
from resources.base.labels import VLLM_EXECUTORS
from resources.dynamo.objects.labels import GRAPH_NAME
from resources.dynamo.versions.converted import as_alpha
from resources.schema.crds import Conversion, crds
from tests.mnnvl.sets import computedomain
from tests.stories.stage import Stage, stage

pytestmark = pytest.mark.anyio

FOLDER = Path(__file__).parent / "recipes"
RECIPES = sorted(path.stem for path in FOLDER.glob("*.yaml"))
VERSIONS = ("v1alpha1", "v1beta1")
EXECUTOR = "nvidia.com/vllm-distributed-executor-backend"
ADDONS: dict[str, tuple[str, ...]] = {"grove": (), "components": ("lws", "volcano")}
LARGE = {"cpu": "512", "memory": "4Ti", "pods": "110", "nvidia.com/gpu": "64"}
DATA = "--data-parallel-start-rank"
MP = "--distributed-executor-backend mp"
RAY = "--distributed-executor-backend ray"
SGLANG = "--dist-init-addr"
MPIRUN = "mpirun"
JOINED = {
    "r01": DATA,
    "r02": DATA,
    "r05": "",
    "r05b": SGLANG,
    "r07": SGLANG,
    "r08": MPIRUN,
    "r09": MPIRUN,
    "r10": MP,
    "r11": DATA,
    "r12": MP,
    "r13": MP,
    "r14": SGLANG,
    "r15": MP,
    "r16": SGLANG,
    "r17": RAY,
    "r20-vllm": RAY,
    "r20-sglang": SGLANG,
    "r20-trtllm": MPIRUN,
}
"""Recipe -> what the command of each leader has, as v1alpha1."""
JOINED_AS = {"v1alpha1": JOINED, "v1beta1": {**JOINED, "r17": MP, "r20-vllm": MP}}


def recipe(name: str, path: str = "grove", version: str = "v1alpha1") -> dict[str, Any]:
    """The graph of a recipe in one of the versions in which it is written, in the namespace `default`, for one orchestrator."""
    folder = FOLDER / version if version != "v1alpha1" else FOLDER
    body: dict[str, Any] = yaml.load((folder / f"{name}.yaml").read_text("utf-8"), yaml.CSafeLoader)
    metadata = {**body["metadata"], "namespace": "default"}
    if path == "components":
        metadata["annotations"] = {**metadata.get("annotations", {}), "nvidia.com/enable-grove": "false"}
    return {**body, "metadata": metadata}


class Needs(NamedTuple):
    """The names of what a graph refers to and does not make."""

    config_maps: frozenset[str]
    claim_templates: frozenset[str]
    secrets: frozenset[str]


def needs(graph: dict[str, Any]) -> Needs:
    """The ConfigMaps, the templates of claims, and the pairs of SSH keys that a graph names; a pair for each service."""
    pods = [spec["extraPodSpec"] for spec in services(graph).values()]
    volumes = [volume for pod in pods for volume in pod.get("volumes", ())]
    return Needs(
        frozenset(volume["configMap"]["name"] for volume in volumes if "configMap" in volume),
        frozenset(claim["resourceClaimTemplateName"] for pod in pods for claim in pod.get("resourceClaims", ())),
        frozenset(f"mpirun-ssh-key-{graph['metadata']['name']}-{service}".lower() for service in services(graph)),
    )


async def provide(cluster: Stage, graph: dict[str, Any]) -> None:
    """Create what the graph names and does not make; templates of claims with their fabric domains."""
    named = needs(graph)
    for name in named.config_maps:
        metadata = {"name": name, "namespace": "default"}
        await cluster.kubectl.create(kinds.CONFIG_MAP, "default", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    for name in named.claim_templates:
        await cluster.kubectl.create(COMPUTE_DOMAIN, "default", computedomain(name))
    for name in named.secrets:
        metadata = {"name": name, "namespace": "default"}
        await cluster.kubectl.create(kinds.SECRET, "default", {"apiVersion": "v1", "kind": "Secret", "metadata": metadata})


async def serve(cluster: Stage, version: str) -> None:
    """Define graphs in that version only; a cluster begins with v1alpha1."""
    if version == "v1alpha1":
        return
    converter = {"name": "nobody", "namespace": "default", "path": "/convert", "port": 443}
    (whole,) = (each for each in crds(Conversion(converter, version)) if each["spec"]["names"]["kind"] == kinds.DYNAMO_GRAPH.name)
    spec = {field: value for field, value in whole["spec"].items() if field != "conversion"}
    versions = [each for each in spec["versions"] if each["name"] == version]
    await cluster.kubectl.delete(kinds.CRD, "", whole["metadata"]["name"])
    await cluster.clock.advance(5)
    await cluster.kubectl.create(kinds.CRD, "", {**whole, "spec": {**spec, "versions": versions}})
    await cluster.clock.advance(5)


def services(graph: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Service -> what the graph says of it, as v1alpha1."""
    found: dict[str, dict[str, Any]] = as_alpha(graph)["spec"]["services"]
    return found


def scaled(graph: dict[str, Any], replicas: int) -> dict[str, Any]:
    """The graph with that number of replicas of each service."""
    spec = graph["spec"]
    if "components" in spec:
        return {**graph, "spec": {**spec, "components": [{**each, "replicas": replicas} for each in spec["components"]]}}
    return {**graph, "spec": {**spec, "services": {name: {**each, "replicas": replicas} for name, each in spec["services"].items()}}}


def leading_lines(pods: Iterable[dict[str, Any]]) -> list[str]:
    """The command lines of those of the pods that lead others."""
    mains = [next(container for container in pod["spec"]["containers"] if container["name"] == "main") for pod in pods]
    leading = [main for main in mains if any(env["name"] == "DYNAMO_RANK" and env.get("value") == "0" for env in main["env"])]
    return [" ".join((*main.get("command", ()), *main.get("args", ()))) for main in leading]


def leaders(cluster: Stage, graph: dict[str, Any]) -> list[str]:
    """The command lines of the leaders of a graph."""
    name = graph["metadata"]["name"]
    return leading_lines(pod for pod in cluster.there(kinds.POD).values() if pod["metadata"]["labels"][GRAPH_NAME] == name)


def uids(cluster: Stage) -> set[str]:
    """The uids of all pods."""
    return {pod["metadata"]["uid"] for pod in cluster.there(kinds.POD).values()}


def everything(cluster: Stage) -> set[str]:
    """Kind and name of all objects but Events and Leases."""
    served = (each.kind for each in cluster.api.catalogue if each.kind.name not in (kinds.EVENT.name, kinds.LEASE.name))
    return {f"{kind.name} {name}" for kind in served if kind.namespaced for name in cluster.there(kind)}


def test_every_recipe_has_an_expectation() -> None:
    assert set(RECIPES) == set(JOINED) == {path.stem for path in (FOLDER / "v1beta1").glob("*.yaml")}


@pytest.mark.parametrize("path", ADDONS)
async def test_a_recipe_is_planned_alike_in_both_versions(path: str) -> None:
    async with stage(nodes=1, addons=ADDONS[path]) as cluster:

        async def planned(name: str, version: str) -> dict[str, Any]:
            graph = recipe(name, path, version)
            annotations = graph["metadata"].setdefault("annotations", {})
            annotations.setdefault(EXECUTOR, "mp")  # What names none is v1alpha1 with Ray, and v1beta1 with mp.
            for component in graph["spec"].get("components", ()):
                # v1alpha1 leaves requests of GPUs to Kubernetes, which takes them from the limits.
                component["podTemplate"]["spec"]["containers"][0].get("resources", {}).pop("requests", None)
            for service in graph["spec"].get("services", {}).values():
                # The type prefill of v1beta1 is the subtype of a worker in v1alpha1, whose own type prefill has another label.
                if service["componentType"] in ("prefill", "decode"):
                    service |= {"componentType": "worker", "subComponentType": service["componentType"]}
            plans = (await cluster.look([graph])).planned.plans
            assert [problem for plan in plans for problem in (*plan.problems, *plan.faults)] == []
            creates = [operation for plan in plans for operation in plan.operations if isinstance(operation, Create)]
            return {str(create.id): create.manifest for create in creates if create.id.kind != kinds.DYNAMO_GRAPH.name}

        for name in RECIPES:
            alpha, beta = [await planned(name, version) for version in VERSIONS]
            assert alpha and alpha == beta, name


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("path", ADDONS)
async def test_recipes_come_up_beside_one_another_are_scaled_and_leave_nothing(path: str, version: str) -> None:
    graphs = {name: recipe(name, path, version) for name in RECIPES}
    async with stage(nodes=60, capacity=LARGE, addons=ADDONS[path]) as cluster:
        await serve(cluster, version)
        for graph in graphs.values():
            await provide(cluster, graph)
        await cluster.clock.advance(5)
        before = everything(cluster)

        report = await cluster.sync(manifests=[*graphs.values()])

        assert report.ending is Ending.DONE
        for name, graph in graphs.items():
            lines = leaders(cluster, graph)
            assert len(lines) == sum(spec.get("replicas", 1) for spec in services(graph).values() if "multinode" in spec), name
            assert all(JOINED_AS[version][name] in line for line in lines), lines
        again = await cluster.sync(manifests=[*graphs.values()])
        assert [result for result in again.results if result.operation.verb is not Verb.STATUS] == []

        first = uids(cluster)
        for replicas in (3, 1, 0):
            report = await cluster.sync(manifests=[scaled(graph, replicas) for graph in graphs.values()])
            assert report.ending is Ending.DONE
            await cluster.clock.advance(40)
            nodes = sum(spec.get("multinode", {}).get("nodeCount", 1) for graph in graphs.values() for spec in services(graph).values())
            assert len(cluster.there(kinds.POD)) == replicas * nodes
            assert first <= uids(cluster) or replicas < 3

        for graph in graphs.values():
            await cluster.delete(kinds.DYNAMO_GRAPH if version == "v1alpha1" else kinds.DYNAMO_GRAPH_V1BETA1, graph["metadata"]["name"])
        assert (await cluster.sync()).ending is Ending.DONE
        await cluster.clock.advance(40)
        assert everything(cluster) == before


@pytest.mark.parametrize(
    ("name", "record", "why"),
    [
        (
            "r10",
            "vllmworker=mp",
            "vLLM's executor over several nodes is mp for VllmWorker, because the image vllm-runtime:1.3.0 has no Ray",
        ),
        ("r15", "decode=mp", "is mp for decode, because the annotation nvidia.com/vllm-distributed-executor-backend says so"),
        ("r20-vllm", "decode=ray,prefill=ray", "is ray for decode, prefill, because nothing asks for mp"),
    ],
)
async def test_the_executor_is_told_in_one_line_and_recorded(name: str, record: str, why: str) -> None:
    async with stage() as cluster:
        plans = (await cluster.look([recipe(name)])).planned.plans
        events = [note for plan in plans for note in plan.notes if "executor over several nodes" in note]
        await cluster.sync(manifests=[recipe(name)])

        assert len(events) == 1 and why in events[0]
        assert cluster.there(kinds.DYNAMO_GRAPH)[name]["metadata"]["annotations"][VLLM_EXECUTORS] == record
