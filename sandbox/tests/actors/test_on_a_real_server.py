"""The actors on a real API server."""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from engine import conditions
from engine.errors import AlreadyExists
from engine.ids import Kind
from engine.runtime.clock import SystemClock
from engine.runtime.provider import Client
from grove_sandbox.actors.options import ActorOptions
from grove_sandbox.registry import run_actors
from providers.kubernetes.connect import connected
from providers.kubernetes.kubeconfig import Source
from resources.base.kinds import CRD, NAMESPACE, NODE, POD, PODGANG, SERVICE_ACCOUNT
from resources.schema.crds import crds
from sandbox.tests.actors.manifests import gang, pod
from tests.controlplane.cluster import ControlPlane
from tests.waiting import Objects, until_objects

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]


async def until(client: Client, kind: Kind, true: Callable[[Objects], bool], namespace: str = "ml") -> None:
    """Return once that holds of the objects of a kind, by name."""
    await until_objects(client, kind, namespace, true)


def says(body: Mapping[str, Any], type: str) -> Mapping[str, Any]:
    return conditions.find(body.get("status", {}).get("conditions") or (), type) or {}


def are_ready(*names: str) -> Callable[[Objects], bool]:
    return lambda seen: all(name in seen and says(seen[name], "Ready").get("status") == "True" for name in names)


@asynccontextmanager
async def running(plane: ControlPlane, *names: str) -> AsyncGenerator[Client]:
    """Two nodes of eight GPUs, the kinds of workloads and a namespace, made for the test and gone after it."""
    clock = SystemClock()
    async with connected(Source(path=str(plane.kubeconfig())), clock, field_manager="sandbox") as client, defined(client):
        await client.create(NAMESPACE, "", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ml"}})
        await until(client, SERVICE_ACCOUNT, lambda seen: "default" in seen)
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(run_actors, client, clock, names, ActorOptions(nodes=2))
                await until(client, NODE, are_ready("node-0000", "node-0001"))
                try:
                    yield client
                finally:
                    await client.delete(NAMESPACE, "", "ml")
                    await until(client, NAMESPACE, lambda seen: "ml" not in seen)
                tasks.cancel_scope.cancel()
        finally:
            for node in ("node-0000", "node-0001"):
                await client.delete(NODE, "", node)


@asynccontextmanager
async def defined(client: Client) -> AsyncGenerator[None]:
    """The kinds of workloads, those of them taken away again that were not there before."""
    made = []
    for definition in crds():
        try:
            made.append((await client.create(CRD, "", definition))["metadata"]["name"])
        except AlreadyExists:
            continue
    await until(client, CRD, lambda seen: says(seen["podgangs.scheduler.grove.io"], "Established").get("status") == "True")
    try:
        yield
    finally:
        for name in made:
            await client.delete(CRD, "", name)
        await until(client, CRD, lambda seen: not seen.keys() & set(made))


async def test_a_gang_is_bound_started_in_order_and_deleted(api_server: ControlPlane) -> None:
    async with running(api_server, "scheduler", "kubelet") as client:
        await client.create(PODGANG, "ml", gang("g", {"l": (1, ["l-0"]), "w": (2, ["w-0", "w-1"])}))
        for name in ("w-0", "w-1"):
            await client.create(POD, "ml", pod(name, gpus=4, gang="g", clique="w", after=["--podcliques=l:1"]))
        await client.create(POD, "ml", pod("l-0", gpus=4, gang="g", clique="l"))
        await until(client, POD, are_ready("l-0", "w-0", "w-1"))

        for name in ("l-0", "w-0", "w-1"):
            await client.delete(POD, "ml", name)
        await until(client, POD, lambda seen: not seen)


async def test_a_gang_that_does_not_fit_stays_unbound_and_reports_why(api_server: ControlPlane) -> None:
    async with running(api_server, "scheduler", "kubelet") as client:
        await client.create(PODGANG, "ml", gang("g", {"w": (5, [f"w-{k}" for k in range(5)])}))
        for k in range(5):
            await client.create(POD, "ml", pod(f"w-{k}", gpus=4, gang="g", clique="w"))
        await until(client, POD, lambda seen: all(says(body, "PodScheduled").get("reason") == "Unschedulable" for body in seen.values()))

        pods = (await client.list(POD, "ml")).items
        assert not any(body["spec"].get("nodeName") for body in pods)
        assert "Insufficient nvidia.com/gpu" in says(pods[0], "PodScheduled")["message"]


def restarts(body: dict[str, Any]) -> int:
    """How often the first container has restarted; 0 before it has a status."""
    statuses = body["status"].get("containerStatuses") or [{"restartCount": 0}]
    return int(statuses[0]["restartCount"])


async def test_pods_fail_as_their_annotations_say(api_server: ControlPlane) -> None:
    async with running(api_server, "scheduler", "kubelet") as client:
        await client.create(POD, "ml", pod("gone", annotations={"sandbox.grove.io/fail": "evict@1s"}))
        await client.create(POD, "ml", pod("done", restartPolicy="Never", annotations={"sandbox.grove.io/fail": "exit:0"}))
        await client.create(POD, "ml", pod("loops", annotations={"sandbox.grove.io/fail": "crash"}))
        await until(client, POD, lambda seen: seen["gone"]["status"].get("reason") == "Evicted")
        await until(client, POD, lambda seen: seen["done"]["status"]["phase"] == "Succeeded")
        await until(client, POD, lambda seen: restarts(seen["loops"]) == 1)
