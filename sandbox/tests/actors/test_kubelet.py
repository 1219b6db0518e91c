"""Kubelet: pods start, fail as annotations say, and end when they are deleted."""

import anyio
import pytest

from engine.errors import NotFound
from grove_sandbox.actors.options import ActorOptions
from resources.base.kinds import NODE, POD
from sandbox.tests.actors.manifests import node, pod
from sandbox.tests.actors.stage import Stage, on, running
from tests.waiting import PATIENCE

pytestmark = pytest.mark.anyio

ONE_NODE = ActorOptions(nodes=1)
FAIL = "sandbox.grove.io/fail"


async def phase(stage: Stage, name: str) -> str:
    return str((await stage.pod(name))["status"]["phase"])


async def test_the_configured_nodes_are_registered_and_ready() -> None:
    options = ActorOptions(nodes=3, capacity={"cpu": "4", "pods": "10"}, nodes_per_rack=2)
    async with running("kubelet", options=options) as stage:
        nodes = {body["metadata"]["name"]: body for body in (await stage.client.list(NODE)).items}

        assert sorted(nodes) == ["node-0000", "node-0001", "node-0002"]
        assert nodes["node-0000"]["status"]["allocatable"] == {"cpu": "4", "pods": "10"}
        assert [body["status"]["conditions"][0]["status"] for body in nodes.values()] == ["True"] * 3
        assert nodes["node-0002"]["metadata"]["labels"]["topology.kubernetes.io/rack"] == "rack-1"


async def test_a_node_that_becomes_unready_is_made_ready_again() -> None:
    async with running("kubelet", options=ONE_NODE) as stage:
        sick = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}
        await stage.client.patch(NODE, "", "node-0000", {"status": {"conditions": [sick]}}, how="strategic", subresource="status")
        await stage.turn(0)

        live = await stage.client.get(NODE, "", "node-0000")
        assert [one["status"] for one in live["status"]["conditions"] if one["type"] == "Ready"] == ["True"]


async def test_a_bound_pod_becomes_ready_and_has_an_address_of_its_own() -> None:
    async with running("kubelet", options=ONE_NODE) as stage:
        await stage.create(pod("a", node="node-0000"), pod("b", node="node-0000"))
        await stage.turn(0)

        assert await stage.is_ready("a") and await stage.is_ready("b")
        assert (await stage.pod("a"))["status"]["podIP"] != (await stage.pod("b"))["status"]["podIP"]


async def test_unbound_pods_and_pods_on_real_nodes_are_not_touched() -> None:
    async with running("kubelet", options=ONE_NODE) as stage:
        await stage.create(node("real"), pod("unbound"), pod("elsewhere", node="real"))
        await stage.turn(5)

        assert "podIP" not in (await stage.pod("unbound"))["status"]
        assert "podIP" not in (await stage.pod("elsewhere"))["status"]


async def test_readiness_is_delayed_by_annotation() -> None:
    async with running("kubelet", options=ONE_NODE) as stage:
        await stage.create(pod("p", node="node-0000", annotations={"sandbox.grove.io/ready-after": "5s"}))
        await stage.turn(4)
        assert (await phase(stage, "p"), await stage.is_ready("p")) == ("Running", False)

        await stage.turn(1)
        assert await stage.is_ready("p")


async def test_followers_start_when_enough_of_their_leaders_are_ready_and_not_before() -> None:
    async with running("kubelet", options=ONE_NODE) as stage:
        late = {"sandbox.grove.io/ready-after": "5s"}
        follower = pod("follower", gang="g", clique="f", node="node-0000", after=["--podcliques=l:2"])
        await stage.create(follower, pod("l-0", gang="g", clique="l", node="node-0000"))
        await stage.create(pod("other", gang="h", clique="l", node="node-0000"), pod("l2-0", gang="g", clique="l2", node="node-0000"))
        await stage.create(pod("l-1", gang="g", clique="l", node="node-0000", annotations=late))
        await stage.turn(4)
        assert await phase(stage, "follower") == "Pending"

        await stage.turn(1)
        assert await stage.is_ready("follower")


