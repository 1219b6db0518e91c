"""The real LeaderWorkerSet controller, the real KAI scheduler and Volcano's kinds do what the engine relies on."""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from engine import conditions
from engine.errors import Forbidden, Invalid, NotFound
from engine.ids import Kind
from engine.runtime.clock import SystemClock
from providers.kubernetes.client import KubernetesClient
from providers.kubernetes.connect import connected
from providers.kubernetes.kubeconfig import Source
from resources.base.kinds import (
    KAI_POD_GROUP,
    KAI_QUEUE,
    KAI_TOPOLOGY,
    KINDS,
    LEADER_WORKER_SET,
    NAMESPACE,
    POD,
    SERVICE,
    SERVICE_ACCOUNT,
    VOLCANO_POD_GROUP,
)
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.fixtures import RACK, RACKS
from tests.controlplane.schedulers.kai import queue
from tests.controlplane.schedulers.lws import REFUSED
from tests.controlplane.schedulers.volcano import volcano_substitute
from tests.waiting import Objects, eventually, until_objects

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

STATEFUL_SET = Kind("apps", "v1", "StatefulSet", "statefulsets")
CONTROLLER_REVISION = Kind("apps", "v1", "ControllerRevision", "controllerrevisions")
LWS_CHILDREN = (POD, SERVICE, STATEFUL_SET, CONTROLLER_REVISION)
WHOLE_NODE = {"limits": {"nvidia.com/gpu": "8"}, "requests": {"nvidia.com/gpu": "8"}}


