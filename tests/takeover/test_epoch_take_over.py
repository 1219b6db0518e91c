"""A set of Grove v0.1.0-alpha.12 or later is taken over without a restart, and given back (M20, M21)."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec.structs import replace

from engine.ids import Kind
from engine.leaves import explain
from engine.reason import Reason
from engine.runtime.sync_report import Ending
from engine.verb import Verb
from resources.base import kinds, labels
from tests.builders import clique, group, podcliqueset
from tests.mnnvl.sets import gpus
from tests.stories.deaths import deaths
from tests.stories.graphs import graph, service
from tests.stories.pods import images, is_ready
from tests.stories.process import Killed
from tests.stories.stage import Stage, forked, stage
from tests.stories.umpire import Umpire
from tests.takeover.epochs import POD_GANG_MAP, EpochGrove, definition, leftover_map, run_by_later_grove
from tests.takeover.grove import COMPUTE_DOMAIN
from tests.takeover.stored_set import Options
from tests.takeover.test_epoch_guard import ALLOWED, EVERY_WORLD, allowed
from tests.takeover.worlds import WORLDS, World, grove_in, inference, planned, run_by_grove, uids

pytestmark = pytest.mark.anyio
KEPT = (kinds.POD, kinds.PODCLIQUE, kinds.SCALING_GROUP, kinds.SERVICE, kinds.AUTOSCALER, kinds.RESOURCE_CLAIM)
"""The kinds of objects that stay the same objects."""
REPLACED = {"PodGang", "PodGroup", "PodGangMap"}
"""The kinds of objects that are deleted or created."""
MEMBERSHIP = {"kai-scheduler": ["pod-group-name"], "volcano": ["scheduling.volcano.sh/group-name", "scheduling.k8s.io/group-name"]}
"""Scheduler -> the annotations by which it finds the PodGroup of a pod."""


@asynccontextmanager
async def taken_over(world: World) -> AsyncIterator[tuple[Stage, EpochGrove]]:
    """A cluster in which the engine has taken over the set of a world from the later release."""
    async with run_by_later_grove(world) as (cluster, later):
        allowed(cluster)
        assert (await cluster.sync()).ending is Ending.DONE
        yield cluster, later


def gangs_of(cluster: Stage, *of: Any) -> set[tuple[str, str]]:
    """PodGang and base PodGang that cliques and pods (or only these kinds) name."""
    bodies = (body for kind in of or (kinds.PODCLIQUE, kinds.POD) for body in cluster.there(kind).values())
    meta = [body["metadata"]["labels"] for body in bodies]
    return {(each["grove.io/podgang"], each.get("grove.io/base-podgang", "")) for each in meta}


@EVERY_WORLD
async def test_M20_no_pod_and_no_clique_is_deleted_or_created_and_maps_are_removed(world: World) -> None:
    async with run_by_grove(world) as (cluster, _):
        legacy, gangs = gangs_of(cluster), set(cluster.there(kinds.PODGANG))
    async with run_by_later_grove(world) as (cluster, _):
        before, specs = uids(cluster, *KEPT), {name: pod["spec"] for name, pod in cluster.there(kinds.POD).items()}
        nodes = {name: pod["spec"]["nodeName"] for name, pod in cluster.there(kinds.POD).items()}
        allowed(cluster)

        report = await cluster.sync()

        changed = {result.operation.id.kind for result in report.results if result.operation.verb in (Verb.DELETE, Verb.CREATE)}
        assert (report.ending, report.failures) == (Ending.DONE, ())
        assert changed <= REPLACED
        assert uids(cluster, *KEPT) == before
        assert {name: pod["spec"] for name, pod in cluster.there(kinds.POD).items()} == specs
        assert {name: pod["spec"]["nodeName"] for name, pod in cluster.there(kinds.POD).items()} == nodes
        assert (cluster.there(POD_GANG_MAP), set(cluster.there(kinds.PODGANG)), gangs_of(cluster)) == ({}, gangs, legacy)
        assert all(labels.EPOCH not in gang["metadata"]["labels"] for gang in cluster.there(kinds.PODGANG).values())
        assert await planned(cluster) == ()


@EVERY_WORLD
async def test_M20_what_is_written_says_that_it_is_a_take_over(world: World) -> None:
    async with run_by_later_grove(world) as (cluster, _):
        allowed(cluster)

        operations = [operation for operation in await planned(cluster) if operation.verb is not Verb.STATUS]

        named = [each for each in operations if any(change.path[-1] == "grove.io/podgang" for change in explain(each))]
        assert {each.id.kind for each in named} == {"PodClique", "Pod"}
        assert {each.reason for each in (*named, *(each for each in operations if each.id.kind == "PodGang"))} == {Reason.TAKEN_OVER}
        assert [each for each in operations if each.verb is Verb.DELETE] == []


@pytest.mark.parametrize("name", ["inference", "KAI", "Volcano"])
async def test_M20_gangs_come_first_then_labels_then_the_old_gangs_go_and_the_maps_last(name: str) -> None:
    async with run_by_later_grove(WORLDS[name]) as (cluster, _):
        allowed(cluster)

        report = await cluster.sync()

        done = [(result.operation.verb, result.operation.id) for result in report.results if result.operation.verb is not Verb.STATUS]
        order: dict[str, list[int]] = {}
        for number, (verb, id) in enumerate(done):
            order.setdefault(f"{verb} {id.kind}", []).append(number)
        of_first = {number for number, (_, id) in enumerate(done) if id.name.startswith("llm-0")}
        firsts, pods = [min(of_first.intersection(order[key])) for key in ("create PodGang", "delete PodGang")], order["patch Pod"]
        assert firsts[0] < min(of_first.intersection(pods)) and max(of_first.intersection(pods)) < firsts[1]
        assert max(order["delete PodGang"]) < min(order["delete PodGangMap"])


@pytest.mark.parametrize("name", ["KAI", "Volcano"])
async def test_M20_pods_are_in_the_podgroups_of_the_new_gangs(name: str) -> None:
    async with taken_over(WORLDS[name]) as (cluster, _):
        keys = MEMBERSHIP[WORLDS[name].scheduler]
        kind = kinds.KAI_POD_GROUP if name == "KAI" else kinds.VOLCANO_POD_GROUP
        pods = cluster.there(kinds.POD).values()
        members = {pod["metadata"]["annotations"][key] for pod in pods for key in keys}

        assert (
            members == {gang for gang, _ in gangs_of(cluster, kinds.POD)} == set(cluster.there(kind)) == set(cluster.there(kinds.PODGANG))
        )


async def test_M20_a_take_over_killed_at_any_write_is_completed_by_the_next_one() -> None:
    async with run_by_later_grove(WORLDS["scaling group"]) as (beginning, _):
        allowed(beginning)
        pods = uids(beginning, *KEPT)
        async with forked(beginning) as cluster:
            await cluster.sync()
            wanted = await cluster.shape()
        async with forked(beginning) as cluster:
            all_deaths = await deaths(cluster, cluster.start())
        for number, death in enumerate(all_deaths):
            async with forked(death.left) as cluster:
                assert (await cluster.sync()).ending is Ending.DONE

                assert (await cluster.shape(), uids(cluster, *KEPT)) == (wanted, pods), number


async def test_M20_after_an_interrupted_take_over_the_set_is_left_alone_again_without_the_flag() -> None:
    async with run_by_later_grove(WORLDS["scaling group"]) as (cluster, _):
        setup = cluster.setup
        allowed(cluster)
        first = cluster.start()
        first.dies_before = 6
        with pytest.raises((Killed, ExceptionGroup)):
            await cluster.sync(first)
        cluster.setup = setup

        assert (await cluster.sync()).ending is Ending.DENIED
        assert cluster.process.count == 0


async def test_M20_gated_pods_of_a_scaled_gang_find_their_base_gang_by_the_engines_rule() -> None:
    gated = ("llm-0-pool-1-lead", "llm-0-pool-1-work")
    async with stage() as cluster:
        grove = grove_in(cluster)
        await grove.deploy(WORLDS["inference"].manifest, gated=gated)
        later = EpochGrove(grove)
        await later.define()
        await later.migrate()
        before = uids(cluster, kinds.POD)
        assert sum(bool(pod["spec"].get("schedulingGates")) for pod in cluster.there(kinds.POD).values()) == 3
        allowed(cluster)

        await cluster.sync()

        assert uids(cluster, kinds.POD) == before
        assert all(map(is_ready, cluster.there(kinds.POD).values()))


async def test_M20_a_set_at_0_gets_rid_of_its_empty_map_and_can_be_scaled_up() -> None:
    idle = podcliqueset("web", clique("worker"), groups=(group("pool", "worker"),))
    async with stage() as cluster:
        grove = grove_in(cluster)
        await grove.deploy(idle)
        later = EpochGrove(grove)
        await later.define()
        for pod in cluster.there(kinds.POD):
            await cluster.kubectl.delete(kinds.POD, "default", pod, grace=0)
        await cluster.scale(kinds.PODCLIQUESET, "web", 0)
        await later.plan(0, entries=())
        allowed(cluster)
        assert (await cluster.sync()).ending is Ending.DONE
        assert uids(cluster, POD_GANG_MAP, kinds.POD, kinds.PODGANG) == {}

        await cluster.scale(kinds.PODCLIQUESET, "web", 2)
        assert (await cluster.sync()).ending is Ending.DONE

        assert len(cluster.there(kinds.POD)) == 2


async def test_M20_a_set_whose_components_are_all_at_0_keeps_them_without_its_empty_map_until_they_are_scaled_up() -> None:
    idle = podcliqueset("web", clique("worker", 2), clique("member"), groups=(group("pool", "member"),))
    async with stage() as cluster:
        grove = grove_in(cluster, Options(replicas={"web-0-worker": 0, "web-0-pool": 0}))
        await grove.deploy(idle)
        later = EpochGrove(grove)
        await later.define()
        await later.plan(0, entries=())
        await cluster.delete(kinds.PODGANG, "web-0")
        before = uids(cluster, kinds.PODCLIQUE, kinds.SCALING_GROUP)
        assert (await cluster.sync()).ending is Ending.DENIED
        allowed(cluster)

        assert (await cluster.sync()).ending is Ending.DONE

        assert uids(cluster, kinds.PODCLIQUE, kinds.SCALING_GROUP) == before
        assert uids(cluster, POD_GANG_MAP, kinds.POD) == {}
        await cluster.scale(kinds.PODCLIQUE, "web-0-worker", 2)
        await cluster.scale(kinds.SCALING_GROUP, "web-0-pool", 2)
        assert (await cluster.sync()).ending is Ending.DONE
        assert [is_ready(pod) for pod in cluster.there(kinds.POD).values()] == [True] * 4


async def test_M20_afterwards_the_set_is_updated_scaled_and_deleted_as_any_other() -> None:
    async with taken_over(WORLDS["inference"]) as (cluster, _):
        await cluster.scale(kinds.SCALING_GROUP, "llm-0-pool", 3)
        async with cluster.running() as ours:
            umpire = Umpire(cluster, ours)
            await cluster.settle()
        assert umpire.fouls == []
        assert ("llm-0-pool-1", "llm-0") in gangs_of(cluster)

        await cluster.delete(kinds.PODCLIQUESET, "llm")
        await cluster.sync()
        await cluster.settle()
        assert uids(cluster, *KEPT, kinds.PODGANG) == {}


@pytest.mark.parametrize("name", ["inference", "scaled by autoscalers", "KAI"])
async def test_M21_the_later_release_finds_a_set_as_before_its_migration_and_no_pod_is_restarted(name: str) -> None:
    async with taken_over(WORLDS[name]) as (cluster, later):
        before = uids(cluster, *KEPT)
        assert found_by_the_migration(cluster) == {"maps": set(), "epochs": set(), "migrated": set()}

        await later.migrate()

        assert uids(cluster, *KEPT) == before
        assert all(map(is_ready, cluster.there(kinds.POD).values()))
        cluster.setup = replace(cluster.setup, take_over=False)
        assert (await cluster.sync()).ending is Ending.DENIED
        allowed(cluster)
        assert (await cluster.sync()).ending is Ending.DONE
        assert uids(cluster, *KEPT) == before


def found_by_the_migration(cluster: Stage) -> Mapping[str, set[str]]:
    """What keeps that release from treating a set as one of the release before: maps, epochs and its condition."""
    gangs, sets = cluster.there(kinds.PODGANG), cluster.there(kinds.PODCLIQUESET)
    return {
        "maps": set(cluster.there(POD_GANG_MAP)),
        "epochs": {name for name, gang in gangs.items() if {labels.EPOCH, labels.GANG_ROLE} & gang["metadata"]["labels"].keys()},
        "migrated": {name for name, body in sets.items() for each in body["status"].get("conditions", ()) if "PodGang" in each["type"]},
    }


async def test_M20_pods_keep_the_index_that_the_later_release_has_given_them() -> None:
    label = "grove.io/podcliquescalinggroup-pod-index"
    async with run_by_later_grove(WORLDS["inference"]) as (cluster, _):
        before = {name: pod["metadata"]["labels"].get(label) for name, pod in cluster.there(kinds.POD).items()}
        assert {index for index in before.values() if index} == {"0", "1", "2"}
        allowed(cluster)

        await cluster.sync()

        assert {name: pod["metadata"]["labels"].get(label) for name, pod in cluster.there(kinds.POD).items()} == before


async def test_M20_an_update_that_the_later_release_has_begun_continues_with_what_is_still_outdated() -> None:
    async with run_by_grove(WORLDS["inference"]) as (cluster, grove):
        await grove.begin_update(inference(2), pods=1, replicas=["llm-0-pool-0"])
        later = EpochGrove(grove)
        await later.define()
        await later.migrate()
        updated = {name: pod["metadata"]["uid"] for name, pod in cluster.there(kinds.POD).items() if images([pod]) == {"example/worker:2"}}
        allowed(cluster)

        async with cluster.running() as ours:
            umpire = Umpire(cluster, ours)
            await cluster.settle()

        after = cluster.there(kinds.POD)
        assert umpire.fouls == []
        assert images(after.values()) == {"example/worker:2"}
        assert len(updated) == 4 and {name: after[name]["metadata"]["uid"] for name in updated} == updated
        assert (cluster.there(POD_GANG_MAP), await planned(cluster)) == ({}, ())


@pytest.mark.parametrize("annotated", [kinds.PODCLIQUESET, kinds.DYNAMO_GRAPH], ids=["the set", "the graph"])
async def test_M20_the_set_of_a_graph_is_taken_over_where_it_or_the_graph_is_annotated(annotated: Kind) -> None:
    async with stage() as cluster:
        await cluster.sync(manifests=[graph(decode=service(nodes=2), other=service())])
        await cluster.kubectl.create(kinds.CRD, "", definition())
        root = cluster.there(kinds.PODCLIQUESET)["chat"]
        await cluster.kubectl.create(POD_GANG_MAP, "default", leftover_map(root))
        before = uids(cluster, *KEPT, kinds.PODGANG)
        assert (await cluster.sync()).ending is Ending.DENIED

        await cluster.kubectl.patch(annotated, "default", "chat", ALLOWED)

        assert (await cluster.sync()).ending is Ending.DONE
        assert (cluster.there(POD_GANG_MAP), uids(cluster, *KEPT, kinds.PODGANG)) == ({}, before)


async def test_M20_only_annotated_sets_are_taken_over() -> None:
    async with run_by_later_grove(WORLDS["inference"]) as (cluster, _):
        await cluster.kubectl.patch(kinds.PODCLIQUESET, "default", "llm", ALLOWED)

        assert (await cluster.sync()).ending is Ending.DONE
        assert cluster.there(POD_GANG_MAP) == {}


async def test_M22_an_annotation_that_the_later_release_ignores_makes_no_domain_and_is_named() -> None:
    world = World(podcliqueset("llm", clique("worker", 2, pod_spec=gpus()), replicas=2))
    async with run_by_later_grove(world) as (cluster, _):
        annotated = {"metadata": {"annotations": {"grove.io/auto-mnnvl": "enabled", labels.TAKE_OVER: "true"}}}
        await cluster.kubectl.patch(kinds.PODCLIQUESET, "default", "llm", annotated)
        before = uids(cluster, *KEPT)

        (plan,) = (await cluster.look()).planned.plans
        (alarm,) = [alarm for alarm in plan.alarms if "grove.io/auto-mnnvl" in alarm.text]
        assert "it has no effect: it stays as recorded until the set is deleted and created again" in alarm.text
        assert not any(operation.id.kind == "ComputeDomain" for operation in plan.operations)

        await cluster.sync()
        await cluster.scale(kinds.PODCLIQUESET, "llm", 3)
        await cluster.sync()

        assert uids(cluster, *KEPT).items() >= before.items()
        assert cluster.there(COMPUTE_DOMAIN) == {}
        assert "FabricAnnotationsIgnored" in {each["type"] for each in cluster.there(kinds.PODCLIQUESET)["llm"]["status"]["conditions"]}
