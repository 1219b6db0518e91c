"""Scheduler: KAI's PodGroups are placed as a whole, as their queues and topologies allow, or not at all."""

from typing import Any

import pytest

from resources.base.kinds import KAI_POD_GROUP, KAI_QUEUE, NODE, POD
from sandbox.tests.actors.manifests import node
from sandbox.tests.actors.scheduler_objects import kai_group, kai_pod, kai_queue, topology
from sandbox.tests.actors.stage import Stage, running
from sandbox.tests.actors.test_scheduler import bound

pytestmark = pytest.mark.anyio

RACK, ZONE = "example.com/rack", "example.com/zone"
IN_ONE_RACK = {"topology": "racks", "requiredTopologyLevel": RACK}


async def reason(stage: Stage, name: str) -> str:
    """The message of the condition in the status of a PodGroup; empty: there is none."""
    status: dict[str, Any] = (await stage.client.get(KAI_POD_GROUP, "ml", name)).get("status") or {}
    entries = status.get("schedulingConditions") or [{"message": ""}]
    return str(entries[0]["message"])


async def add_racks(stage: Stage, **racks: int) -> None:
    """Nodes of 8 GPUs in racks of these sizes, and the Topology of racks in zones; each rack is a zone of its own."""
    await stage.create(topology("racks", [ZONE, RACK]), kai_queue("team"))
    for rack, size in racks.items():
        for number in range(size):
            await stage.create(node(f"{rack}-{number}", labels={RACK: rack, ZONE: f"zone-{rack}"}))


async def racks_of(stage: Stage) -> set[str]:
    """The racks of all pods that have a node."""
    return {(await stage.node_of(name)).partition("-")[0] for name in await bound(stage)}


async def test_a_group_that_fits_is_bound_as_a_whole() -> None:
    async with running("scheduler", addons=("kai",)) as stage:
        await stage.create(node("n0"), kai_queue("team"), kai_group("g", minMember=2))
        await stage.create(*(kai_pod(f"p-{k}", "g") for k in range(2)))
        await stage.turn(0)

        assert await bound(stage) == {"p-0", "p-1"}
        assert await reason(stage, "g") == ""


async def test_nothing_binds_until_as_many_pods_as_minMember_can_be_placed() -> None:
    async with running("scheduler", addons=("kai",)) as stage:
        await stage.create(node("n0"), node("n1"), kai_queue("team"), kai_group("g", minMember=3))
        await stage.create(*(kai_pod(f"p-{k}", "g", gpus=8) for k in range(3)))
        await stage.turn(1)
        assert await bound(stage) == set()
        assert await reason(stage, "g") == "0/2 nodes are available: 2 Insufficient nvidia.com/gpu. 2 of 3 pods of gang ml/g would fit."

        await stage.create(node("n2"))
        await stage.turn(1)
        assert await bound(stage) == {"p-0", "p-1", "p-2"}


async def test_each_sub_group_has_a_minimum_of_its_own() -> None:
    async with running("scheduler", addons=("kai",)) as stage:
        subgroups = [{"name": "a", "minMember": 1}, {"name": "b", "minMember": 2}]
        await stage.create(node("n0"), kai_queue("team"), kai_group("g", minMember=3, subGroups=subgroups))
        await stage.create(*(kai_pod(f"a-{k}", "g", subgroup="a", gpus=2) for k in range(3)), kai_pod("b-0", "g", subgroup="b", gpus=2))
        await stage.turn(2)
        assert await bound(stage) == set()
        assert (await stage.condition("a-0", "PodScheduled"))[2] == "gang ml/g is incomplete: sub-group b has 1 of 2 pods"

        await stage.create(kai_pod("b-1", "g", subgroup="b", gpus=2))
        await stage.turn(0)
        assert {"a-0", "b-0", "b-1"} < await bound(stage)
        assert len(await bound(stage)) == 4


async def test_a_group_whose_queue_does_not_exist_waits_for_it() -> None:
    async with running("scheduler", addons=("kai",)) as stage:
        await stage.create(node("n0"), kai_group("g", minMember=1), kai_pod("p", "g"))
        await stage.turn(1)
        assert await bound(stage) == set()
        assert await reason(stage, "g") == "queue team does not exist"

        await stage.create(kai_queue("team"))
        await stage.turn(1)
        assert await bound(stage) == {"p"}