@asynccontextmanager
async def namespace(plane: ControlPlane, name: str) -> AsyncIterator[KubernetesClient]:
    """A client of the administrator and a new namespace. No pod of it is left on a node afterwards."""
    async with connected(Source(str(plane.kubeconfig())), SystemClock()) as client:
        await client.create(NAMESPACE, "", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        await until_objects(client, SERVICE_ACCOUNT, name, lambda accounts: "default" in accounts)
        try:
            yield client
        finally:
            await client.delete(NAMESPACE, "", name)
            await eventually(lambda: has_no_pod(client, name))


async def dry_run(plane: ControlPlane, body: Mapping[str, Any]) -> dict[str, Any]:
    """The object as it would be created in the namespace `default`. Raises as `create` does."""
    kind = {(kind.api_version, kind.name): kind for kind in KINDS}[body["apiVersion"], body["kind"]]
    async with connected(Source(str(plane.kubeconfig())), SystemClock()) as client:
        return await client.trying().create(kind, "default", body)


def manifest(kind: Kind, name: str, spec: Mapping[str, Any], **metadata: Any) -> dict[str, Any]:
    """An object of that kind."""
    return {"apiVersion": kind.api_version, "kind": kind.name, "metadata": {"name": name, **metadata}, "spec": dict(spec)}


def pod_spec(**spec: Any) -> dict[str, Any]:
    """The spec of a pod of one container that takes a whole node."""
    return {"containers": [{"name": "main", "image": "server:1", "resources": WHOLE_NODE}], **spec}


async def create_gang(client: KubernetesClient, place: str, name: str, *, queue: str = "dynamo", **spec: Any) -> None:
    """A gang of three whole-node pods for KAI; `spec` is more of its PodGroup's spec.

    KAI 0.12 mixes up PodGroups of one name in two namespaces: no two gangs of the tests have the same name.
    """
    await client.create(KAI_POD_GROUP, place, manifest(KAI_POD_GROUP, name, {"minMember": 3, "queue": queue, **spec}))
    for index in range(3):
        body = manifest(
            POD,
            f"{name}-{index}",
            pod_spec(schedulerName="kai-scheduler"),
            annotations={"pod-group-name": name},
            labels={"kai.scheduler/queue": queue, "gang": name},
        )
        await client.create(POD, place, body)


async def occupy(client: KubernetesClient, place: str, nodes: Iterable[str]) -> None:
    """Fill these nodes with a pod each, named like the node."""
    for node in nodes:
        await client.create(POD, place, manifest(POD, node, pod_spec(nodeName=node)))
    await until_objects(client, POD, place, lambda pods: all(running(pods[node]) for node in nodes))


async def has_no_pod(client: KubernetesClient, place: str) -> bool:
    """Whether a namespace has no pod. Those that it has are deleted: controllers may go on creating them for a moment."""
    pods = (await client.list(POD, place)).items
    for pod in pods:
        await delete_pod(client, place, pod["metadata"]["name"])
    return not pods


async def delete_pod(client: KubernetesClient, place: str, name: str) -> None:
    """Delete a pod at once, if it still exists."""
    with suppress(NotFound):
        await client.delete(POD, place, name, grace=0)


def running(pod: Mapping[str, Any]) -> bool:
    return bool(pod["status"].get("phase") == "Running")


def gang_runs(name: str) -> Callable[[Objects], bool]:
    """Whether all three pods of the gang are running."""
    return lambda pods: [running(pod) for pod in members(pods, name)] == [True] * 3


def members(pods: Objects, name: str) -> list[dict[str, Any]]:
    return [pod for pod in pods.values() if pod["metadata"].get("labels", {}).get("gang") == name]


async def until_unschedulable(client: KubernetesClient, place: str, name: str, reason: str = "") -> None:
    """Wait until KAI has found no place for the gang, for that reason, and check that no pod of it has a node.

    It judges a gang whose pods it has not all seen as well: the first reason need not be the one that stays.
    """
    await until_objects(client, KAI_POD_GROUP, place, lambda groups: unschedulable(groups[name]) and reason in unschedulable(groups[name]))
    pods = {pod["metadata"]["name"]: pod for pod in (await client.list(POD, place)).items}
    assert [pod["spec"].get("nodeName") for pod in members(pods, name)] == [None] * 3


def unschedulable(group: Mapping[str, Any]) -> str:
    """Reasons and messages of the PodGroup's condition that it cannot be scheduled, empty without one."""
    reported = group.get("status", {}).get("schedulingConditions") or ()
    condition = conditions.find(reported, "UnschedulableOnNodePool") or {}
    return " ".join(f"{reason['reason']}: {reason['message']}" for reason in condition.get("reasons") or ())


def why_pending(group: Mapping[str, Any]) -> str:
    """The reason of the condition of one of Volcano's PodGroups that it cannot be scheduled, empty without one."""
    condition = conditions.find(group.get("status", {}).get("conditions") or (), "Unschedulable") or {}
    return str(condition.get("reason", ""))


async def test_a_leader_worker_set_brings_up_its_groups_and_leaves_nothing(scheduling_plane: ControlPlane) -> None:
    template = {"size": 3, "workerTemplate": {"spec": {"containers": [{"name": "main", "image": "server:1"}]}}}
    async with namespace(scheduling_plane, "lws") as client:
        await client.create(LEADER_WORKER_SET, "lws", manifest(LEADER_WORKER_SET, "web", {"replicas": 2, "leaderWorkerTemplate": template}))
        pods = await until_objects(client, POD, "lws", lambda pods: len(pods) == 6 and all(map(running, pods.values())))
        assert sorted(pods) == ["web-0", "web-0-1", "web-0-2", "web-1", "web-1-1", "web-1-2"]
        assert pods["web-1-2"]["metadata"]["labels"]["leaderworkerset.sigs.k8s.io/worker-index"] == "2"
        await until_objects(client, LEADER_WORKER_SET, "lws", lambda sets: sets["web"].get("status", {}).get("readyReplicas") == 2)

        await client.delete(LEADER_WORKER_SET, "lws", "web", propagation="Background")
        for kind in LWS_CHILDREN:
            await until_objects(client, kind, "lws", lambda objects: not objects)


async def test_a_leader_worker_set_of_size_0_is_refused_by_its_webhook(scheduling_plane: ControlPlane) -> None:
    with pytest.raises(Forbidden, match="size must be equal or greater than 1"):
        await dry_run(scheduling_plane, REFUSED)


async def test_kai_places_a_gang_whole_or_not_at_all(scheduling_plane: ControlPlane) -> None:
    async with namespace(scheduling_plane, "kai-gang") as client:
        await occupy(client, "kai-gang", list(RACKS)[:8])
        await create_gang(client, "kai-gang", "wide")
        await until_unschedulable(client, "kai-gang", "wide", "Resources were found for 2 pods while 3 are required")

        await delete_pod(client, "kai-gang", "node-0000")
        await until_objects(client, POD, "kai-gang", gang_runs("wide"))


async def test_kai_places_no_gang_beyond_the_limit_of_its_queue(scheduling_plane: ControlPlane) -> None:
    async with namespace(scheduling_plane, "kai-queue") as client:
        await client.create(KAI_QUEUE, "", queue("small", gpus=16))
        await create_gang(client, "kai-queue", "limited", queue="small")
        await until_unschedulable(client, "kai-queue", "limited", "OverLimit")

        await client.patch(KAI_QUEUE, "", "small", {"spec": queue("small", gpus=24)["spec"]})
        await until_objects(client, POD, "kai-queue", gang_runs("limited"))


async def test_kai_places_a_gang_in_one_rack_if_its_topology_requires_it(scheduling_plane: ControlPlane) -> None:
    constraint = {"topology": "racks", "requiredTopologyLevel": RACK}
    async with namespace(scheduling_plane, "kai-rack") as client:
        await client.create(KAI_TOPOLOGY, "", manifest(KAI_TOPOLOGY, "racks", {"levels": [{"nodeLabel": RACK}]}))
        two_are_free_in_each = ["node-0000", "node-0001", "node-0002", "node-0005", "node-0006", "node-0007"]
        await occupy(client, "kai-rack", two_are_free_in_each)
        await create_gang(client, "kai-rack", "packed", topologyConstraint=constraint)
        await until_unschedulable(client, "kai-rack", "packed")

        await delete_pod(client, "kai-rack", "node-0006")
        pods = await until_objects(client, POD, "kai-rack", gang_runs("packed"))
        assert {RACKS[pod["spec"]["nodeName"]] for pod in members(pods, "packed")} == {"rack-1"}


async def test_volcanos_schema_accepts_the_pod_group_of_a_gang(scheduling_plane: ControlPlane) -> None:
    created = await dry_run(scheduling_plane, manifest(VOLCANO_POD_GROUP, "web", {"minMember": 3, "queue": "default"}))

    assert created["spec"] == {"minMember": 3, "queue": "default"}


@pytest.mark.parametrize("spec", [{"minMember": "three"}, {"minMember": -1}, {"minMember": 3, "queue": ["default"]}])
async def test_volcanos_schema_refuses_a_pod_group_of_wrong_types(scheduling_plane: ControlPlane, spec: Mapping[str, Any]) -> None:
    with pytest.raises(Invalid, match=r"spec\."):
        await dry_run(scheduling_plane, manifest(VOLCANO_POD_GROUP, "web", spec))


async def test_the_sandboxs_scheduler_places_a_group_of_leader_worker_sets_by_volcanos_pod_group(scheduling_plane: ControlPlane) -> None:
    template = {
        "size": 3,
        "workerTemplate": {
            "metadata": {"annotations": {"scheduling.k8s.io/group-name": "web"}, "labels": {"gang": "web"}},
            "spec": pod_spec(schedulerName="volcano"),
        },
    }
    async with namespace(scheduling_plane, "volcano") as client, volcano_substitute(scheduling_plane):
        await occupy(client, "volcano", list(RACKS)[:8])
        await client.create(VOLCANO_POD_GROUP, "volcano", manifest(VOLCANO_POD_GROUP, "web", {"minMember": 3}))
        await client.create(LEADER_WORKER_SET, "volcano", manifest(LEADER_WORKER_SET, "web", {"leaderWorkerTemplate": template}))
        await until_objects(client, VOLCANO_POD_GROUP, "volcano", lambda groups: why_pending(groups["web"]) == "NotEnoughResources")
        pods = {pod["metadata"]["name"]: pod for pod in (await client.list(POD, "volcano")).items}
        assert [pod["spec"].get("nodeName") for pod in members(pods, "web")] == [None] * 3

        await delete_pod(client, "volcano", "node-0000")
        await until_objects(client, POD, "volcano", gang_runs("web"))
        await until_objects(client, VOLCANO_POD_GROUP, "volcano", lambda groups: groups["web"]["status"]["phase"] == "Running")