async def test_a_failure_can_be_added_to_a_running_pod_and_removed_again() -> None:
    async with running("kubelet", options=ONE_NODE) as stage:
        await stage.create(pod("p", node="node-0000"))
        await stage.turn(10)
        await stage.annotate(POD, "p", FAIL, "unready")
        await stage.turn(0)
        assert not await stage.is_ready("p")

        await stage.annotate(POD, "p", FAIL, None)
        await stage.turn(0)
        assert await stage.is_ready("p")


async def test_a_crashing_pod_crashes_again_after_each_restart() -> None:
    async with running("kubelet", options=ONE_NODE) as stage:
        await stage.create(pod("p", node="node-0000", annotations={FAIL: "exit:137@5s"}))
        await stage.turn(100)

        container = (await stage.pod("p"))["status"]["containerStatuses"][0]
        assert container["restartCount"] == 4
        assert container["lastState"]["terminated"]["exitCode"] == 137


async def test_a_restarted_kubelet_continues_from_the_statuses() -> None:
    async with running() as stage:
        async with on(stage, "kubelet", options=ONE_NODE):
            await stage.create(pod("p", node="node-0000", annotations={"sandbox.grove.io/ready-after": "10s"}))
            await stage.turn(4)
        await stage.turn(3)
        async with on(stage, "kubelet", options=ONE_NODE):
            await stage.turn(2)
            assert not await stage.is_ready("p")
            await stage.turn(1)
            assert await stage.is_ready("p")


async def test_a_deleted_pod_is_removed_after_its_containers_have_ended() -> None:
    async with running("kubelet", options=ActorOptions(nodes=1, termination=3)) as stage:
        await stage.create(pod("p", node="node-0000", terminationGracePeriodSeconds=30))
        await stage.turn(0)
        await stage.client.delete(POD, "ml", "p")
        await stage.turn(2)
        assert "deletionTimestamp" in (await stage.pod("p"))["metadata"]

        await stage.turn(1)
        with pytest.raises(NotFound):
            await stage.pod("p")


async def test_a_pod_that_does_not_end_is_removed_after_its_grace_period() -> None:
    async with running("kubelet", options=ONE_NODE) as stage:
        stubborn = {"sandbox.grove.io/terminate-after": "10m"}
        await stage.create(pod("p", node="node-0000", terminationGracePeriodSeconds=20, annotations=stubborn))
        await stage.turn(0)
        await stage.client.delete(POD, "ml", "p")
        await stage.turn(19)
        assert await stage.names(POD) == {"p"}

        await stage.turn(1)
        assert await stage.names(POD) == set()


async def test_a_stopped_pod_with_a_finalizer_is_deleted_once_only() -> None:
    async with running("kubelet", options=ONE_NODE) as stage:
        body = pod("p", node="node-0000")
        body["metadata"]["finalizers"] = ["example.com/keep"]
        await stage.create(body)
        await stage.turn(0)
        await stage.client.delete(POD, "ml", "p")
        await stage.turn(60)
        kept = await stage.pod("p")
        assert kept["status"]["phase"] == "Succeeded"

        await stage.turn(60)
        assert (await stage.pod("p"))["metadata"]["resourceVersion"] == kept["metadata"]["resourceVersion"]


async def test_a_thousand_pods_come_up_without_a_second_passing() -> None:
    async with running("kubelet", "scheduler", options=ActorOptions(nodes=20)) as stage:
        await stage.create(*(pod(f"p-{number}") for number in range(1000)))
        with anyio.fail_after(PATIENCE):
            while [await phase(stage, name) for name in ("p-0", "p-999")] != ["Running", "Running"]:
                await stage.turn(0)

        phases = [body["status"]["phase"] for body in (await stage.client.list(POD, "ml")).items]
        assert (phases.count("Running"), stage.clock.monotonic()) == (1000, 0)