async def test_a_group_without_a_queue_is_not_placed() -> None:
    async with running("scheduler", addons=("kai",)) as stage:
        await stage.create(node("n0"), kai_group("g", queue="", minMember=1), kai_pod("p", "g"))
        await stage.turn(1)

        assert await reason(stage, "g") == "the PodGroup names no queue"


async def test_a_queue_admits_no_more_gpus_than_its_limit() -> None:
    async with running("scheduler", addons=("kai",)) as stage:
        await stage.create(*(node(f"n{k}") for k in range(4)), kai_queue("team", limit=16), kai_group("g", minMember=3))
        await stage.create(*(kai_pod(f"p-{k}", "g", gpus=8) for k in range(3)))
        await stage.turn(1)
        assert await bound(stage) == set()
        assert await reason(stage, "g") == (
            "team quota has reached the allowable limit of GPUs. "
            "Limit is 16 GPUs, currently 0 GPUs allocated and workload requested 24 GPUs"
        )

        await stage.client.patch(KAI_QUEUE, "", "team", {"spec": {"resources": {"gpu": {"limit": 24}}}})
        await stage.turn(1)
        assert len(await bound(stage)) == 3


async def test_the_limit_of_a_queue_holds_for_all_queues_below_it() -> None:
    async with running("scheduler", addons=("kai",)) as stage:
        await stage.create(node("n0"), node("n1"), kai_queue("all", limit=8))
        for team in ("red", "blue"):
            await stage.create(kai_queue(team, parent="all"), kai_group(team, team, minMember=1), kai_pod(team, team, gpus=8))
            await stage.turn(0)
        assert await bound(stage) == {"red"}

        await stage.client.delete(POD, "ml", "red", grace=0)
        await stage.turn(1)
        assert await bound(stage) == {"blue"}


async def test_pods_beyond_the_minimum_keep_to_the_limit() -> None:
    async with running("scheduler", addons=("kai",)) as stage:
        await stage.create(node("n0"), node("n1"), kai_queue("team", limit=8), kai_group("g", minMember=1))
        await stage.create(*(kai_pod(f"p-{k}", "g") for k in range(3)))
        await stage.turn(1)

        assert len(await bound(stage)) == 2


async def test_queues_above_one_another_in_a_circle_are_no_obstacle() -> None:
    async with running("scheduler", addons=("kai",)) as stage:
        await stage.create(node("n0"), kai_queue("team", parent="other"), kai_queue("other", parent="team"))
        await stage.create(kai_group("g", minMember=1), kai_pod("p", "g"))
        await stage.turn(0)

        assert await bound(stage) == {"p"}


async def test_a_required_level_keeps_a_group_in_one_domain() -> None:
    async with running("scheduler", addons=("kai",)) as stage:
        await add_racks(stage, a=1, b=3)
        await stage.create(kai_group("g", minMember=3, topologyConstraint=IN_ONE_RACK))
        await stage.create(*(kai_pod(f"p-{k}", "g", gpus=8) for k in range(3)))
        await stage.turn(0)

        assert len(await bound(stage)) == 3
        assert await racks_of(stage) == {"b"}


async def test_a_group_for_which_no_domain_has_room_is_not_placed() -> None:
    async with running("scheduler", addons=("kai",)) as stage:
        await add_racks(stage, a=2, b=2)
        await stage.create(kai_group("g", minMember=3, topologyConstraint=IN_ONE_RACK))
        await stage.create(*(kai_pod(f"p-{k}", "g", gpus=8) for k in range(3)))
        await stage.turn(1)
        assert await bound(stage) == set()
        assert (await reason(stage, "g")).endswith("2 of 3 pods of gang ml/g would fit.")

        await stage.create(node("b-2", labels={RACK: "b"}))
        await stage.turn(1)
        assert await racks_of(stage) == {"b"}


