"""A set that Grove v0.1.0-alpha.12 or later manages is left alone until a take-over is allowed (M18, M19)."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from msgspec.structs import replace

from engine.errors import Forbidden
from engine.plan import Plan
from engine.runtime.sync_report import Ending
from resources.base import kinds, labels
from tests.builders import clique, group, podcliqueset
from tests.stories.graphs import graph, service
from tests.stories.process import Process
from tests.stories.stage import Stage, stage
from tests.takeover.epochs import FIRST, MIGRATING, POD_GANG_MAP, EpochGrove, definition, leftover_map, run_by_later_grove
from tests.takeover.worlds import WORLDS, World, grove_in, planned, run_by_grove, uids

pytestmark = pytest.mark.anyio
EVERY_WORLD = pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)
Body = dict[str, Any]
ALLOWED = {"metadata": {"annotations": {labels.TAKE_OVER: "true"}}}


def allowed(cluster: Stage) -> None:
    """Let our processes take over every set, as `sync --take-over` does."""
    cluster.setup = replace(cluster.setup, take_over=True)


async def plan_of(cluster: Stage, kind: str = "PodCliqueSet") -> Plan:
    """What `engine diff` shows for the only root of the kind."""
    (plan,) = (plan for plan in (await cluster.look()).planned.plans if plan.root.kind == kind)
    return plan


async def refusal(cluster: Stage) -> str:
    """Why nothing is done for the set, after `engine sync` has tried: it says so, and has written nothing of the set."""
    before = uids(cluster)
    report = await cluster.sync()
    plan = await plan_of(cluster)
    (objection,) = report.objections
    assert report.ending is Ending.DENIED
    assert (plan.objections, plan.operations, uids(cluster)) == ((objection,), (), before)
    assert objection.rule == "podgang-epochs"
    return objection.message


@EVERY_WORLD
async def test_M18_nothing_is_done_for_a_set_of_the_later_release(world: World) -> None:
    async with run_by_later_grove(world) as (cluster, _):
        message = await refusal(cluster)

        assert f"PodGangMap default/{world.manifest['metadata']['name']}-0 exists" in message
        assert "stop its operator" in message and "sync --take-over" in message and 'engine.grove.io/take-over: "true"' in message


async def only_a_map(cluster: Stage, later: EpochGrove) -> str:
    await later.define()
    await later.plan(0)
    return "PodGangMap default/web-0 exists"


async def only_a_label(cluster: Stage, later: EpochGrove) -> str:
    await cluster.kubectl.patch(kinds.PODGANG, "default", "web-0", {"metadata": {"labels": {"grove.io/epoch": str(FIRST)}}})
    return "PodGang default/web-0 has the label grove.io/epoch"


async def only_a_role(cluster: Stage, later: EpochGrove) -> str:
    await cluster.kubectl.patch(kinds.PODGANG, "default", "web-0", {"metadata": {"labels": {"grove.io/podgang-role": "Anchor"}}})
    return "PodGang default/web-0 has the label grove.io/podgang-role"


async def only_a_clique(cluster: Stage, later: EpochGrove) -> str:
    named = {"metadata": {"labels": {"grove.io/podgang": f"web-0-{FIRST}"}}}
    await cluster.kubectl.patch(kinds.PODCLIQUE, "default", "web-0-worker", named)
    return f"PodClique default/web-0-worker is in the PodGang web-0-{FIRST}"


async def only_a_name(cluster: Stage, later: EpochGrove) -> str:
    await later.rename(0)
    name = f"web-0-{FIRST}"
    none = dict.fromkeys(("grove.io/epoch", "grove.io/podgang-role"))
    await cluster.kubectl.patch(kinds.PODGANG, "default", name, {"metadata": {"labels": none}})
    return f"PodGang default/{name} is named after an epoch"


async def only_the_condition(cluster: Stage, later: EpochGrove) -> str:
    condition = {"status": {"conditions": [MIGRATING]}}
    await cluster.kubectl.patch(kinds.PODCLIQUESET, "default", "web", condition, subresource="status")
    return "(condition PodGangMigrationInProgress)"


@pytest.mark.parametrize("sign", [only_a_map, only_a_label, only_a_role, only_a_clique, only_a_name, only_the_condition])
async def test_M18_any_sign_is_enough(sign: Callable[[Stage, EpochGrove], Awaitable[str]]) -> None:
    async with stage() as cluster:
        grove = grove_in(cluster)
        await grove.deploy(podcliqueset("web"))
        expected = await sign(cluster, EpochGrove(grove))

        assert expected in await refusal(cluster)


async def test_M18_the_definition_alone_and_a_scaling_group_that_is_named_like_an_epoch_are_no_signs() -> None:
    async with stage() as cluster:
        await cluster.kubectl.create(kinds.CRD, "", definition())
        await cluster.apply(podcliqueset("web", clique("a"), groups=(group(f"{FIRST}-x", "a", replicas=3),)))
        await cluster.sync()

        assert f"web-0-{FIRST}-x-0" in cluster.there(kinds.PODGANG)
        assert await planned(cluster) == ()
        assert (await plan_of(cluster)).objections == ()


async def test_M18_other_sets_go_on() -> None:
    async with run_by_later_grove(WORLDS["gang"]) as (cluster, _):
        await cluster.apply(podcliqueset("web"))

        report = await cluster.sync()

        assert report.ending is Ending.DENIED
        assert any(pod.startswith("web-0-") for pod in cluster.there(kinds.POD))


async def test_M18_a_running_process_says_it_once_and_takes_over_once_the_set_is_annotated() -> None:
    async with run_by_later_grove(WORLDS["inference"]) as (cluster, _):
        before = uids(cluster, kinds.POD)
        async with cluster.running() as ours:
            await cluster.clock.advance(120)
            (event,) = [event for event in cluster.there(kinds.EVENT).values() if event["reason"] == "PodGangsOfEpochs"]
            assert (event["involvedObject"]["name"], event.get("count", 1), ours.count) == ("llm", 1, 0)

            await cluster.kubectl.patch(kinds.PODCLIQUESET, "default", "llm", ALLOWED)
            await cluster.settle()

        assert uids(cluster, kinds.POD) == before
        assert (cluster.there(POD_GANG_MAP), await planned(cluster)) == ({}, ())


@pytest.mark.parametrize("how", ["option", "annotation"])
async def test_M19_in_the_middle_of_a_migration_nothing_is_done_whatever_is_allowed(how: str) -> None:
    async with run_by_grove(WORLDS["inference"]) as (cluster, grove):
        later = EpochGrove(grove)
        await later.define()
        await later.begin()
        if how == "option":
            allowed(cluster)
        else:
            await cluster.kubectl.patch(kinds.PODCLIQUESET, "default", "llm", ALLOWED)

        assert "renaming the PodGangs (condition PodGangMigrationInProgress); let it finish" in await refusal(cluster)


async def test_M19_while_a_map_has_entries_of_two_revisions_nothing_is_done_whatever_is_allowed() -> None:
    async with run_by_later_grove(WORLDS["inference"]) as (cluster, later):
        first, *others = later.entries(0)
        spec = {"spec": {"entries": [{**first, "podCliqueSetGenerationHash": "another"}, *others]}}
        await cluster.kubectl.patch(POD_GANG_MAP, "default", "llm-0", spec)
        allowed(cluster)

        assert "PodGangMap default/llm-0 has entries of two revisions" in await refusal(cluster)


async def test_M19_while_a_pod_waits_by_the_name_of_its_gang_nothing_is_done() -> None:
    async with run_by_later_grove(WORLDS["start order in groups"]) as (cluster, _):
        pods = cluster.there(kinds.POD)
        name = next(name for name, pod in pods.items() if pod["spec"].get("initContainers", [{}])[-1]["name"] == "grove-initc")
        waiting = {"name": "grove-initc", "ready": False, "restartCount": 0, "image": "i", "imageID": "", "state": {"running": {}}}
        others = pods[name]["status"].get("initContainerStatuses", [])
        statuses = [waiting if each["name"] == "grove-initc" else each for each in others]
        await cluster.kubectl.patch(kinds.POD, "default", name, {"status": {"initContainerStatuses": statuses}}, subresource="status")
        allowed(cluster)

        plan = await plan_of(cluster)

        assert plan.operations == ()
        assert f"Pod default/{name} waits in grove-initc for others" in plan.objections[0].message


async def test_M19_a_set_with_names_of_gangs_that_do_not_tell_their_replica_is_not_taken_over() -> None:
    shortened = "llm-" + "0" * 25 + "-h0123456789abcdef0123456789abcdef"
    async with run_by_later_grove(WORLDS["inference"]) as (cluster, later):
        await later.grove.create(await later.gang(1, shortened))
        allowed(cluster)

        assert f"PodGang default/{shortened} has a shortened name, which does not tell its replica and epoch" in await refusal(cluster)


async def test_M18_a_set_that_is_being_deleted_is_removed_with_its_map() -> None:
    async with run_by_later_grove(WORLDS["inference"]) as (cluster, _):
        await cluster.delete(kinds.PODCLIQUESET, "llm")

        await cluster.sync()
        await cluster.settle()

        assert uids(cluster, POD_GANG_MAP, kinds.POD, kinds.PODGANG, kinds.PODCLIQUESET) == {}


async def test_M18_a_graph_whose_set_is_managed_by_the_later_release_is_left_alone_too() -> None:
    async with stage() as cluster:
        await cluster.sync(manifests=[graph(decode=service(nodes=2), other=service())])
        await cluster.kubectl.create(kinds.CRD, "", definition())
        gang = next(iter(cluster.there(kinds.PODGANG)))
        await cluster.kubectl.patch(kinds.PODGANG, "default", gang, {"metadata": {"labels": {"grove.io/epoch": str(FIRST)}}})
        edited = graph(annotations={"engine.grove.io/allow-replace": "true"}, decode=service(nodes=3), other=service())
        before = uids(cluster)

        report = await cluster.sync(manifests=[edited])

        assert report.ending is Ending.DENIED
        assert uids(cluster) == before
        assert [plan.operations for plan in report.plans] == [(), ()]
        assert cluster.process.count == 0


def without_rights(cluster: Stage) -> Process:
    """A process that may not read PodGangMaps, e.g. of a release whose roles are not installed yet."""
    ours = cluster.start()
    ours.refuses = lambda call: Forbidden("podgangmaps is forbidden") if call[1] == POD_GANG_MAP else None
    return ours


async def test_M18_where_maps_are_not_served_no_right_to_read_them_is_needed() -> None:
    async with stage() as cluster:
        await cluster.apply(podcliqueset("web"))

        report = await cluster.sync(without_rights(cluster))

        assert (report.ending, dict(report.incomplete)) == (Ending.DONE, {})


async def test_M18_where_maps_are_served_a_missing_right_is_said_and_everything_else_is_done() -> None:
    async with stage() as cluster:
        await cluster.kubectl.create(kinds.CRD, "", definition())
        await cluster.apply(podcliqueset("web"))

        report = await cluster.sync(without_rights(cluster))

        assert (report.ending, set(report.incomplete)) == (Ending.INCOMPLETE, {"PodGangMap"})
        assert len(cluster.there(kinds.POD)) == 2


async def test_M18_a_definition_that_is_installed_while_a_process_runs_is_noticed() -> None:
    async with stage() as cluster:
        await cluster.apply(podcliqueset("web"))
        async with cluster.running():
            await cluster.settle()
            await cluster.kubectl.create(kinds.CRD, "", definition())
            await cluster.kubectl.create(POD_GANG_MAP, "default", leftover_map(cluster.there(kinds.PODCLIQUESET)["web"]))
            await cluster.clock.advance(120)

            assert [event["reason"] for event in cluster.there(kinds.EVENT).values()].count("PodGangsOfEpochs") == 1
