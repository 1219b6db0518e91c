"""Sharing: pods that claim devices together get them, keep them while they run, and leave none behind."""

from typing import Any

import pytest

from engine.ids import Kind
from engine.runtime.sync_report import Ending
from resources.base import kinds
from tests.builders import claim_template, clique, group, podcliqueset, share
from tests.controlplane.cluster import ControlPlane
from tests.stories.stage import Stage, stage
from tests.stories.test_control_plane import connection, define, synced

pytestmark = pytest.mark.anyio


async def claims(cluster: Stage) -> list[str]:
    return sorted(one["metadata"]["name"] for one in await cluster.objects(kinds.RESOURCE_CLAIM))


def llm(replicas: int = 1, namespace: str = "default", prefix: str = "") -> dict[str, Any]:
    """Leaders and workers that share a fabric for each replica of their group; every worker has a device of its own.

    `prefix`: how the names of all claim templates begin.
    """
    device, fabric, cache = (f"{prefix}{name}" for name in ("device", "fabric", "cache"))
    leader, worker = clique("leader"), clique("worker", 2, resourceSharing=[share(device, "PerReplica")])
    pool = group("pool", "leader", "worker", replicas=2, resourceSharing=[share(fabric, "PerReplica")])
    shared = {"resourceClaimTemplates": [claim_template(name) for name in (device, fabric, cache)], "resourceSharing": [share(cache)]}
    return podcliqueset("llm", leader, worker, groups=(pool,), replicas=replicas, namespace=namespace, **shared)


async def test_every_pod_runs_with_the_claims_that_it_shares() -> None:
    async with stage() as cluster:
        await cluster.apply(llm())

        report = await cluster.sync()

        assert report.ending is Ending.DONE
        assert await claims(cluster) == [
            "llm-0-pool-0-fabric",
            "llm-0-pool-0-worker-0-device",
            "llm-0-pool-0-worker-1-device",
            "llm-0-pool-1-fabric",
            "llm-0-pool-1-worker-0-device",
            "llm-0-pool-1-worker-1-device",
            "llm-all-cache",
        ]
        for claim in await cluster.objects(kinds.RESOURCE_CLAIM):
            users = {one["name"] for one in claim["status"]["reservedFor"]}
            named = {
                pod["metadata"]["name"]
                for pod in await cluster.objects(kinds.POD)
                if claim["metadata"]["name"] in [one["resourceClaimName"] for one in pod["spec"]["resourceClaims"]]
            }
            assert users == named != set()

        await cluster.sync()
        assert cluster.process.count == 0


async def test_a_pod_that_is_replaced_takes_over_the_claim_of_its_seat() -> None:
    async with stage() as cluster:
        await cluster.apply(llm())
        await cluster.sync()
        before = {claim["metadata"]["name"]: claim["metadata"]["uid"] for claim in await cluster.objects(kinds.RESOURCE_CLAIM)}

        pod = next(one for one in await cluster.objects(kinds.POD) if one["spec"]["hostname"] == "llm-0-pool-0-worker-1")
        await cluster.delete(kinds.POD, pod["metadata"]["name"])
        report = await cluster.sync()

        assert report.ending is Ending.DONE
        assert {claim["metadata"]["name"]: claim["metadata"]["uid"] for claim in await cluster.objects(kinds.RESOURCE_CLAIM)} == before


async def test_scaling_in_leaves_no_claim_behind_and_none_that_is_used_goes() -> None:
    async with stage() as cluster:
        await cluster.apply(llm(replicas=2))
        await cluster.sync()

        await cluster.scale(kinds.PODCLIQUESET, "llm", 1)
        await cluster.scale(kinds.SCALING_GROUP, "llm-0-pool", 1)
        await cluster.scale(kinds.PODCLIQUE, "llm-0-pool-0-worker", 3)
        report = await cluster.sync()
        await cluster.clock.advance(5)

        assert report.ending is Ending.DONE
        assert await claims(cluster) == [
            "llm-0-pool-0-fabric",
            *(f"llm-0-pool-0-worker-{index}-device" for index in range(3)),
            "llm-all-cache",
        ]


async def test_a_set_that_is_deleted_gives_its_devices_back() -> None:
    async with stage() as cluster:
        await cluster.apply(llm())
        await cluster.sync()

        await cluster.delete(kinds.PODCLIQUESET, "llm")
        report = await cluster.sync()
        await cluster.clock.advance(30)

        assert report.ending is Ending.DONE
        assert await cluster.names() == set()


async def test_claims_that_the_template_has_no_longer_are_kept_while_pods_use_them() -> None:
    """No webhook keeps a user from renaming claim templates: pods keep the devices that they have, and replaced ones get the new claims."""
    async with stage() as cluster:
        await cluster.apply(llm())
        await cluster.sync()
        before = {claim["metadata"]["name"]: claim["metadata"]["uid"] for claim in await cluster.objects(kinds.RESOURCE_CLAIM)}
        pods = set(cluster.there(kinds.POD))

        await cluster.apply(llm(prefix="x-"))
        report = await cluster.sync()

        assert report.ending is Ending.DONE
        after = {claim["metadata"]["name"]: claim["metadata"] for claim in await cluster.objects(kinds.RESOURCE_CLAIM)}
        assert {name: after[name]["uid"] for name in before} == before and len(after) == 2 * len(before)
        assert not any("deletionTimestamp" in metadata for metadata in after.values())
        assert set(cluster.there(kinds.POD)) == pods

        for name in pods:
            await cluster.delete(kinds.POD, name)
        assert (await cluster.sync()).ending is Ending.DONE
        await cluster.clock.advance(5)
        assert set(await claims(cluster)) == after.keys() - before.keys()


