"""Pods of graphs without Grove after their template of claims is gone: those that have started need it no more, others wait for it."""

from typing import Any

import pytest

from engine.forecast.forecast import End
from engine.runtime.sync_report import Ending
from resources.base import kinds
from tests.laws.test_forecast_worlds import GRAPH, frontend
from tests.stories.graphs import graph
from tests.stories.stage import Stage, stage
from tests.stories.test_cluster_constraints import blocked, preview_with

pytestmark = pytest.mark.anyio

DEPLOYMENT = kinds.DEPLOYMENT.id("default", "chat-frontend")
TEMPLATE: dict[str, Any] = {
    "metadata": {"name": "own", "namespace": "default"},
    "spec": {"spec": {"devices": {"requests": [{"name": "a", "exactly": {"deviceClassName": "gpu.example.com"}}]}}},
}
CLAIMS = {"resourceClaims": [{"name": "d", "resourceClaimTemplateName": "own"}]}


def claiming(replicas: int, script: str = "python3 -m dynamo.frontend") -> dict[str, Any]:
    """A graph whose pods each have a claim from the template."""
    made = frontend(replicas, script)
    return graph(Frontend={**made, "extraPodSpec": {**made.get("extraPodSpec", {}), **CLAIMS}})


async def missing(cluster: Stage, *manifests: dict[str, Any], what: str = "ResourceClaimTemplate own") -> int:
    """How many pods cannot start for want of the template, or of that, as a preview says; then the graph is stuck."""
    seen = await preview_with(cluster, *manifests)
    assert seen.report.forecast is not None
    said = blocked(seen).get(DEPLOYMENT, "0 pods")
    assert (seen.report.forecast.end_of(GRAPH) is End.STUCK) is (f"{what} does not exist" in said), said
    return int(said.split()[0])


async def test_pods_that_run_and_are_not_ready_need_the_template_no_more() -> None:
    async with stage(grove=False) as cluster:
        await cluster.kubectl.create(kinds.RESOURCE_CLAIM_TEMPLATE, "default", TEMPLATE)
        await cluster.sync(manifests=[claiming(3)])
        await cluster.kubectl.delete(kinds.RESOURCE_CLAIM_TEMPLATE, "default", "own")
        cluster.fail(min(cluster.there(kinds.POD)), "unready")
        await cluster.clock.advance(20)
        assert cluster.there(kinds.DEPLOYMENT)[DEPLOYMENT.name]["status"]["readyReplicas"] == 2

        assert await missing(cluster) == 0
        assert [await missing(cluster, claiming(replicas)) for replicas in (1, 2, 4, 5)] == [0, 0, 1, 2]
        assert await missing(cluster, claiming(3, "python3 -m dynamo.frontend --verbose")) == 3


async def test_pods_that_wait_for_the_template_are_counted_and_go_first_where_there_shall_be_fewer() -> None:
    async with stage(grove=False) as cluster:
        await cluster.kubectl.create(kinds.RESOURCE_CLAIM_TEMPLATE, "default", TEMPLATE)
        await cluster.sync(manifests=[claiming(1)])
        await cluster.kubectl.delete(kinds.RESOURCE_CLAIM_TEMPLATE, "default", "own")
        await cluster.sync(manifests=[claiming(3)], wait=False)
        await cluster.clock.advance(20)
        assert len(cluster.there(kinds.POD)) == cluster.there(kinds.DEPLOYMENT)[DEPLOYMENT.name]["status"]["updatedReplicas"] == 3

        assert await missing(cluster) == 2
        assert [await missing(cluster, claiming(replicas)) for replicas in (0, 1, 2, 4)] == [0, 0, 1, 3]

        await cluster.kubectl.create(kinds.RESOURCE_CLAIM_TEMPLATE, "default", TEMPLATE)
        assert [await missing(cluster, claiming(replicas)) for replicas in (3, 5)] == [0, 0]


async def test_pods_whose_claims_are_made_wait_for_the_device_class() -> None:
    async with stage(grove=False) as cluster:
        await cluster.kubectl.create(kinds.RESOURCE_CLAIM_TEMPLATE, "default", TEMPLATE)
        await cluster.sync(manifests=[claiming(1)])
        await cluster.kubectl.delete(kinds.DEVICE_CLASS, "", "gpu.example.com")
        await cluster.sync(manifests=[claiming(3)], wait=False)
        await cluster.clock.advance(20)
        assert all(pod["status"]["resourceClaimStatuses"] for pod in cluster.there(kinds.POD).values())

        device_class = "DeviceClass gpu.example.com"
        assert await missing(cluster, what=device_class) == 2
        assert [await missing(cluster, claiming(replicas), what=device_class) for replicas in (1, 2, 4)] == [0, 1, 3]
        await cluster.kubectl.delete(kinds.RESOURCE_CLAIM_TEMPLATE, "default", "own")
        assert await missing(cluster, what=device_class) == 2


async def test_a_deployment_that_somebody_has_paused_is_named_with_how_to_go_on() -> None:
    async with stage(grove=False) as cluster:
        await cluster.kubectl.create(kinds.RESOURCE_CLAIM_TEMPLATE, "default", TEMPLATE)
        await cluster.sync(manifests=[claiming(2)])
        await cluster.kubectl.patch(kinds.DEPLOYMENT, "default", DEPLOYMENT.name, {"spec": {"paused": True}})
        await cluster.clock.advance(5)
        assert blocked(await preview_with(cluster, claiming(2))) == {}
        changed = claiming(2, "python3 -m dynamo.frontend --verbose")
        message = (
            f"is paused (`spec.paused`): its controller replaces no pod; do: kubectl rollout resume deployment/{DEPLOYMENT.name} -n default"
        )

        for replicas in (3, 1, 0, 2):
            seen = await preview_with(cluster, claiming(replicas))
            assert seen.report.forecast is not None and seen.report.forecast.end_of(GRAPH) is End.SETTLED
            assert (await cluster.sync(manifests=[claiming(replicas)])).ending is Ending.DONE
        seen = await preview_with(cluster, changed)
        assert seen.report.forecast is not None and seen.report.forecast.end_of(GRAPH) is End.STUCK
        assert (await cluster.sync(manifests=[changed])).ending is Ending.STUCK
        assert blocked(await preview_with(cluster)) == {DEPLOYMENT: message}

        await cluster.kubectl.patch(kinds.DEPLOYMENT, "default", DEPLOYMENT.name, {"spec": {"paused": None}})
        assert (await cluster.sync()).ending is Ending.DONE


async def test_a_rollout_whose_new_pod_has_no_node_is_neither_settled_nor_done() -> None:
    async with stage(grove=False) as cluster:
        assert (await cluster.sync(manifests=[graph(Frontend=frontend(1))])).ending is Ending.DONE
        giant = graph(Frontend={**frontend(1), "resources": {"requests": {"cpu": "900"}}})
        seen = await preview_with(cluster, giant)

        report = await cluster.sync(manifests=[giant], patience=60.0)

        assert seen.report.forecast is not None and seen.report.forecast.end_of(GRAPH) is End.STUCK
        assert report.ending is Ending.TIMED_OUT
        state = cluster.there(kinds.DYNAMO_GRAPH)[GRAPH.name]["status"]["state"]
        assert state == "pending"
        assert (await cluster.sync(manifests=[graph(Frontend=frontend(1))])).ending is Ending.DONE
