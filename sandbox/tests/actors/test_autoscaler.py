"""Autoscaler: an annotation in place of metrics."""

from typing import Any

import pytest

from resources.base.kinds import AUTOSCALER, PODCLIQUE
from sandbox.tests.actors.stage import Stage, running

pytestmark = pytest.mark.anyio

KNOB = "sandbox.grove.io/desired-replicas"


def clique(replicas: int) -> dict[str, Any]:
    spec = {"roleName": "r", "replicas": replicas, "minAvailable": 1, "podSpec": {"containers": [{"name": "c", "image": "i"}]}}
    return {"apiVersion": "grove.io/v1alpha1", "kind": "PodClique", "metadata": {"name": "workers", "namespace": "ml"}, "spec": spec}


def scaler(low: int, high: int) -> dict[str, Any]:
    target = {"apiVersion": "grove.io/v1alpha1", "kind": "PodClique", "name": "workers"}
    metadata = {"name": "workers", "namespace": "ml"}
    spec = {"scaleTargetRef": target, "minReplicas": low, "maxReplicas": high}
    return {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": metadata, "spec": spec}


async def replicas(stage: Stage) -> int:
    return int((await stage.client.get(PODCLIQUE, "ml", "workers"))["spec"]["replicas"])


async def test_the_annotation_scales_within_the_bounds() -> None:
    async with running("autoscaler") as stage:
        await stage.create(clique(2), scaler(1, 5))
        await stage.turn(0)
        assert await replicas(stage) == 2

        await stage.annotate(AUTOSCALER, "workers", KNOB, "4")
        await stage.turn(0)
        assert await replicas(stage) == 4

        await stage.annotate(AUTOSCALER, "workers", KNOB, "9")
        await stage.turn(0)
        assert await replicas(stage) == 5
        assert (await stage.client.get(AUTOSCALER, "ml", "workers"))["status"]["desiredReplicas"] == 5


async def test_without_the_annotation_only_the_bounds_apply_also_when_another_writer_scales() -> None:
    async with running("autoscaler") as stage:
        await stage.create(clique(1), scaler(2, 5))
        await stage.turn(0)
        assert await replicas(stage) == 2

        await stage.client.patch(PODCLIQUE, "ml", "workers", {"spec": {"replicas": 8}}, subresource="scale")
        await stage.turn(0)
        assert await replicas(stage) == 5


async def test_a_target_at_zero_is_not_scaled() -> None:
    async with running("autoscaler") as stage:
        await stage.create(clique(1), scaler(2, 5))
        await stage.turn(0)
        await stage.client.patch(PODCLIQUE, "ml", "workers", {"spec": {"replicas": 0}}, subresource="scale")
        await stage.turn(0)

        assert await replicas(stage) == 0


async def test_a_missing_target_is_reported_and_scaled_once_it_exists() -> None:
    async with running("autoscaler") as stage:
        await stage.create(scaler(3, 5))
        await stage.turn(0)
        conditions = (await stage.client.get(AUTOSCALER, "ml", "workers"))["status"]["conditions"]
        assert [one["message"] for one in conditions] == ["PodClique workers does not exist"]

        await stage.create(clique(1))
        await stage.turn(0)
        assert await replicas(stage) == 3
