"""Graphs whose roles have pod templates of their own, on both paths: made, updated, restarted, changed from one template for both."""

from typing import Any

import pytest

from engine.runtime.sync_report import Ending
from resources.base import kinds
from resources.base.labels import POD_FORM
from tests.resources.dynamo.pods.role_templates import JOINED, SIZE, of_roles, template
from tests.stories.graphs import graph
from tests.stories.pods import is_ready
from tests.stories.stage import Stage, stage
from tests.stories.test_graph_form import ADDONS, PATHS

pytestmark = pytest.mark.anyio
EVERY_PATH = pytest.mark.parametrize("path", PATHS)
MP = {"nvidia.com/vllm-distributed-executor-backend": "mp"}


def decode(worker: str = "example/worker:1", **fields: Any) -> dict[str, Any]:
    """A service with a leader of one image and a worker of another."""
    leader = template(*SIZE, *JOINED, image="example/leader:1", metadata={"labels": {"of": "leader"}})
    other = template(*SIZE, *JOINED, "--headless", image=worker, metadata={"labels": {"of": "worker"}})
    return {"componentType": "worker", **of_roles(leader, other, **fields)}


def chat(path: str, **fields: Any) -> dict[str, Any]:
    return graph(annotations={**PATHS[path], **MP}, decode=decode(**fields))


def pods(cluster: Stage) -> dict[str, tuple[str, str]]:
    """The label of each pod, which its role's template gives it -> its uid, and the image of its main container."""
    found = cluster.there(kinds.POD).values()
    return {pod["metadata"]["labels"]["of"]: (pod["metadata"]["uid"], pod["spec"]["containers"][0]["image"]) for pod in found}


@EVERY_PATH
async def test_each_pod_is_of_the_template_of_its_role_and_an_edit_of_one_is_an_update(path: str) -> None:
    async with stage(addons=ADDONS[path]) as cluster:
        assert (await cluster.sync(manifests=[chat(path)])).ending is Ending.DONE
        first = pods(cluster)
        assert {name: image for name, (_, image) in first.items()} == {"leader": "example/leader:1", "worker": "example/worker:1"}
        assert all(map(is_ready, cluster.there(kinds.POD).values()))
        initial = {
            pod["metadata"]["labels"]["of"]: {each["name"] for each in pod["spec"].get("initContainers", ())}
            for pod in cluster.there(kinds.POD).values()
        }
        assert "wait-for-leader-mp" in initial["worker"] and "wait-for-leader-mp" not in initial["leader"]

        assert (await cluster.sync(manifests=[chat(path, worker="example/worker:2")])).ending is Ending.DONE

        assert pods(cluster)["worker"][1] == "example/worker:2"
        assert (await cluster.sync()).results == ()


@EVERY_PATH
async def test_a_restart_replaces_the_pods_of_both_roles(path: str) -> None:
    async with stage(addons=ADDONS[path]) as cluster:
        await cluster.sync(manifests=[chat(path)])
        before = pods(cluster)
        manifest = chat(path)
        manifest["spec"]["restart"] = {"id": "1"}

        assert (await cluster.sync(manifests=[manifest])).ending is Ending.DONE

        after = pods(cluster)
        assert all(after[role][0] != before[role][0] for role in before)
        assert {name: image for name, (_, image) in after.items()} == {"leader": "example/leader:1", "worker": "example/worker:1"}


@EVERY_PATH
async def test_a_graph_goes_from_one_template_for_both_roles_to_one_for_each_and_back(path: str) -> None:
    container = {"image": "example/both:1", "command": ["python3", "-m", "dynamo.vllm"], "args": list(SIZE)}
    shared: dict[str, Any] = {
        "componentType": "worker",
        "multinode": {"nodeCount": 2},
        "resources": {"limits": {"gpu": "4"}},
        "extraPodSpec": {"mainContainer": container},
    }
    manifest = graph(annotations={**PATHS[path], **MP}, decode=shared)
    async with stage(addons=ADDONS[path]) as cluster:
        await cluster.sync(manifests=[manifest])
        sets = {name: body["metadata"]["uid"] for name, body in cluster.there(kinds.PODCLIQUESET).items()}
        before = {pod["metadata"]["name"]: pod["spec"] for pod in cluster.there(kinds.POD).values()}

        assert (await cluster.sync(manifests=[chat(path)])).ending is Ending.DONE
        assert {image for _, image in pods(cluster).values()} == {"example/leader:1", "example/worker:1"}
        assert (await cluster.sync(manifests=[manifest])).ending is Ending.DONE

        after = cluster.there(kinds.POD).values()
        assert {pod["spec"]["containers"][0]["image"] for pod in after} == {"example/both:1"} and len(after) == len(before)
        assert {name: body["metadata"]["uid"] for name, body in cluster.there(kinds.PODCLIQUESET).items()} == sets


async def test_the_form_of_a_graph_stays_when_its_roles_get_templates() -> None:
    async with stage() as cluster:
        manifest = chat("grove")
        manifest["metadata"]["annotations"][POD_FORM] = "2"
        await cluster.sync(manifests=[manifest])

        assert cluster.there(kinds.DYNAMO_GRAPH)["chat"]["metadata"]["annotations"][POD_FORM] == "2"
        envs = [env["name"] for pod in cluster.there(kinds.POD).values() for env in pod["spec"]["containers"][0]["env"]]
        assert envs.count("DYNAMO_RANK") == envs.count("DYNAMO_LEADER_ADDRESS") == 2
