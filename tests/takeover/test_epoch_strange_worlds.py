"""Sets of the later release in states that a cluster may be in by accident: a take-over restarts nothing there either (M19, M20)."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from msgspec.structs import replace

from engine.ids import Kind
from engine.runtime.sync_report import Ending
from engine.verb import Verb
from resources.base import kinds, labels
from resources.schema.crds import crds
from tests.builders import clique, group, podcliqueset
from tests.stories.graph_cluster import CONTROLLER_REVISION
from tests.stories.pods import images, is_ready
from tests.stories.stage import Stage, stage
from tests.stories.umpire import Umpire
from tests.takeover.epochs import FIRST, MIGRATING, POD_GANG_MAP, EpochGrove, run_by_later_grove
from tests.takeover.grove import Child
from tests.takeover.test_epoch_guard import allowed
from tests.takeover.test_epoch_take_over import KEPT, REPLACED, gangs_of
from tests.takeover.worlds import WORLDS, World, grove_in, inference, planned, run_by_grove, uids

pytestmark = pytest.mark.anyio
Body = dict[str, Any]
Change = Callable[[Stage, EpochGrove], Awaitable[None]]
ANOTHER = f"llm-0-{FIRST + 500}"
"""A PodGang of a second epoch in the first replica."""


async def patch(cluster: Stage, kind: Kind, name: str, **metadata: Any) -> None:
    await cluster.kubectl.patch(kind, "default", name, {"metadata": metadata})


async def the_maps_are_lost(cluster: Stage, later: EpochGrove) -> None:
    for name in cluster.there(POD_GANG_MAP):
        await cluster.delete(POD_GANG_MAP, name)


async def the_map_of_one_replica_is_lost(cluster: Stage, later: EpochGrove) -> None:
    await cluster.delete(POD_GANG_MAP, "llm-1")


async def maps_have_no_entries(cluster: Stage, later: EpochGrove) -> None:
    await cluster.kubectl.patch(POD_GANG_MAP, "default", "llm-0", {"spec": {"entries": []}})
    await cluster.kubectl.patch(POD_GANG_MAP, "default", "llm-1", {"spec": None})


async def a_map_is_of_no_replica(cluster: Stage, later: EpochGrove) -> None:
    await later.plan(7, entries=())


async def members_have_the_label_of_the_release_before(cluster: Stage, later: EpochGrove) -> None:
    for kind in (kinds.PODCLIQUE, kinds.POD):
        for name, body in cluster.there(kind).items():
            if "-pool-1-" in body["metadata"]["labels"].get("grove.io/podgang", ""):
                await patch(cluster, kind, name, labels={"grove.io/base-podgang": "llm-0"})


async def pods_of_a_clique_have_lost_the_name_of_their_gang(cluster: Stage, later: EpochGrove) -> None:
    for name, body in cluster.there(kinds.POD).items():
        if body["metadata"]["labels"]["grove.io/podclique"] == "llm-0-router":
            await patch(cluster, kinds.POD, name, labels={"grove.io/podgang": None})


async def pods_of_one_clique_are_in_gangs_of_two_epochs(cluster: Stage, later: EpochGrove) -> None:
    await later.grove.create(await later.gang(0, ANOTHER))
    await patch(cluster, kinds.PODGANG, ANOTHER, labels={"grove.io/epoch": str(FIRST + 500)})
    moved = [name for name, body in cluster.there(kinds.POD).items() if body["metadata"]["labels"]["grove.io/podclique"] == "llm-0-router"]
    await patch(cluster, kinds.POD, moved[0], labels={"grove.io/podgang": ANOTHER})


async def the_gangs_of_a_replica_are_lost(cluster: Stage, later: EpochGrove) -> None:
    for each in later.renamed(0):
        await cluster.delete(kinds.PODGANG, each.name)


async def a_clique_names_a_gang_that_never_was(cluster: Stage, later: EpochGrove) -> None:
    await patch(cluster, kinds.PODCLIQUE, "llm-0-router", labels={"grove.io/podgang": ANOTHER})


async def the_condition_is_left_behind_with_another_status(cluster: Stage, later: EpochGrove) -> None:
    conditions = {"status": {"conditions": [{**MIGRATING, "status": "False"}]}}
    await cluster.kubectl.patch(kinds.PODCLIQUESET, "default", "llm", conditions, subresource="status")


async def a_gang_of_the_release_before_is_left(cluster: Stage, later: EpochGrove) -> None:
    await later.grove.create(await later.gang(0, "llm-0"))
    await patch(cluster, kinds.PODGANG, "llm-0", labels=dict.fromkeys((labels.EPOCH, labels.GANG_ROLE)))


async def one_replica_is_not_migrated(cluster: Stage, later: EpochGrove) -> None:
    """As after an end of the operator in between, of which somebody has removed the condition."""
    legacy = {each.name: each.legacy for each in later.renamed(1)}
    for kind in (kinds.PODCLIQUE, kinds.POD):
        for name, body in cluster.there(kind).items():
            if (gang := legacy.get(body["metadata"]["labels"]["grove.io/podgang"])) is not None:
                await patch(cluster, kind, name, labels={"grove.io/podgang": gang})
    for gang in legacy.values():
        await later.grove.create(await later.gang(1, gang))
        await patch(cluster, kinds.PODGANG, gang, labels=dict.fromkeys((labels.EPOCH, labels.GANG_ROLE)))
    for epoch in legacy:
        await cluster.delete(kinds.PODGANG, epoch)
    await cluster.delete(POD_GANG_MAP, "llm-1")


async def a_replica_of_a_group_is_in_the_gang_of_a_scale_out(cluster: Stage, later: EpochGrove) -> None:
    old, name = later.renamed(0)[1].name, f"llm-0-{FIRST + 2}-pool-1"
    await later.grove.create(await later.gang(0, name))
    await patch(cluster, kinds.PODGANG, name, labels={"grove.io/epoch": str(FIRST + 2), "grove.io/podgang-role": "ScaleOut"})
    for kind in (kinds.PODCLIQUE, kinds.POD):
        for each, body in cluster.there(kind).items():
            if body["metadata"]["labels"]["grove.io/podgang"] == old:
                await patch(cluster, kind, each, labels={"grove.io/podgang": name})
    await cluster.delete(kinds.PODGANG, old)


STRANGE: tuple[Change, ...] = (
    the_maps_are_lost,
    the_map_of_one_replica_is_lost,
    maps_have_no_entries,
    a_map_is_of_no_replica,
    members_have_the_label_of_the_release_before,
    pods_of_a_clique_have_lost_the_name_of_their_gang,
    pods_of_one_clique_are_in_gangs_of_two_epochs,
    the_gangs_of_a_replica_are_lost,
    a_clique_names_a_gang_that_never_was,
    the_condition_is_left_behind_with_another_status,
    a_gang_of_the_release_before_is_left,
    one_replica_is_not_migrated,
    a_replica_of_a_group_is_in_the_gang_of_a_scale_out,
)
EVERY_STRANGE_WORLD = pytest.mark.parametrize("change", STRANGE, ids=[change.__name__ for change in STRANGE])


@EVERY_STRANGE_WORLD
async def test_M20_whatever_state_the_epochs_are_in_a_take_over_restarts_nothing_and_ends(change: Change) -> None:
    async with run_by_grove(WORLDS["inference"]) as (cluster, _):
        legacy, gangs = gangs_of(cluster), set(cluster.there(kinds.PODGANG))
    async with run_by_later_grove(WORLDS["inference"]) as (cluster, later):
        await change(cluster, later)
        before = uids(cluster, *KEPT)
        setup = cluster.setup
        allowed(cluster)

        operations = await planned(cluster)
        assert {each.id.kind for each in operations if each.verb in (Verb.DELETE, Verb.REPLACE, Verb.CREATE)} <= REPLACED

        report = await cluster.sync()

        assert (report.ending, report.failures, uids(cluster, *KEPT)) == (Ending.DONE, (), before)
        assert (cluster.there(POD_GANG_MAP), set(cluster.there(kinds.PODGANG)), gangs_of(cluster)) == ({}, gangs, legacy)
        assert all(map(is_ready, cluster.there(kinds.POD).values()))
        cluster.setup = setup
        assert await planned(cluster) == ()
        assert (await cluster.sync()).ending is Ending.DONE


@EVERY_STRANGE_WORLD
async def test_M18_whatever_state_the_epochs_are_in_nothing_is_done_that_nobody_has_allowed(change: Change) -> None:
    async with run_by_later_grove(WORLDS["inference"]) as (cluster, later):
        await change(cluster, later)
        before = uids(cluster)

        assert (await cluster.sync()).ending is Ending.DENIED

        assert (uids(cluster), cluster.process.count) == (before, 0)


async def test_M20_pods_that_the_migration_has_left_in_the_podgroup_of_their_old_gang_are_in_that_of_the_new_one() -> None:
    async with run_by_later_grove(WORLDS["Volcano"]) as (cluster, later):
        keys = ("scheduling.volcano.sh/group-name", "scheduling.k8s.io/group-name")
        legacy = {each.name: each.legacy for index in later.grove.rendering.indices for each in later.renamed(index)}
        for name, pod in cluster.there(kinds.POD).items():
            await patch(cluster, kinds.POD, name, annotations=dict.fromkeys(keys, legacy[pod["metadata"]["labels"]["grove.io/podgang"]]))
        before = uids(cluster, *KEPT)
        allowed(cluster)

        await cluster.sync()

        pods = cluster.there(kinds.POD).values()
        assert uids(cluster, *KEPT) == before
        assert {pod["metadata"]["annotations"][key] for pod in pods for key in keys} == set(cluster.there(kinds.VOLCANO_POD_GROUP))


async def test_M18_a_set_that_is_deleted_while_its_gangs_are_renamed_is_removed_without_leftovers() -> None:
    async with run_by_grove(WORLDS["inference"]) as (cluster, grove):
        later = EpochGrove(grove)
        await later.define()
        await later.begin()
        await cluster.delete(kinds.PODCLIQUESET, "llm")

        await cluster.sync()
        await cluster.settle()

        assert uids(cluster, POD_GANG_MAP, kinds.POD, kinds.PODGANG, kinds.PODCLIQUESET) == {}


async def test_M20_a_set_whose_name_begins_with_that_of_another_keeps_its_epochs() -> None:
    async with stage(nodes=20) as cluster:
        laters = []
        for name in ("llm", "llm-0"):
            manifest = podcliqueset(name, clique("router"), clique("worker", 2), groups=(group("pool", "worker", replicas=2),))
            grove = grove_in(cluster)
            await grove.deploy(manifest)
            laters.append(EpochGrove(grove))
        await laters[0].define()
        for later in laters:
            await later.migrate()
        others = {name for name in uids(cluster, kinds.PODGANG) if name.startswith("PodGang llm-0-0-")}
        before = uids(cluster, *KEPT)
        await patch(cluster, kinds.PODCLIQUESET, "llm", annotations={labels.TAKE_OVER: "true"})

        report = await cluster.sync()

        assert report.ending is Ending.DENIED
        assert uids(cluster, *KEPT) == before
        assert set(uids(cluster, kinds.PODGANG)) == others | {"PodGang llm-0", "PodGang llm-0-pool-0"}
        assert set(cluster.there(POD_GANG_MAP)) == {"llm-0-0"}


async def test_M20_replicas_that_are_to_go_go_with_their_maps_and_the_others_stay() -> None:
    async with run_by_later_grove(WORLDS["inference"]) as (cluster, _):
        await cluster.scale(kinds.PODCLIQUESET, "llm", 1)
        kept = {name: uid for name, uid in uids(cluster, kinds.POD, kinds.PODCLIQUE).items() if " llm-0-" in name}
        allowed(cluster)

        assert (await cluster.sync()).ending is Ending.DONE
        await cluster.settle()

        assert uids(cluster, kinds.POD, kinds.PODCLIQUE) == kept
        assert (cluster.there(POD_GANG_MAP), set(cluster.there(kinds.PODGANG))) == ({}, {"llm-0", "llm-0-pool-0"})


async def test_M20_an_edit_in_the_same_command_is_an_update_one_unit_at_a_time() -> None:
    async with run_by_later_grove(WORLDS["inference"]) as (cluster, _):
        allowed(cluster)
        await cluster.apply(inference(2))

        async with cluster.running() as ours:
            umpire = Umpire(cluster, ours)
            await cluster.settle()

        assert umpire.fouls == []
        assert images(cluster.there(kinds.POD).values()) >= {"example/worker:2"}
        assert all(map(is_ready, cluster.there(kinds.POD).values()))
        assert cluster.there(POD_GANG_MAP) == {}


@pytest.mark.parametrize("stuck", [POD_GANG_MAP, kinds.PODGANG], ids=["a map", "a gang"])
async def test_M20_what_a_finalizer_keeps_is_waited_for_and_nothing_else_happens(stuck: Kind) -> None:
    async with run_by_later_grove(WORLDS["inference"]) as (cluster, later):
        name = "llm-0" if stuck == POD_GANG_MAP else later.renamed(0)[0].name
        await patch(cluster, stuck, name, finalizers=["example.com/kept"])
        before = uids(cluster, *KEPT)
        allowed(cluster)
        await cluster.sync()
        assert uids(cluster, *KEPT) == before
        assert list(cluster.there(POD_GANG_MAP)) == ["llm-0"]

        await patch(cluster, stuck, name, finalizers=None)
        assert (await cluster.sync()).ending is Ending.DONE

        assert (uids(cluster, *KEPT), cluster.there(POD_GANG_MAP), await planned(cluster)) == (before, {}, ())


@pytest.mark.parametrize("name", ["inference-of-a-llama", "llm"])
async def test_M19_a_set_whose_gangs_have_names_that_were_cut_is_not_taken_over_unless_they_tell_their_epoch(name: str) -> None:
    pool = "prefill-workers-of-it" if name != "llm" else "prefill-workers-of-the-large-models-2"
    world = World(podcliqueset(name, clique("work"), groups=(group(pool, "work", replicas=2),)))
    async with run_by_later_grove(world) as (cluster, later):
        cut = later.renamed(0)[1].name
        assert len(cut) == 63 and cut in cluster.there(kinds.PODGANG)
        before, kept = uids(cluster), uids(cluster, *KEPT)
        assert (await cluster.sync()).ending is Ending.DENIED
        allowed(cluster)

        report = await cluster.sync()

        assert uids(cluster, *KEPT) == kept
        if name == "llm":
            assert (report.ending, cluster.there(POD_GANG_MAP), await planned(cluster)) == (Ending.DONE, {}, ())
            return
        (objection,) = report.objections
        assert (report.ending, uids(cluster), cluster.process.count) == (Ending.DENIED, before, 0)
        assert f"PodGang default/{cut} has a shortened name" in objection.message


async def test_M20_a_set_without_signs_of_epochs_is_no_exception_for_whom_the_take_over_is_allowed() -> None:
    async with run_by_grove(WORLDS["inference"]) as (cluster, _):
        before = uids(cluster)
        cluster.setup = replace(cluster.setup, take_over=True)

        assert (await cluster.sync()).ending is Ending.DONE

        assert uids(cluster) == before


async def test_M20_pods_that_wait_for_an_anchor_that_is_gone_are_released_and_a_group_at_0_comes_up_again() -> None:
    only = podcliqueset("web", clique("worker", 2), groups=(group("pool", "worker", replicas=1),))
    async with stage() as cluster:
        grove = grove_in(cluster)
        await grove.deploy(only, gated=("web-0-pool-0-worker",))
        later = EpochGrove(grove)
        await later.define()
        await later.migrate()
        late = f"web-0-{FIRST + 2}-pool-0"
        await later.grove.create(await later.gang(0, late))
        await patch(cluster, kinds.PODGANG, late, labels={"grove.io/epoch": str(FIRST + 2), "grove.io/podgang-role": "ScaleOut"})
        for kind in (kinds.PODCLIQUE, kinds.POD):
            for name in cluster.there(kind):
                await patch(cluster, kind, name, labels={"grove.io/podgang": late})
        await cluster.delete(kinds.PODGANG, later.renamed(0)[0].name)
        before = uids(cluster, *KEPT)
        assert not any(map(is_ready, cluster.there(kinds.POD).values()))
        allowed(cluster)

        assert (await cluster.sync()).ending is Ending.DONE
        assert uids(cluster, *KEPT) == before
        assert all(map(is_ready, cluster.there(kinds.POD).values()))

        for replicas, pods in ((0, 0), (2, 4)):
            await cluster.scale(kinds.SCALING_GROUP, "web-0-pool", replicas)
            await cluster.sync()
            await cluster.settle()
            assert [is_ready(pod) for pod in cluster.there(kinds.POD).values()] == [True] * pods


async def test_M18_a_set_with_a_strategy_that_only_the_later_release_has_is_left_as_it_is_and_says_so() -> None:
    async with run_by_grove(WORLDS["inference"]) as (cluster, _):
        (definition,) = (each for each in crds() if each["spec"]["names"]["kind"] == "PodCliqueSet")
        (version,) = definition["spec"]["versions"]
        strategy = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["updateStrategy"]["properties"]["type"]
        strategy["enum"] = [*strategy["enum"], "Coherent"]
        spec = {"spec": {"versions": definition["spec"]["versions"]}}
        await cluster.kubectl.patch(kinds.CRD, "", definition["metadata"]["name"], spec)
        await cluster.kubectl.patch(kinds.PODCLIQUESET, "default", "llm", {"spec": {"updateStrategy": {"type": "Coherent"}}})
        before = uids(cluster)

        for is_allowed in (False, True):
            cluster.setup = replace(cluster.setup, take_over=is_allowed)
            await cluster.sync()
            (plan,) = (await cluster.look()).planned.plans
            assert any("Coherent" in problem and "RollingRecreate" in problem for problem in plan.problems), plan.problems
            assert uids(cluster) == before


async def test_M19_a_gang_with_the_labels_of_an_epoch_and_a_name_without_one_is_refused_with_the_way_out() -> None:
    async with run_by_later_grove(WORLDS["inference"]) as (cluster, later):
        for name in ("llm-0", "llm-1-pool-0"):
            await later.grove.create(await later.gang(int(name[4]), name))
        before = uids(cluster)
        allowed(cluster)

        for name in ("llm-0", "llm-1-pool-0"):
            report = await cluster.sync()
            assert (report.ending, uids(cluster), cluster.process.count) == (Ending.DENIED, before, 0)
            assert f"PodGang default/{name} has the labels of an epoch" in report.objections[0].message
            assert report.objections[0].message.endswith("; remove its labels grove.io/epoch and grove.io/podgang-role")
            await patch(cluster, kinds.PODGANG, name, labels=dict.fromkeys((labels.EPOCH, labels.GANG_ROLE)))

        assert (await cluster.sync()).ending is Ending.DONE
        assert (uids(cluster, *KEPT).items() <= before.items(), cluster.there(POD_GANG_MAP), await planned(cluster)) == (True, {}, ())


async def test_M20_the_revisions_that_the_later_release_keeps_of_a_set_are_left_alone() -> None:
    async with run_by_later_grove(WORLDS["inference"]) as (cluster, later):
        own = {"app.kubernetes.io/managed-by": "grove-operator", "app.kubernetes.io/part-of": "llm"}
        meta = {"name": "llm-0123456789abcdef", "namespace": "default", "labels": own}
        body = {"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": meta, "revision": 1}
        await later.grove.create(Child(CONTROLLER_REVISION, body, ("PodCliqueSet", "llm")))
        allowed(cluster)

        assert (await cluster.sync()).ending is Ending.DONE

        assert list(cluster.there(CONTROLLER_REVISION)) == ["llm-0123456789abcdef"]
        assert await planned(cluster) == ()
