"""Scheduler: gangs are placed as a whole or not at all."""

from typing import Any

import pytest

from grove_sandbox.actors.options import ActorOptions
from resources.base.added_to_pods import REQUIRED
from resources.base.kinds import NODE, POD, PODGANG
from sandbox.tests.actors.manifests import gang, node, pod
from sandbox.tests.actors.stage import Stage, on, running

pytestmark = pytest.mark.anyio


async def bound(stage: Stage) -> set[str]:
    """The names of all pods that have a node."""
    return {body["metadata"]["name"] for body in (await stage.client.list(POD, "ml")).items if body["spec"].get("nodeName")}


async def test_a_gang_that_fits_is_bound_as_a_whole() -> None:
    async with running("scheduler") as stage:
        await stage.create(node("n0"), node("n1"), gang("g", {"a": (1, ["a-0"]), "b": (2, ["b-0", "b-1"])}))
        await stage.create(*(pod(name, gpus=4, gang="g", clique=name[0]) for name in ("a-0", "b-0", "b-1")))
        await stage.turn(0)

        assert await bound(stage) == {"a-0", "b-0", "b-1"}
        assert (await stage.condition("a-0", "PodScheduled"))[0] == "True"


async def test_of_a_gang_that_does_not_fit_no_pod_is_bound_and_each_reports_the_shortage() -> None:
    async with running("scheduler") as stage:
        await stage.create(node("n0"), gang("g", {"a": (3, ["a-0", "a-1", "a-2"])}))
        await stage.create(*(pod(f"a-{k}", gpus=4, gang="g", clique="a") for k in range(3)))
        await stage.turn(0)

        assert await bound(stage) == set()
        assert await stage.condition("a-2", "PodScheduled") == (
            "False",
            "Unschedulable",
            "0/1 nodes are available: 1 Insufficient nvidia.com/gpu. 2 of 3 pods of gang ml/g would fit.",
        )


async def test_an_incomplete_gang_waits_for_its_last_pod_and_reports_it_after_a_while() -> None:
    async with running("scheduler") as stage:
        await stage.create(node("n0"), gang("g", {"a": (2, ["a-0", "a-1"])}), pod("a-0", gang="g", clique="a"))
        await stage.turn(0.5)
        assert await stage.condition("a-0", "PodScheduled") == ("", "", "")

        await stage.turn(1)
        assert (await stage.condition("a-0", "PodScheduled"))[2] == "gang ml/g is incomplete: podgroup a has 1 of 2 pods"

        await stage.create(pod("a-1", gang="g", clique="a"))
        await stage.turn(0)
        assert await bound(stage) == {"a-0", "a-1"}


async def test_pods_beyond_the_minimum_are_bound_as_far_as_they_fit() -> None:
    async with running("scheduler") as stage:
        await stage.create(node("n0"), gang("g", {"a": (1, ["a-0", "a-1", "a-2"])}))
        await stage.create(*(pod(f"a-{k}", gpus=4, gang="g", clique="a") for k in range(3)))
        await stage.turn(0)

        assert len(await bound(stage)) == 2


async def test_a_replaced_member_is_placed_while_the_others_stay_bound() -> None:
    async with running("scheduler", "kubelet") as stage:
        await stage.create(node("n0", labels={"sandbox.grove.io/simulated": "true"}))
        await stage.create(gang("g", {"a": (2, ["a-0", "a-1"])}), *(pod(f"a-{k}", gpus=4, gang="g", clique="a") for k in range(2)))
        await stage.turn(0)
        await stage.client.delete(POD, "ml", "a-1", grace=0)
        await stage.create(pod("a-2", gpus=4, gang="g", clique="a"))
        await stage.client.patch(PODGANG, "ml", "g", {"spec": gang("g", {"a": (2, ["a-0", "a-2"])})["spec"]})
        await stage.turn(1)

        assert await bound(stage) == {"a-0", "a-2"}


