"""Graphs of the kinds that people publish as recipes: they are planned, come up on every orchestrator, and start what they say."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from engine.operation import Create
from engine.runtime.sync_report import Ending
from engine.verb import Verb
from providers.fabrics.nvidia.names import COMPUTE_DOMAIN
from resources.base import kinds
from resources.base.labels import VLLM_EXECUTORS
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
DATA = "--data-parallel-start-rank"
MP = "--distributed-executor-backend mp"
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
    "r20-vllm": "--distributed-executor-backend ray",
    "r20-sglang": SGLANG,
    "r20-trtllm": MPIRUN,
}
"""Recipe -> what the command of each leader has, as v1alpha1."""
JOINED_AS = {"v1alpha1": JOINED, "v1beta1": {**JOINED, "r20-vllm": MP}}


def recipe(name: str, path: str = "grove", version: str = "v1alpha1") -> dict[str, Any]:
    """The graph of a recipe in one of the versions in which it is written, in the namespace `default`, for one orchestrator."""
    folder = FOLDER / version if version != "v1alpha1" else FOLDER
    body: dict[str, Any] = yaml.load((folder / f"{name}.yaml").read_text("utf-8"), yaml.CSafeLoader)
    metadata = {**body["metadata"], "namespace": "default"}
    if path == "components":
        metadata["annotations"] = {**metadata.get("annotations", {}), "nvidia.com/enable-grove": "false"}
    return {**body, "metadata": metadata}


async def provide(cluster: Stage, graph: dict[str, Any]) -> None:
    """Create what the graph names and does not make: fabric domains with their claim templates, ConfigMaps, and SSH key pairs."""
    name = graph["metadata"]["name"]
    for service, spec in as_alpha(graph)["spec"]["services"].items():
        for volume in spec["extraPodSpec"].get("volumes", ()):
            if "configMap" in volume:
                metadata = {"name": volume["configMap"]["name"], "namespace": "default"}
                await cluster.kubectl.create(kinds.CONFIG_MAP, "default", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
        for claim in spec["extraPodSpec"].get("resourceClaims", ()):
            template = claim["resourceClaimTemplateName"]
            if template not in cluster.there(COMPUTE_DOMAIN):
                await cluster.kubectl.create(COMPUTE_DOMAIN, "default", computedomain(template))
        secret = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": f"mpirun-ssh-key-{name}-{service}".lower(), "namespace": "default"},
        }
        await cluster.kubectl.create(kinds.SECRET, "default", secret)


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


def leaders(cluster: Stage) -> list[str]:
    """The command lines of the leaders."""
    found = []
    for pod in cluster.there(kinds.POD).values():
        (main,) = (container for container in pod["spec"]["containers"] if container["name"] == "main")
        if any(env["name"] == "DYNAMO_RANK" and env.get("value") == "0" for env in main["env"]):
            found.append(" ".join((*main.get("command", ()), *main.get("args", ()))))
    return found


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
@pytest.mark.parametrize("name", RECIPES)
async def test_a_recipe_comes_up_and_its_leaders_join_their_nodes(name: str, path: str, version: str) -> None:
    graph = recipe(name, path, version)
    async with stage(nodes=40, addons=ADDONS[path]) as cluster:
        await serve(cluster, version)
        await provide(cluster, graph)

        report = await cluster.sync(manifests=[graph])

        assert report.ending is Ending.DONE
        replicas = sum(spec.get("replicas", 1) for spec in as_alpha(graph)["spec"]["services"].values() if "multinode" in spec)
        lines = leaders(cluster)
        assert len(lines) == replicas
        assert all(JOINED_AS[version][name] in line for line in lines), lines
        again = await cluster.sync(manifests=[graph])
        assert [result for result in again.results if result.operation.verb is not Verb.STATUS] == []


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
