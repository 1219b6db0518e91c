"""Scheduler: Volcano's PodGroups are placed as a whole or not at all."""

from typing import Any

import pytest

from engine import conditions
from resources.base.kinds import PODGANG, VOLCANO_POD_GROUP, VOLCANO_QUEUE
from sandbox.tests.actors.manifests import node
from sandbox.tests.actors.scheduler_objects import volcano_group, volcano_pod, volcano_queue
from sandbox.tests.actors.stage import Stage, on, running
from sandbox.tests.actors.test_scheduler import bound

pytestmark = pytest.mark.anyio


async def status(stage: Stage, name: str) -> dict[str, Any]:
    """The status of a PodGroup."""
    return dict((await stage.client.get(VOLCANO_POD_GROUP, "ml", name)).get("status") or {})


async def test_a_group_that_fits_is_bound_as_a_whole_and_is_running() -> None:
    async with running("scheduler", addons=("volcano",)) as stage:
        await stage.create(node("n0"), node("n1"), volcano_group("g", 3))
        await stage.create(*(volcano_pod(f"p-{k}", "g") for k in range(3)))
        await stage.turn(0)

        assert await bound(stage) == {"p-0", "p-1", "p-2"}
        written = await status(stage, "g")
        assert written["phase"] == "Running"
        assert conditions.is_true(written["conditions"], "Scheduled")


async def test_nothing_binds_until_as_many_pods_as_minMember_can_be_placed() -> None:
    async with running("scheduler", addons=("volcano",)) as stage:
        await stage.create(node("n0"), node("n1"), volcano_group("g", 3))
        await stage.create(*(volcano_pod(f"p-{k}", "g", gpus=8) for k in range(3)))
        await stage.turn(1)

        assert await bound(stage) == set()
        written = await status(stage, "g")
        assert written["phase"] == "Inqueue"
        [entry] = written["conditions"]
        assert (entry["type"], entry["status"], entry["reason"]) == ("Unschedulable", "True", "NotEnoughResources")
        assert entry["message"] == (
            "3/3 tasks in gang unschedulable: 0/2 nodes are available: 2 Insufficient nvidia.com/gpu. 2 of 3 pods of gang ml/g would fit."
        )
        assert (await stage.condition("p-0", "PodScheduled"))[1] == "Unschedulable"

        await stage.create(node("n2"))
        await stage.turn(1)
        assert await bound(stage) == {"p-0", "p-1", "p-2"}
        assert (await status(stage, "g"))["phase"] == "Running"


async def test_a_group_with_minResources_waits_in_phase_pending() -> None:
    async with running("scheduler", addons=("volcano",)) as stage:
        await stage.create(volcano_group("g", 1, minResources={"nvidia.com/gpu": "8"}), volcano_pod("p", "g"))
        await stage.turn(1)

        assert (await status(stage, "g"))["phase"] == "Pending"


async def test_a_group_without_all_of_its_pods_waits_and_reports_it() -> None:
    async with running("scheduler", addons=("volcano",)) as stage:
        await stage.create(node("n0"), volcano_group("g", 2), volcano_pod("p-0", "g"))
        await stage.turn(2)

        assert await bound(stage) == set()
        assert (await stage.condition("p-0", "PodScheduled"))[2] == "gang ml/g is incomplete: 1 of 2 pods exist"
        [entry] = (await status(stage, "g"))["conditions"]
        assert entry["reason"] == "NotEnoughTasks"


async def test_pods_of_a_group_that_does_not_exist_wait_and_report_it() -> None:
    async with running("scheduler", addons=("volcano",)) as stage:
        await stage.create(node("n0"), volcano_pod("p", "g"))
        await stage.turn(2)
        assert (await stage.condition("p", "PodScheduled"))[2] == "PodGroup ml/g does not exist"

        await stage.create(volcano_group("g", 1))
        await stage.turn(0)
        assert await bound(stage) == {"p"}


async def test_pods_beyond_minMember_are_bound_as_far_as_they_fit() -> None:
    async with running("scheduler", addons=("volcano",)) as stage:
        await stage.create(node("n0"), volcano_group("g", 1), *(volcano_pod(f"p-{k}", "g") for k in range(3)))
        await stage.turn(0)

        assert len(await bound(stage)) == 2