async def test_pods_that_need_a_template_of_others_are_made_once_it_is_there() -> None:
    template = {
        "apiVersion": kinds.RESOURCE_CLAIM_TEMPLATE.api_version,
        "kind": kinds.RESOURCE_CLAIM_TEMPLATE.name,
        "metadata": {"name": "shared-gpu", "namespace": "default"},
        "spec": claim_template("shared-gpu")["templateSpec"],
    }
    async with stage() as cluster:
        await cluster.apply(podcliqueset("web", clique("worker", 2, resourceSharing=[share("shared-gpu")]), clique("router")))
        report = await cluster.sync(patience=20)

        assert report.ending is not Ending.DONE
        assert [pod["metadata"]["labels"]["grove.io/podclique"] for pod in await cluster.objects(kinds.POD)] == ["web-0-router"]

        await cluster.kubectl.create(kinds.RESOURCE_CLAIM_TEMPLATE, "default", template)
        assert (await cluster.sync()).ending is Ending.DONE
        assert len(await cluster.objects(kinds.POD)) == 3
        assert await claims(cluster) == ["web-0-worker-all-shared-gpu"]


DEVICE_CLASS = Kind("resource.k8s.io", "v1", "DeviceClass", "deviceclasses", namespaced=False)
RESOURCE_SLICE = Kind("resource.k8s.io", "v1", "ResourceSlice", "resourceslices", namespaced=False)


def devices(node: str) -> dict[str, Any]:
    """Eight devices on a node, as their driver would tell."""
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    listed = [{"name": f"gpu-{number}"} for number in range(8)]
    return {
        "apiVersion": RESOURCE_SLICE.api_version,
        "kind": RESOURCE_SLICE.name,
        "metadata": {"name": f"{node}-gpu"},
        "spec": {"driver": "gpu.example.com", "nodeName": node, "pool": pool, "devices": listed},
    }


@pytest.mark.e2e
async def test_a_real_scheduler_gives_pods_the_devices_that_they_share(control_plane: ControlPlane) -> None:
    namespace = "sharing"
    async with connection(control_plane, "admin") as admin:
        await define(admin, namespace)
        device_class = {
            "apiVersion": DEVICE_CLASS.api_version,
            "kind": DEVICE_CLASS.name,
            "metadata": {"name": "gpu.example.com"},
            "spec": {},
        }
        await admin.create(DEVICE_CLASS, "", device_class)
        for node in (await admin.list(kinds.NODE)).items:
            await admin.create(RESOURCE_SLICE, "", devices(node["metadata"]["name"]))
        await admin.create(kinds.PODCLIQUESET, namespace, llm(namespace=namespace))

        report = await synced(control_plane, namespace)

        assert (report.ending, report.failures) == (Ending.DONE, ())
        made = (await admin.list(kinds.RESOURCE_CLAIM, namespace)).items
        assert len(made) == 7
        assert all(claim["status"]["reservedFor"] for claim in made)

        await admin.patch(kinds.SCALING_GROUP, namespace, "llm-0-pool", {"spec": {"replicas": 1}}, subresource="scale")
        assert (await synced(control_plane, namespace)).ending is Ending.DONE
        left = sorted(claim["metadata"]["name"] for claim in (await admin.list(kinds.RESOURCE_CLAIM, namespace)).items)
        assert left == ["llm-0-pool-0-fabric", "llm-0-pool-0-worker-0-device", "llm-0-pool-0-worker-1-device", "llm-all-cache"]

        reference = "accelerators-of-the-prefill-workers"
        worker = clique("prefill-workers1", resourceSharing=[share(reference, "PerReplica")])
        templates = [claim_template(reference)]
        groups = (group("prefill-groups", "prefill-workers1", replicas=2),)
        long = podcliqueset("inference-llama", worker, groups=groups, namespace=namespace, resourceClaimTemplates=templates)
        await admin.create(kinds.PODCLIQUESET, namespace, long)
        assert (await synced(control_plane, namespace)).ending is Ending.DONE
        pods = [pod for pod in (await admin.list(kinds.POD, namespace)).items if pod["metadata"]["name"].startswith("inference-llama")]
        names = [entry["resourceClaimName"] for pod in pods for entry in pod["spec"]["resourceClaims"]]
        assert len(pods) == 2 and min(map(len, names)) > 63 and all(pod["spec"].get("nodeName") for pod in pods)

        for name in ("llm", "inference-llama"):
            await admin.delete(kinds.PODCLIQUESET, namespace, name, propagation="Background")
        assert (await synced(control_plane, namespace)).ending is Ending.DONE
        assert (await admin.list(kinds.RESOURCE_CLAIM, namespace)).items == []
