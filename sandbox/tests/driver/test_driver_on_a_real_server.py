"""The driver with a real control plane: kube-scheduler allocates, kube-controller-manager runs the other controllers."""

from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager

import anyio
import pytest

from engine.runtime.clock import SystemClock
from engine.runtime.provider import Client
from grove_sandbox.actors.options import ActorOptions, DriverOptions
from grove_sandbox.installation.installation import NAMESPACE_OF_DRIVER
from grove_sandbox.registry import run_actors
from providers.fabrics.nvidia.names import COMPUTE_DOMAIN, DOMAIN_LABEL
from providers.kubernetes.connect import connected
from providers.kubernetes.kubeconfig import Source
from resources.base.kinds import (
    DEVICE_CLASS,
    NAMESPACE,
    NODE,
    POD,
    RESOURCE_CLAIM,
    RESOURCE_CLAIM_TEMPLATE,
    RESOURCE_SLICE,
    SERVICE_ACCOUNT,
)
from sandbox.tests.actors.domains import domain, member
from sandbox.tests.actors.test_on_a_real_server import are_ready, says, until
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.fixtures import started
from tests.stories.domains import assert_invariants

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

OPTIONS = ActorOptions(nodes=2, driver=DriverOptions(deference=5.0, imex_start=1.0))


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane with its own scheduler, and nobody but us who plays nodes."""
    with started(tmp_path_factory, ["kcm", "scheduler"]) as made:
        yield made


@asynccontextmanager
async def serving(plane: ControlPlane) -> AsyncGenerator[Client]:
    """Two nodes with kubelets and the driver, each a client of its own."""
    clock, source = SystemClock(), Source(path=str(plane.kubeconfig()))
    async with connected(source, clock, field_manager="kubectl") as client, anyio.create_task_group() as tasks:
        async with connected(source, clock, field_manager="kubelet") as kubelet, connected(source, clock, field_manager="driver") as driver:
            await client.create(NAMESPACE, "", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ml"}})
            await until(client, SERVICE_ACCOUNT, lambda seen: "default" in seen)
            tasks.start_soon(run_actors, kubelet, clock, ("kubelet",), OPTIONS)
            tasks.start_soon(run_actors, driver, clock, ("driver",), OPTIONS)
            await until(client, NODE, are_ready("node-0000", "node-0001"))
            await until(client, RESOURCE_SLICE, lambda seen: len(seen) == 2)
            yield client
            tasks.cancel_scope.cancel()


async def test_a_domain_is_set_up_with_one_channel_a_node_and_torn_down(plane: ControlPlane) -> None:
    async with serving(plane) as client:
        classes = {"compute-domain-default-channel.nvidia.com", "compute-domain-daemon.nvidia.com"}
        await until(client, DEVICE_CLASS, lambda seen: seen.keys() == classes)
        uid = (await client.create(COMPUTE_DOMAIN, "ml", domain("d")))["metadata"]["uid"]
        await until(client, RESOURCE_CLAIM_TEMPLATE, lambda seen: "d" in seen)
        for name in "ab":
            await client.create(POD, "ml", member(name, "d"))
        await until(client, POD, are_ready("a", "b"))
        await until(client, POD, lambda seen: len(seen) == 2, NAMESPACE_OF_DRIVER)
        pods = (await client.list(POD, "ml")).items
        assert {body["spec"]["nodeName"] for body in pods} == {"node-0000", "node-0001"}
        await until(client, COMPUTE_DOMAIN, lambda seen: [one["status"] for one in seen["d"]["status"].get("nodes", ())] == ["Ready"] * 2)
        await assert_invariants(client)

        await client.create(POD, "ml", member("c", "d"))
        await until(client, POD, lambda seen: "cannot allocate all claims" in says(seen["c"], "PodScheduled").get("message", ""))
        await client.delete(POD, "ml", "a", grace=0)
        await until(client, POD, are_ready("b", "c"))
        await assert_invariants(client)

        for name in "bc":
            await client.delete(POD, "ml", name, grace=1)
        await until(client, POD, lambda seen: not seen)
        await until(client, RESOURCE_CLAIM, lambda seen: not seen)
        await until(client, NODE, lambda seen: not any(DOMAIN_LABEL in body["metadata"]["labels"] for body in seen.values()))
        await until(client, POD, lambda seen: not seen, NAMESPACE_OF_DRIVER)
        await client.delete(COMPUTE_DOMAIN, "ml", "d", uid=uid)
        await until(client, COMPUTE_DOMAIN, lambda seen: not seen)
        await until(client, RESOURCE_CLAIM_TEMPLATE, lambda seen: not seen)
        await until(client, RESOURCE_CLAIM_TEMPLATE, lambda seen: not seen, NAMESPACE_OF_DRIVER)
