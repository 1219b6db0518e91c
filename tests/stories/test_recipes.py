"""Graphs of the kinds that people publish as recipes: they are planned, come up on every orchestrator, and start what they say."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from engine.runtime.sync_report import Ending
from engine.verb import Verb
from providers.fabrics.nvidia.names import COMPUTE_DOMAIN
from resources.base import kinds
from resources.base.labels import VLLM_EXECUTORS
from tests.mnnvl.sets import computedomain
from tests.stories.stage import Stage, stage

pytestmark = pytest.mark.anyio

FOLDER = Path(__file__).parent / "recipes"
RECIPES = sorted(path.stem for path in FOLDER.glob("*.yaml"))
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
    "r15": MP,
    "r16": SGLANG,
    "r20-vllm": "--distributed-executor-backend ray",
    "r20-sglang": SGLANG,
    "r20-trtllm": MPIRUN,
}
"""Recipe -> what the command of each leader has."""


def recipe(name: str, path: str = "grove") -> dict[str, Any]:
    """The graph of a recipe, in the namespace `default`, for one orchestrator."""
    body: dict[str, Any] = yaml.safe_load((FOLDER / f"{name}.yaml").read_text("utf-8"))
    metadata = {**body["metadata"], "namespace": "default"}
    if path == "components":
        metadata["annotations"] = {**metadata.get("annotations", {}), "nvidia.com/enable-grove": "false"}
    return {**body, "metadata": metadata}


async def provide(cluster: Stage, graph: dict[str, Any]) -> None:
    """Create what the graph names and does not make: its fabric domain with its claim template, and the SSH key pairs."""
    name = graph["metadata"]["name"]
    for service, spec in graph["spec"]["services"].items():
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


def leaders(cluster: Stage) -> list[str]:
    """The command lines of the leaders."""
    found = []
    for pod in cluster.there(kinds.POD).values():
        (main,) = (container for container in pod["spec"]["containers"] if container["name"] == "main")
        if any(env["name"] == "DYNAMO_RANK" and env.get("value") == "0" for env in main["env"]):
            found.append(" ".join((*main.get("command", ()), *main.get("args", ()))))
    return found


def test_every_recipe_has_an_expectation() -> None:
    assert set(RECIPES) == set(JOINED)


@pytest.mark.parametrize("path", ADDONS)
@pytest.mark.parametrize("name", RECIPES)
async def test_a_recipe_comes_up_and_its_leaders_join_their_nodes(name: str, path: str) -> None:
    graph = recipe(name, path)
    async with stage(nodes=40, addons=ADDONS[path]) as cluster:
        await provide(cluster, graph)

        report = await cluster.sync(manifests=[graph])

        assert report.ending is Ending.DONE
        replicas = sum(spec.get("replicas", 1) for spec in graph["spec"]["services"].values() if "multinode" in spec)
        lines = leaders(cluster)
        assert len(lines) == replicas
        assert all(JOINED[name] in line for line in lines), lines
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