async def test_a_pod_that_comes_later_goes_to_the_domain_of_the_others() -> None:
    async with running("scheduler", addons=("kai",)) as stage:
        await add_racks(stage, a=1, b=2)
        await stage.create(kai_group("g", minMember=2, topologyConstraint=IN_ONE_RACK))
        await stage.create(*(kai_pod(f"p-{k}", "g", gpus=6) for k in range(2)))
        await stage.turn(0)
        await stage.create(kai_pod("p-2", "g", gpus=6))
        await stage.turn(1)
        assert await bound(stage) == {"p-0", "p-1"}

        await stage.create(node("b-2", labels={RACK: "b"}))
        await stage.turn(1)
        assert await stage.node_of("p-2") == "b-2"


async def test_a_replaced_pod_goes_to_the_domain_of_the_others() -> None:
    async with running("scheduler", addons=("kai",)) as stage:
        await add_racks(stage, b=2)
        await stage.create(kai_group("g", minMember=2, topologyConstraint=IN_ONE_RACK))
        await stage.create(*(kai_pod(f"p-{k}", "g", gpus=8) for k in range(2)))
        await stage.turn(0)
        await stage.create(node("a-0", labels={RACK: "a"}))
        freed = await stage.node_of("p-1")
        await stage.client.patch(NODE, "", freed, {"spec": {"unschedulable": True}})
        await stage.client.delete(POD, "ml", "p-1", grace=0)
        await stage.create(kai_pod("p-1", "g", gpus=8))
        await stage.turn(1)

        assert await bound(stage) == {"p-0"}


async def test_a_sub_group_may_have_a_domain_of_its_own() -> None:
    async with running("scheduler", addons=("kai",)) as stage:
        await add_racks(stage, a=2, b=2)
        subgroups = [{"name": name, "minMember": 2, "topologyConstraint": IN_ONE_RACK} for name in ("x", "y")]
        await stage.create(kai_group("g", minMember=4, subGroups=subgroups))
        await stage.create(*(kai_pod(f"{name}-{k}", "g", gpus=8, subgroup=name) for k in range(2) for name in ("x", "y")))
        await stage.turn(0)

        racks = {name: {(await stage.node_of(f"{name}-{k}"))[0] for k in range(2)} for name in ("x", "y")}
        assert racks == {"x": {"a"}, "y": {"b"}}


@pytest.mark.parametrize(
    ("subgroups", "message"),
    [
        ([{"name": "x"}, {"name": "x"}], "subgroup <x> already exists"),
        ([{"name": "x", "parent": "y"}], "parent subgroup <y> of <x> not found"),
        ([{"name": "x", "parent": "x"}], "parent subgroup <x> of <x> not found"),
    ],
)
async def test_a_malformed_tree_of_sub_groups_is_reported(subgroups: list[dict[str, str]], message: str) -> None:
    async with running("scheduler", addons=("kai",)) as stage:
        await stage.create(node("n0"), kai_queue("team"), kai_group("g", subGroups=subgroups), kai_pod("p", "g", subgroup="x"))
        await stage.turn(1)

        assert await bound(stage) == set()
        assert await reason(stage, "g") == message


async def test_the_constraint_of_a_parent_holds_for_its_sub_groups() -> None:
    async with running("scheduler", addons=("kai",)) as stage:
        await add_racks(stage, a=1, b=2)
        parent = {"name": "both", "topologyConstraint": IN_ONE_RACK}
        subgroups = [parent, *({"name": name, "minMember": 1, "parent": "both"} for name in ("x", "y"))]
        await stage.create(kai_group("g", subGroups=subgroups))
        await stage.create(*(kai_pod(name, "g", gpus=8, subgroup=name) for name in ("x", "y")))
        await stage.turn(0)

        assert len(await bound(stage)) == 2
        assert await racks_of(stage) == {"b"}


@pytest.mark.parametrize(
    ("constraint", "message"),
    [
        ({"topology": "nowhere", "requiredTopologyLevel": RACK}, "Requested topology nowhere does not exist"),
        ({"topology": "racks", "requiredTopologyLevel": "example.com/row"}, "topology racks has no level example.com/row"),
    ],
)
async def test_a_topology_or_level_that_does_not_exist_is_reported(constraint: dict[str, str], message: str) -> None:
    async with running("scheduler", addons=("kai",)) as stage:
        await add_racks(stage, a=1)
        await stage.create(kai_group("g", minMember=1, topologyConstraint=constraint), kai_pod("p", "g"))
        await stage.turn(1)

        assert await bound(stage) == set()
        assert await reason(stage, "g") == message
