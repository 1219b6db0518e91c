"""Deployments: their pods, rollouts and status."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from engine import conditions
from grove_sandbox.actors.options import ActorOptions
from grove_sandbox.installation.kinds import CONTROLLER_LABELS
from resources.base.kinds import DEPLOYMENT, POD
from sandbox.tests.actors.manifests import pod
from sandbox.tests.actors.stage import Stage, on, running

pytestmark = pytest.mark.anyio

CLUSTER = ("scheduler", "kubelet", "garbage", "deployments")


def deployment(*, replicas: int = 2, image: str = "server:1", annotations: Mapping[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    """A Deployment `d` in namespace `ml`."""
    metadata = {"labels": {"app": "d"}, "annotations": dict(annotations or {})}
    template = {"metadata": metadata, "spec": {"containers": [{"name": "main", "image": image}]}}
    body = {"replicas": replicas, "selector": {"matchLabels": {"app": "d"}}, "template": template, **spec}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": body}


@asynccontextmanager
async def cluster() -> AsyncGenerator[Stage]:
    """A cluster with room for everything."""
    async with running(*CLUSTER, options=ActorOptions(nodes=2)) as stage:
        await stage.turn(0)
        yield stage


async def status(stage: Stage) -> dict[str, Any]:
    """The status of the Deployment."""
    return dict((await stage.client.get(DEPLOYMENT, "ml", "d")).get("status") or {})


async def images(stage: Stage) -> list[str]:
    """The images of all pods, in order."""
    return sorted(body["spec"]["containers"][0]["image"] for body in (await stage.client.list(POD, "ml")).items)


async def test_a_deployment_has_its_pods_and_is_available_when_they_are_ready() -> None:
    async with cluster() as stage:
        await stage.create(deployment(annotations={"sandbox.grove.io/ready-after": "5s"}))
        await stage.turn(2)
        assert len(await stage.names(POD)) == 2
        assert not conditions.is_true((await status(stage))["conditions"], "Available")
        assert (await status(stage))["unavailableReplicas"] == 2

        await stage.turn(5)
        written = await status(stage)
        counts = {key: value for key, value in written.items() if key != "conditions"}
        assert counts == {"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 2}
        assert conditions.is_true(written["conditions"], "Available")
        [progressing] = [entry for entry in written["conditions"] if entry["type"] == "Progressing"]
        assert progressing["reason"] == "NewReplicaSetAvailable"


async def test_a_settled_deployment_is_not_written_again() -> None:
    async with cluster() as stage:
        await stage.create(deployment())
        await stage.turn(5)
        before = await stage.client.get(DEPLOYMENT, "ml", "d")
        await stage.turn(60)

        assert await stage.client.get(DEPLOYMENT, "ml", "d") == before


async def test_pods_have_the_labels_of_the_template_and_their_deployment_as_controller() -> None:
    async with cluster() as stage:
        await stage.create(deployment(replicas=1))
        await stage.turn(1)
        [name] = await stage.names(POD)
        metadata = (await stage.pod(name))["metadata"]

        assert name.startswith(f"d-{metadata['labels']['pod-template-hash']}-")
        assert metadata["labels"]["app"] == "d"
        assert [(owner["kind"], owner["name"], owner["controller"]) for owner in metadata["ownerReferences"]] == [("Deployment", "d", True)]


async def test_nothing_is_left_of_a_deployment_that_is_deleted() -> None:
    async with cluster() as stage:
        await stage.create(deployment())
        await stage.turn(1)
        await stage.client.delete(DEPLOYMENT, "ml", "d")
        await stage.turn(5)

        assert await stage.names(POD) == set()


async def test_a_change_of_the_template_replaces_the_pods_and_keeps_enough_of_them_available() -> None:
    async with cluster() as stage:
        slow = {"sandbox.grove.io/ready-after": "2s"}
        await stage.create(deployment(replicas=4, annotations=slow))
        await stage.turn(5)
        await stage.client.patch(DEPLOYMENT, "ml", "d", deployment(replicas=4, annotations=slow, image="server:2"))
        for _ in range(60):
            await stage.turn(0.5)
            written = await status(stage)
            assert written["availableReplicas"] >= 3
            assert written["replicas"] <= 5

        assert await images(stage) == ["server:2"] * 4
        assert (written["observedGeneration"], written["updatedReplicas"], written["availableReplicas"]) == (2, 4, 4)


async def test_a_rollout_that_gets_stuck_keeps_the_earlier_pods() -> None:
    async with cluster() as stage:
        await stage.create(deployment(replicas=4))
        await stage.turn(1)
        broken = deployment(replicas=4, image="server:2", annotations={"sandbox.grove.io/fail": "image-pull"})
        await stage.client.patch(DEPLOYMENT, "ml", "d", broken)
        await stage.turn(30)

        assert (await images(stage)).count("server:1") == 3
        assert conditions.is_true((await status(stage))["conditions"], "Available")


async def test_the_strategy_recreate_deletes_all_pods_before_it_creates_others() -> None:
    async with cluster() as stage:
        strategy = {"type": "Recreate"}
        await stage.create(deployment(strategy=strategy))
        await stage.turn(1)
        await stage.client.patch(DEPLOYMENT, "ml", "d", deployment(strategy=strategy, image="server:2"))
        for _ in range(20):
            assert len(set(await images(stage))) <= 1
            await stage.turn(0.25)

        assert await images(stage) == ["server:2"] * 2


async def test_a_deployment_is_scaled_by_its_scale() -> None:
    async with cluster() as stage:
        await stage.create(deployment())
        await stage.turn(1)
        for replicas in (5, 1, 0):
            await stage.client.patch(DEPLOYMENT, "ml", "d", {"spec": {"replicas": replicas}}, subresource="scale")
            await stage.turn(5)
            assert len(await stage.names(POD)) == replicas


async def test_a_paused_deployment_is_scaled_in_the_template_that_it_has_rolled_out_also_from_0() -> None:
    async with cluster() as stage:
        await stage.create(deployment())
        await stage.turn(5)
        template = deployment(image="server:2")["spec"]["template"]
        await stage.client.patch(DEPLOYMENT, "ml", "d", {"spec": {"paused": True, "template": template}})
        for replicas in (3, 0, 2):
            await stage.client.patch(DEPLOYMENT, "ml", "d", {"spec": {"replicas": replicas}})
            await stage.turn(5)
            assert await images(stage) == ["server:1"] * replicas

        await stage.client.patch(DEPLOYMENT, "ml", "d", {"spec": {"paused": None}})
        await stage.turn(20)
        assert await images(stage) == ["server:2"] * 2


async def test_a_pod_that_is_deleted_or_evicted_is_replaced() -> None:
    async with cluster() as stage:
        await stage.create(deployment())
        await stage.turn(1)
        deleted, evicted = sorted(await stage.names(POD))
        await stage.client.delete(POD, "ml", deleted)
        await stage.annotate(POD, evicted, "sandbox.grove.io/fail", "evict")
        await stage.turn(5)

        assert len(await stage.names(POD)) == 2
        assert not {deleted, evicted} & await stage.names(POD)
        assert (await status(stage))["availableReplicas"] == 2


async def test_a_name_that_another_pod_has_is_passed_over() -> None:
    async with running("kubelet", "scheduler", options=ActorOptions(nodes=1)) as stage:
        await stage.create(deployment(replicas=1))
        async with on(stage, "deployments"):
            await stage.turn(1)
        [name] = await stage.names(POD)
        await stage.client.delete(POD, "ml", name, grace=0)
        await stage.create(pod(name))
        async with on(stage, "deployments"):
            await stage.turn(5)

        assert len(await stage.names(POD)) == 2
        assert (await status(stage))["availableReplicas"] == 1


async def test_the_deployment_of_the_dra_driver_is_left_to_the_driver() -> None:
    async with cluster() as stage:
        body = deployment(selector={"matchLabels": CONTROLLER_LABELS})
        body["spec"]["template"]["metadata"]["labels"] = CONTROLLER_LABELS
        await stage.create(body)
        await stage.turn(2)

        assert await stage.names(POD) == set()
        assert "replicas" not in await status(stage)