async def test_a_queue_admits_no_more_gpus_than_its_capability() -> None:
    async with running("scheduler", addons=("volcano",)) as stage:
        await stage.create(node("n0"), node("n1"), volcano_queue("small", 8), volcano_group("g", 2, queue="small"))
        await stage.create(*(volcano_pod(f"p-{k}", "g", gpus=8) for k in range(2)))
        await stage.turn(1)
        assert await bound(stage) == set()
        [entry] = (await status(stage, "g"))["conditions"]
        assert "small quota has reached the allowable limit of GPUs. Limit is 8 GPUs" in entry["message"]

        await stage.client.patch(VOLCANO_QUEUE, "", "small", {"spec": {"capability": {"nvidia.com/gpu": "16"}}})
        await stage.turn(1)
        assert await bound(stage) == {"p-0", "p-1"}


async def test_a_group_whose_queue_does_not_exist_waits_for_it() -> None:
    async with running("scheduler", addons=("volcano",)) as stage:
        await stage.create(node("n0"), volcano_group("g", 1, queue="team"), volcano_pod("p", "g"))
        await stage.turn(1)
        assert (await stage.condition("p", "PodScheduled"))[2] == "queue team does not exist"

        await stage.create(volcano_queue("team", 8))
        await stage.turn(1)
        assert await bound(stage) == {"p"}


async def test_the_phase_of_a_group_follows_its_pods() -> None:
    async with running("scheduler", "kubelet", addons=("volcano",)) as stage:
        await stage.create(node("n0", labels={"sandbox.grove.io/simulated": "true"}), volcano_group("g", 1))
        assert (await status(stage, "g")) == {}
        await stage.turn(0)
        assert (await status(stage, "g"))["phase"] == "Inqueue"

        await stage.create(volcano_pod("p", "g", restartPolicy="Never"))
        await stage.turn(2)
        written = await status(stage, "g")
        assert (written["phase"], written["running"]) == ("Running", 1)


async def test_an_annotation_does_not_matter_to_another_scheduler() -> None:
    async with running("scheduler", addons=("volcano",)) as stage:
        pod = volcano_pod("p", "g")
        await stage.create(node("n0"), {**pod, "spec": {**pod["spec"], "schedulerName": "default-scheduler"}})
        await stage.turn(0)

        assert await bound(stage) == {"p"}


async def test_a_restarted_scheduler_counts_what_the_queue_has_in_use() -> None:
    async with running(addons=("volcano",)) as stage:
        await stage.create(node("n0"), node("n1"), volcano_queue("small", 8))
        await stage.create(volcano_group("old", 1, queue="small"), volcano_pod("old", "old", gpus=8, node="n0"))
        await stage.create(volcano_group("new", 1, queue="small"), volcano_pod("new", "new", gpus=8))
        async with on(stage, "scheduler"):
            await stage.turn(1)

        assert await bound(stage) == {"old"}


async def test_a_group_is_placed_where_grove_is_not_served() -> None:
    async with running("scheduler", addons=("volcano",), grove=False) as stage:
        assert PODGANG not in {kind for kind in await stage.client.kinds()}
        await stage.create(node("n0"), volcano_group("g", 1), volcano_pod("p", "g"))
        await stage.turn(0)

        assert await bound(stage) == {"p"}


async def test_a_group_without_a_minimum_is_a_group_of_at_least_one_pod() -> None:
    async with running("scheduler", addons=("volcano",)) as stage:
        await stage.create(node("n0"), {**volcano_group("g", 1), "spec": {}}, volcano_pod("p", "g"))
        await stage.create({**volcano_group("h", 1), "spec": None}, volcano_pod("q", "h"))
        await stage.turn(1)

        assert await bound(stage) == {"p", "q"}


async def test_the_status_of_a_settled_group_is_not_written_again() -> None:
    async with running("scheduler", addons=("volcano",)) as stage:
        await stage.create(node("n0"), volcano_group("g", 3), *(volcano_pod(f"p-{k}", "g") for k in range(3)))
        await stage.turn(2)
        before = await stage.client.get(VOLCANO_POD_GROUP, "ml", "g")
        await stage.turn(60)

        assert before["status"]["phase"] == "Inqueue"
        assert await stage.client.get(VOLCANO_POD_GROUP, "ml", "g") == before
