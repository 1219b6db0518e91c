"""DynamicResources: a pod gets all of its devices on one node, or none."""

from typing import Any

import pytest

from grove_sandbox.actors.options import ActorOptions
from resources.base.kinds import DEVICE_CLASS, NODE, POD, RESOURCE_CLAIM, RESOURCE_SLICE
from sandbox.tests.actors.domains import EVERYBODY, domain, member, serving
from sandbox.tests.actors.manifests import gang, node, pod
from sandbox.tests.actors.stage import Stage, on, running
from tests.stories.domains import assert_invariants

pytestmark = pytest.mark.anyio

TWO = ActorOptions(nodes=2)


def published(node_: str, *devices: str, driver: str = "gpu.example.com", model: str = "a100") -> dict[str, Any]:
    """A slice of devices of somebody else's driver."""
    listed = [{"name": name, "attributes": {"model": {"string": model}, "healthy": {"bool": True}}} for name in devices]
    pool = {"name": node_, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": driver, "nodeName": node_, "pool": pool, "devices": listed}
    metadata = {"name": f"{node_}-{driver}"}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": metadata, "spec": spec}


def device_class(name: str, expression: str) -> dict[str, Any]:
    selectors = [{"cel": {"expression": expression}}]
    return {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": name}, "spec": {"selectors": selectors}}


def claim(name: str, of: str, count: int = 1) -> dict[str, Any]:
    spec = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": of, "count": count}}]}}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": name, "namespace": "ml"}, "spec": spec}


def user(name: str, *claims: str, **more: Any) -> dict[str, Any]:
    return pod(name, resourceClaims=[{"name": f"c{at}", "resourceClaimName": one} for at, one in enumerate(claims)], **more)


async def bound(stage: Stage) -> dict[str, str]:
    """Where the pods are that have a node."""
    pods = (await stage.client.list(POD, "ml")).items
    return {one["metadata"]["name"]: one["spec"]["nodeName"] for one in pods if one["spec"].get("nodeName")}


async def devices(stage: Stage, name: str) -> list[str]:
    found = await stage.client.get(RESOURCE_CLAIM, "ml", name)
    allocation = (found.get("status") or {}).get("allocation") or {}
    return [f"{one['pool']}/{one['device']}" for one in (allocation.get("devices") or {}).get("results") or ()]


async def publish(stage: Stage, *bodies: dict[str, Any]) -> None:
    for body in bodies:
        await stage.client.create(DEVICE_CLASS if body["kind"] == "DeviceClass" else RESOURCE_SLICE, "", body)


GPUS = "device.driver == 'gpu.example.com' && device.attributes['gpu.example.com'].model == 'a100'"


async def test_one_pod_of_a_domain_fits_on_a_node_and_the_next_one_reports_why_it_does_not() -> None:
    async with serving(options=TWO) as (stage, domains):
        await domains.create(domain("d"))
        await stage.turn(0.2)
        await stage.create(*(member(name, "d") for name in "abc"))
        await stage.turn(5)
        assert await bound(stage) == {"a": "node-0000", "b": "node-0001"}
        assert await stage.condition("c", "PodScheduled") == (
            "False",
            "Unschedulable",
            "0/2 nodes are available: 2 cannot allocate all claims.",
        )

        await stage.client.delete(POD, "ml", "a")
        await stage.turn(10)
        assert await bound(stage) == {"b": "node-0001", "c": "node-0000"}
        assert await stage.is_ready("c")
        await assert_invariants(stage.client)


async def test_pods_of_different_domains_never_share_a_node() -> None:
    async with serving(options=TWO) as (stage, domains):
        for name in ("d", "e"):
            await domains.create(domain(name))
        await stage.turn(0.2)
        await stage.create(member("d0", "d"), member("e0", "e"), member("e1", "e"))
        for _ in range(20):
            await stage.turn(0.5)
            await assert_invariants(stage.client)

        assert await bound(stage) == {"d0": "node-0000", "e0": "node-0001"}


async def test_a_gang_gets_all_of_its_devices_or_none() -> None:
    async with serving(options=TWO) as (stage, domains):
        await domains.create(domain("d"))
        await stage.turn(0.2)
        await stage.create(member("alone", "d"))
        await stage.turn(1)
        await stage.create(gang("g", {"w": (2, ["w-0", "w-1"])}), *(member(f"w-{k}", "d", gang="g", clique="w") for k in range(2)))
        await stage.turn(5)

        assert await bound(stage) == {"alone": "node-0000"}
        assert (await stage.condition("w-1", "PodScheduled"))[2] == (
            "0/2 nodes are available: 2 cannot allocate all claims. 1 of 2 pods of gang ml/g would fit."
        )
        claims = (await stage.client.list(RESOURCE_CLAIM, "ml")).items
        assert sorted("allocation" in (one.get("status") or {}) for one in claims) == [False, False, True]

        await stage.client.delete(POD, "ml", "alone")
        await stage.turn(10)
        assert await bound(stage) == {"w-0": "node-0000", "w-1": "node-0001"}


