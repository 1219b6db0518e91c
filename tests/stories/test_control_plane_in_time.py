"""What a set does in time, on a real control plane: an update of three levels and a recycling, and no request of ours refused."""

from collections import Counter
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from typing import Any

import anyio
import pytest

from engine.runtime.sync_report import Ending
from providers.kubernetes.client import KubernetesClient
from resources.base import kinds
from tests.builders import clique, group, podcliqueset
from tests.controlplane.cluster import ControlPlane
from tests.stories.pods import clique_of, images, is_ready, label, running
from tests.stories.test_control_plane import Audit, connection, define, synced

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

Pods = dict[str, dict[str, Any]]
SIZES = {"router": 2, "leader": 1, "worker": 2}
REPLICAS = 3
INDEX = "podcliqueset-replica-index"


def workload(namespace: str, version: int) -> dict[str, Any]:
    """Three replicas of a clique that stands alone and of a group of two."""
    cliques = [clique(name, size, pod_spec=running(version)) for name, size in SIZES.items()]
    groups = (group("pool", "leader", "worker", replicas=2),)
    return podcliqueset("llm", *cliques, groups=groups, replicas=REPLICAS, namespace=namespace, terminationDelay="10s")


async def pods_of(admin: KubernetesClient, namespace: str) -> Pods:
    """The pods, by uid: those of a clique that is made again have the names of those before them."""
    return {pod["metadata"]["uid"]: pod for pod in (await admin.list(kinds.POD, namespace)).items}


def away(pods: Iterable[dict[str, Any]]) -> list[str]:
    """The units that do not serve: one for each pod that a clique lacks, and each replica of a group that lacks any."""
    serving = Counter(clique_of(pod) for pod in pods if is_ready(pod))
    found = [f"llm-{index}-router" for index in range(REPLICAS) for _ in range(SIZES["router"] - serving[f"llm-{index}-router"])]
    for unit in (f"llm-{index}-pool-{replica}" for index in range(REPLICAS) for replica in range(2)):
        if any(serving[f"{unit}-{member}"] < SIZES[member] for member in ("leader", "worker")):
            found.append(unit)
    return found


async def follow(events: AsyncGenerator[tuple[str, dict[str, Any]]], pods: Pods, most: list[list[str]]) -> None:
    """Note, with every event, which units are away at once."""
    async with aclosing(events):
        async for verb, pod in events:
            if verb != "BOOKMARK":
                uid = pod["metadata"]["uid"]
                pods.pop(uid, None) if verb == "DELETED" else pods.update({uid: pod})
                most.append(away(pods.values()))


async def test_an_update_of_three_levels_takes_one_unit_at_a_time_and_few_writes(control_plane: ControlPlane) -> None:
    namespace = "updated"
    async with connection(control_plane, "admin") as admin, connection(control_plane, "admin") as watcher:
        await define(admin, namespace)
        await admin.create(kinds.PODCLIQUESET, namespace, workload(namespace, 1))
        assert (await synced(control_plane, namespace)).ending is Ending.DONE
        listing = await admin.list(kinds.POD, namespace)
        pods: Pods = {pod["metadata"]["uid"]: pod for pod in listing.items}
        before, seen, audit = set(pods), list[list[str]](), Audit(control_plane)
        assert away(pods.values()) == []

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(follow, watcher.watch(kinds.POD, namespace, since=listing.revision), pods, seen)
            await admin.patch(kinds.PODCLIQUESET, namespace, "llm", {"spec": workload(namespace, 2)["spec"]})
            report = await synced(control_plane, namespace)
            tasks.cancel_scope.cancel()

        after = await pods_of(admin, namespace)
        assert (report.ending, report.failures) == (Ending.DONE, ())
        assert max(map(len, seen)) == 1
        assert images(after.values()) == {"example/worker:2"}
        assert before.isdisjoint(after) and len(before) == len(after) == REPLICAS * 8
        calls = audit.read()
        assert calls.refused == []
        assert calls.writes["delete pods"] == calls.writes["create pods"] == len(after)
        assert calls.writes.total() <= 6 * len(after)
        status = (await admin.get(kinds.PODCLIQUESET, namespace, "llm"))["status"]
        assert (status["updatedReplicas"], "updateEndedAt" in status["updateProgress"]) == (REPLICAS, True)
        assert (await synced(control_plane, namespace)).ending is Ending.DONE
        assert audit.read().writes.total() == 0

        await admin.delete(kinds.PODCLIQUESET, namespace, "llm", propagation="Background")
        assert (await synced(control_plane, namespace)).ending is Ending.DONE
        assert await pods_of(admin, namespace) == {}
        # The garbage collector deletes as well: whoever comes second finds nothing, and that is all that may be refused.
        assert {code for _, code in audit.read().refused} <= {404}


async def test_a_gang_that_is_without_its_minimum_for_too_long_is_recycled(control_plane: ControlPlane) -> None:
    namespace = "recycled"
    async with connection(control_plane, "admin") as admin:
        await define(admin, namespace)
        await admin.create(kinds.PODCLIQUESET, namespace, workload(namespace, 1))
        assert (await synced(control_plane, namespace)).ending is Ending.DONE
        before, audit = await pods_of(admin, namespace), Audit(control_plane)

        for pod in before.values():
            if clique_of(pod) == "llm-1-router":
                name, status = pod["metadata"]["name"], {"status": unready(pod)}
                await admin.patch(kinds.POD, namespace, name, status, how="strategic", subresource="status")
        report = await synced(control_plane, namespace)

        after = await pods_of(admin, namespace)
        assert (report.ending, report.failures) == (Ending.DONE, ())
        assert all(map(is_ready, after.values()))
        assert {uid for uid in before if uid not in after} == {uid for uid, pod in before.items() if label(pod, INDEX) == "1"}
        calls = audit.read()
        assert calls.refused == []
        assert (calls.writes["delete podcliques"], calls.writes["create podcliques"], calls.writes["delete pods"]) == (5, 5, 8)

        await admin.delete(kinds.PODCLIQUESET, namespace, "llm", propagation="Foreground")
        assert (await synced(control_plane, namespace, rivalled=True)).ending is Ending.DONE
        assert await pods_of(admin, namespace) == {}
        # The garbage collector deletes as well: whoever comes second finds nothing, and that is all that may be refused.
        assert {code for _, code in audit.read().refused} <= {404}


def unready(pod: dict[str, Any]) -> dict[str, Any]:
    """The status of a pod whose containers have started and do not serve."""
    containers = [{**one, "started": True, "ready": False} for one in pod["status"]["containerStatuses"]]
    return {"conditions": [{"type": "Ready", "status": "False"}], "containerStatuses": containers}
