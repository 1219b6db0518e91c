"""Start order: pods that start later are there from the beginning, and wait; what holds them back has a name."""

import base64
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio.to_thread
import pytest

from engine.runtime.sync_report import Ending
from initc.environment import Environment
from initc.wait import wait
from resources.base import kinds
from tests.builders import clique, group, podcliqueset
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.enforcement import require_restricted_pods
from tests.stories.pods import images, running
from tests.stories.stage import Stage, stage
from tests.stories.test_control_plane import connection, define, synced

pytestmark = pytest.mark.anyio

IN_ORDER, EXPLICIT = "CliqueStartupTypeInOrder", "CliqueStartupTypeExplicit"
SLOW = {"sandbox.grove.io/ready-after": "20s"}
NEVER = {"sandbox.grove.io/fail": "never-ready"}


async def by_host(cluster: Stage) -> dict[str, dict[str, Any]]:
    """The pods by their hostnames."""
    return {pod["spec"]["hostname"]: pod for pod in await cluster.objects(kinds.POD)}


def ready_at(pod: dict[str, Any]) -> str:
    """When a pod became ready; empty if it is not."""
    conditions = pod.get("status", {}).get("conditions", ())
    return next((one["lastTransitionTime"] for one in conditions if one["type"] == "Ready" and one["status"] == "True"), "")


def started_at(pod: dict[str, Any]) -> str:
    """When the containers of a pod started, its init containers apart."""
    return str(min(one["state"]["running"]["startedAt"] for one in pod["status"]["containerStatuses"]))


async def test_workers_start_when_their_leader_is_ready_and_a_gateway_after_both() -> None:
    cliques = (
        clique("gateway", startsAfter=["leader", "worker"]),
        clique("leader", annotations=SLOW),
        clique("worker", 3, startsAfter=["leader"]),
    )
    async with stage() as cluster:
        await cluster.apply(podcliqueset("web", *cliques, cliqueStartupType=EXPLICIT))
        made_at = cluster.clock.now()

        report = await cluster.sync()

        assert (report.ending, cluster.process.refused) == (Ending.DONE, [])
        pods = await by_host(cluster)
        workers = [pods[f"web-0-worker-{index}"] for index in range(3)]
        assert (cluster.clock.now() - made_at).total_seconds() >= 20
        assert all(started_at(worker) >= ready_at(pods["web-0-leader-0"]) for worker in workers)
        assert started_at(pods["web-0-gateway-0"]) >= max(map(ready_at, workers))
        assert {pod["metadata"]["creationTimestamp"] for pod in pods.values()} == {workers[0]["metadata"]["creationTimestamp"]}

        await cluster.sync()

        assert cluster.process.count == 0


async def test_the_minimum_of_those_before_is_enough() -> None:
    async with stage() as cluster:
        await cluster.apply(podcliqueset("web", clique("leader", 2, minAvailable=1), clique("worker"), cliqueStartupType=IN_ORDER))
        await cluster.sync(wait=False)
        late = (await by_host(cluster))["web-0-leader-1"]["metadata"]["name"]
        await cluster.kubectl.patch(kinds.POD, "default", late, {"metadata": {"annotations": NEVER}})

        await cluster.sync(patience=60)

        pods = await by_host(cluster)
        assert [bool(ready_at(pods[f"web-0-{host}"])) for host in ("leader-0", "leader-1", "worker-0")] == [True, False, True]


async def test_a_scaled_gang_waits_for_its_own_leader_and_for_nobody_outside() -> None:
    router = clique("router", annotations=NEVER)
    ordered = podcliqueset(
        "llm", router, clique("l"), clique("w", 2), groups=(group("g", "l", "w", replicas=2),), cliqueStartupType=IN_ORDER
    )
    async with stage() as cluster:
        await cluster.apply(ordered)

        report = await cluster.sync(patience=60)

        pods = await by_host(cluster)
        assert {host for host, pod in pods.items() if ready_at(pod)} == {"llm-0-g-1-l-0", "llm-0-g-1-w-0", "llm-0-g-1-w-1"}
        assert started_at(pods["llm-0-g-1-w-0"]) >= ready_at(pods["llm-0-g-1-l-0"])
        assert {held.id.name for held in report.pending} == {"llm-0-router", "llm-0-g-0-l", "llm-0-g-0-w"}


async def test_a_token_that_is_not_there_yet_holds_the_pods_that_need_it_and_says_so() -> None:
    async with stage(without=["token"]) as cluster:
        await cluster.apply(podcliqueset("web", clique("leader"), clique("worker", 2), cliqueStartupType=IN_ORDER))

        report = await cluster.sync(patience=30)

        (plan,) = report.plans
        assert (report.ending, report.timed_out) == (Ending.TIMED_OUT, True)
        assert {held.why for held in plan.deferred} == {
            "web-0-worker starts after web-0-leader; Secret web-ic-sat does not contain the token to watch them yet"
        }
        assert {held.id.kind for held in plan.deferred} == {"Pod"} and len(plan.deferred) == 2
        # The leader is made, but its gang is not whole: whoever places gangs waits for the workers, and so does it.
        assert set(await by_host(cluster)) == {"web-0-leader-0"}
        assert {held.id.name for held in report.pending} == {"web-0-leader", "web-0-worker"}

        await cluster.kubectl.patch(kinds.SECRET, "default", "web-ic-sat", {"data": {"token": "dG9rZW4="}})

        assert (await cluster.sync()).ending is Ending.DONE
        assert len(await by_host(cluster)) == 3