async def test_a_gated_pod_is_not_bound_until_its_gates_are_removed() -> None:
    async with running("scheduler") as stage:
        await stage.create(node("n0"), pod("p", schedulingGates=[{"name": "example.com/wait"}]))
        await stage.turn(2)
        assert await bound(stage) == set()

        await stage.client.patch(POD, "ml", "p", {"spec": {"schedulingGates": None}})
        await stage.turn(0)
        assert await bound(stage) == {"p"}


async def test_unschedulable_pods_are_placed_when_a_node_is_added_or_a_pod_deleted() -> None:
    async with running("scheduler") as stage:
        await stage.create(node("n0"), pod("first", gpus=8), pod("second", gpus=8), pod("third", gpus=8))
        await stage.turn(1)
        assert await bound(stage) == {"first"}

        await stage.create(node("n1"))
        await stage.turn(1)
        assert await bound(stage) == {"first", "second"}

        await stage.client.delete(POD, "ml", "first", grace=0)
        await stage.turn(1)
        assert await stage.node_of("third") == "n0"


async def test_a_pod_that_must_be_beside_others_is_placed_once_one_is_on_a_node_or_is_labelled() -> None:
    def beside(app: str) -> dict[str, Any]:
        term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": "kubernetes.io/hostname"}
        return pod(f"beside-{app}", affinity={"podAffinity": {REQUIRED: [term]}})

    async with running("scheduler") as stage:
        await stage.create(node("n0", labels={"kubernetes.io/hostname": "n0"}), beside("cache"), beside("later"), pod("cache"))
        await stage.turn(1)
        assert await bound(stage) == {"cache"}

        for app in ("cache", "later"):
            await stage.client.patch(POD, "ml", "cache", {"metadata": {"labels": {"app": app}}})
            await stage.turn(1)
            assert f"beside-{app}" in await bound(stage)

        third = beside("third")
        await stage.create({**third, "metadata": {**third["metadata"], "name": "waiting"}})
        await stage.turn(1)
        other = pod("other")
        await stage.create({**other, "metadata": {**other["metadata"], "labels": {"app": "third"}}})
        await stage.turn(1)
        assert "waiting" in await bound(stage)


async def test_pods_of_higher_priority_are_placed_first() -> None:
    async with running("scheduler") as stage:
        await stage.create(pod("meek", gpus=8), pod("mighty", gpus=8, priority=1000))
        await stage.turn(1)
        await stage.create(node("n0"))
        await stage.turn(1)

        assert await bound(stage) == {"mighty"}


async def test_only_pods_of_the_named_schedulers_are_bound() -> None:
    async with running("scheduler", options=ActorOptions(schedulers=frozenset({"kai-scheduler"}))) as stage:
        await stage.create(node("n0"), pod("ours", schedulerName="kai-scheduler"), pod("theirs", schedulerName="volcano"))
        await stage.turn(1)

        assert await bound(stage) == {"ours"}


async def test_a_pod_whose_gang_is_missing_waits_and_reports_it() -> None:
    async with running("scheduler") as stage:
        await stage.create(node("n0"), pod("a-0", gang="g", clique="a"))
        await stage.turn(2)

        assert (await stage.condition("a-0", "PodScheduled"))[2] == "PodGang ml/g does not exist"


async def test_a_cordoned_node_gets_no_pods_until_it_is_uncordoned() -> None:
    async with running("scheduler") as stage:
        await stage.create({**node("n0"), "spec": {"unschedulable": True}}, pod("p"))
        await stage.turn(1)
        assert await bound(stage) == set()

        await stage.client.patch(NODE, "", "n0", {"spec": {"unschedulable": None}})
        await stage.turn(1)
        assert await bound(stage) == {"p"}


async def test_a_restarted_scheduler_counts_the_pods_that_are_bound() -> None:
    async with running() as stage:
        await stage.create(node("n0"), pod("old", gpus=8, node="n0"), pod("new", gpus=8))
        async with on(stage, "scheduler"):
            await stage.turn(1)

        assert await bound(stage) == {"old"}