async def test_a_pod_waits_for_its_claims_to_be_made() -> None:
    async with running("scheduler") as stage:
        await stage.create(node("n0"), user("p", "mine"), member("q", "missing"))
        await stage.turn(2)
        assert await bound(stage) == {}
        assert (await stage.condition("p", "PodScheduled"))[2] == 'resourceclaim "mine" not found'
        assert "waiting for dynamic resource controller" in (await stage.condition("q", "PodScheduled"))[2]

        await stage.create(claim("mine", "whatever.example.com"))
        await stage.turn(5)
        assert await bound(stage) == {}

        await publish(stage, device_class("whatever.example.com", GPUS))
        await stage.turn(5)
        assert await bound(stage) == {"p": "n0"}


async def test_devices_are_allocated_before_the_pod_is_bound() -> None:
    async with running("scheduler") as stage:
        await publish(stage, device_class("gpus", GPUS), published("n0", "g0", "g1"))
        await stage.create(node("n0"), claim("mine", "gpus", 2), user("p", "mine"))
        await stage.turn(0)

        held = await stage.client.get(RESOURCE_CLAIM, "ml", "mine")
        assert await devices(stage, "mine") == ["n0/g0", "n0/g1"]
        assert held["metadata"]["finalizers"] == ["resource.kubernetes.io/delete-protection"]
        assert [one["name"] for one in held["status"]["reservedFor"]] == ["p"]
        bound_at = int((await stage.pod("p"))["metadata"]["resourceVersion"])
        assert int(held["metadata"]["resourceVersion"]) < bound_at


async def test_devices_are_selected_by_their_class() -> None:
    async with running("scheduler") as stage:
        healthy = " && device.attributes['gpu.example.com'].healthy == true"
        await publish(stage, device_class("gpus", GPUS + healthy), published("n0", "g0", model="t4"), published("n1", "g0"))
        await stage.create(node("n0"), node("n1"), claim("mine", "gpus"), user("p", "mine"))
        await stage.turn(0)

        assert await bound(stage) == {"p": "n1"}


async def test_a_class_with_an_unsupported_selector_has_simulated_devices_only() -> None:
    async with running("scheduler", "claims") as stage:
        await publish(stage, device_class("odd", "device.capacity['gpu.example.com'].memory.isGreaterThan(quantity('1Gi'))"))
        await stage.create(node("n0"), claim("mine", "odd"), user("p", "mine"))
        await stage.turn(0)

        assert await bound(stage) == {"p": "n0"}
        assert await devices(stage, "mine") == ["n0/gpu-0"]


async def test_pods_that_share_a_claim_share_its_node() -> None:
    async with running("scheduler", "claims", "kubelet", "garbage", options=ActorOptions(nodes=3)) as stage:
        await publish(stage, device_class("gpus", GPUS), *(published(f"node-000{k}", "g0") for k in range(3)))
        await stage.create(claim("ours", "gpus"), gang("g", {"w": (2, ["w-0", "w-1"])}))
        await stage.create(*(user(f"w-{k}", "ours", gpus=4, gang="g", clique="w") for k in range(2)))
        await stage.turn(1)
        assert await bound(stage) == {"w-0": "node-0000", "w-1": "node-0000"}

        await stage.create(user("late", "ours", gpus=4))
        await stage.turn(1)
        assert "late" not in await bound(stage)
        assert "resourceclaim not available on the node" in (await stage.condition("late", "PodScheduled"))[2]


async def test_a_restarted_scheduler_knows_the_allocated_devices() -> None:
    async with running("claims") as stage:
        await publish(stage, device_class("gpus", GPUS), published("n0", "g0"))
        await stage.create(node("n0"), claim("first", "gpus"), claim("second", "gpus"))
        async with on(stage, "scheduler"):
            await stage.create(user("p", "first"))
            await stage.turn(0)
        await stage.create(user("q", "second"))
        async with on(stage, "scheduler"):
            await stage.turn(1)

        assert await bound(stage) == {"p": "n0"}


async def test_devices_allocated_for_a_pod_that_is_gone_are_free_again() -> None:
    async with serving(*EVERYBODY, options=TWO) as (stage, domains):
        await domains.create(domain("d"))
        await stage.turn(0.2)
        await stage.create(*(member(name, "d") for name in "ab"))
        await stage.turn(0)
        for name in "ab":
            await stage.client.delete(POD, "ml", name, grace=0)
        await stage.turn(10)

        assert await stage.names(RESOURCE_CLAIM) == set()
        assert await domains.labelled() == {}


async def test_devices_on_a_node_that_no_longer_fits_are_exchanged_for_others() -> None:
    async with running() as stage:
        await publish(stage, device_class("gpus", GPUS), published("n0", "g0"), published("n1", "g0"))
        await stage.create(node("n0"), node("n1"), claim("mine", "gpus"), user("p", "mine"))
        # What is left of a scheduler that was killed after it had allocated and before it could bind.
        allocation = {
            "devices": {"results": [{"request": "gpu", "driver": "gpu.example.com", "pool": "n0", "device": "g0"}]},
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n0"]}]}]},
        }
        reserved = [{"resource": "pods", "name": "p", "uid": (await stage.pod("p"))["metadata"]["uid"]}]
        status = {"allocation": allocation, "reservedFor": reserved}
        await stage.client.patch(RESOURCE_CLAIM, "ml", "mine", {"status": status}, subresource="status")
        await stage.client.patch(NODE, "", "n0", {"spec": {"unschedulable": True}})
        async with on(stage, "scheduler"):
            await stage.turn(1)

        assert await bound(stage) == {"p": "n1"}
        assert await devices(stage, "mine") == ["n1/g0"]