async def test_an_update_takes_nobody_who_could_not_come_again_for_want_of_a_token() -> None:
    def ordered(version: int) -> dict[str, Any]:
        same: dict[str, Any] = {"pod_spec": running(version)}
        cliques = (clique("leader", **same), clique("worker", 2, **same), clique("helper", **same))
        return podcliqueset("web", *cliques, groups=(group("pool", "helper"),), cliqueStartupType=IN_ORDER)

    async with stage(without={"token"}) as cluster, cluster.running():
        async with cluster.playing("token"):
            await cluster.apply(ordered(1))
            await cluster.settle()
        before = set(cluster.there(kinds.POD))
        await cluster.delete(kinds.SECRET, "web-ic-sat")
        await cluster.apply(ordered(2))
        await cluster.clock.advance(120)

        taken = before - {name for name, pod in cluster.there(kinds.POD).items() if images([pod]) == {"example/worker:1"}}
        assert [name.rpartition("-")[0] for name in taken] == ["web-0-leader"]
        assert any("without their token" in held.why for plan in (await cluster.look()).planned.plans for held in plan.pending)

        async with cluster.playing("token"):
            await cluster.settle()

        assert images(cluster.there(kinds.POD).values()) == {"example/worker:2"}


async def test_sets_without_an_order_wait_for_no_token() -> None:
    async with stage(without=["token"]) as cluster:
        await cluster.apply(podcliqueset("web", clique("leader"), clique("worker", 2)))

        assert (await cluster.sync()).ending is Ending.DONE


async def test_a_worker_that_is_replaced_waits_for_a_leader_that_is_there() -> None:
    async with stage() as cluster:
        await cluster.apply(podcliqueset("web", clique("leader"), clique("worker"), cliqueStartupType=IN_ORDER))
        await cluster.sync()
        before = await by_host(cluster)
        leader, worker = before["web-0-leader-0"]["metadata"], before["web-0-worker-0"]["metadata"]
        await cluster.kubectl.patch(kinds.POD, "default", leader["name"], {"metadata": {"annotations": NEVER}})
        await cluster.delete(kinds.POD, worker["name"])

        await cluster.sync(patience=60)

        after = await by_host(cluster)
        assert after["web-0-leader-0"]["metadata"]["uid"] == leader["uid"]
        assert after["web-0-worker-0"]["metadata"]["uid"] != worker["uid"]
        assert not ready_at(after["web-0-worker-0"])

        await cluster.kubectl.patch(kinds.POD, "default", leader["name"], {"metadata": {"annotations": {"sandbox.grove.io/fail": None}}})

        assert (await cluster.sync()).ending is Ending.DONE


def not_to_be(what: object) -> None:
    """Fail: there is nothing to wait for, and nothing to tell."""
    raise AssertionError(what)


@pytest.mark.e2e
async def test_a_real_server_takes_what_waits_and_lets_it_see_its_own_gang(control_plane: ControlPlane, tmp_path: Path) -> None:
    namespace = "ordered"
    cliques = (clique("leader"), clique("worker", 2))
    manifest = podcliqueset("web", *cliques, cliqueStartupType=IN_ORDER, namespace=namespace)
    async with connection(control_plane, "admin") as admin:
        await define(admin, namespace)
        await admin.create(kinds.PODCLIQUESET, namespace, manifest)

        report = await synced(control_plane, namespace)

        assert (report.ending, report.failures) == (Ending.DONE, ())
        pods = {pod["spec"]["hostname"]: pod["spec"] for pod in (await admin.list(kinds.POD, namespace)).items}
        waiters = {host: [one["args"] for one in spec.get("initContainers", ())] for host, spec in pods.items()}
        order = ["--podcliques=web-0-leader:1"]
        assert waiters == {"web-0-leader-0": [], "web-0-worker-0": [order], "web-0-worker-1": [order]}

        # What no node here runs is run here: the waiter itself, with the token that the set's own account was given.
        secret = await admin.get(kinds.SECRET, namespace, "web-ic-sat")
        for name in ("token", "ca.crt"):
            (tmp_path / name).write_bytes(base64.b64decode(secret["data"][name]))
        server = urlsplit(control_plane.url)
        environment = Environment(str(server.hostname), server.port or 443, namespace, "web-0", tmp_path)
        await anyio.to_thread.run_sync(wait, environment, {"web-0-leader": 1, "web-0-worker": 2}, not_to_be, not_to_be)

        await admin.delete(kinds.PODCLIQUESET, namespace, "web", propagation="Background")
        assert (await synced(control_plane, namespace)).ending is Ending.DONE


@pytest.mark.e2e
async def test_pods_that_wait_are_created_where_pod_security_enforces_restricted(control_plane: ControlPlane) -> None:
    namespace = "restricted"
    pod_spec = {
        "securityContext": {"runAsNonRoot": True, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [
            {
                "name": "main",
                "image": "example/worker:1",
                "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
            }
        ],
    }
    cliques = (clique("leader", pod_spec=pod_spec), clique("worker", 2, pod_spec=pod_spec))
    async with connection(control_plane, "admin") as admin:
        await define(admin, namespace)
        await require_restricted_pods(admin, namespace)
        await admin.create(kinds.PODCLIQUESET, namespace, podcliqueset("web", *cliques, cliqueStartupType=IN_ORDER, namespace=namespace))

        report = await synced(control_plane, namespace)

        assert (report.ending, report.failures) == (Ending.DONE, ())
        specs = [pod["spec"] for pod in (await admin.list(kinds.POD, namespace)).items]
        assert sorted(len(spec.get("initContainers", ())) for spec in specs) == [0, 1, 1]
        assert all(spec["securityContext"] == pod_spec["securityContext"] for spec in specs)
