"""Deletion: of sets, groups, cliques and namespaces, in every manner; nothing is stuck, and nothing goes from under pods that run."""

from typing import Any

import pytest

from engine.errors import ClusterError
from engine.ids import Kind
from engine.report.text import text
from engine.verb import Verb
from enginectl.actions.planning import first_pass_of
from resources.base import kinds
from resources.preview.forecasting import forecast_of
from resources.preview.shown import shown
from tests.builders import applying, clique, group, podcliqueset
from tests.stories.pods import clique_of, is_leaving, is_ready
from tests.stories.process import Call, Process
from tests.stories.stage import Stage, stage

pytestmark = pytest.mark.anyio

SERVING = (kinds.SERVICE, kinds.PODGANG, kinds.ROLE, kinds.ROLE_BINDING, kinds.SERVICE_ACCOUNT)
"""What pods rely on as long as they run, and what goes at once when it is deleted."""
SLOW = {"sandbox.grove.io/terminate-after": "10s"}


def workload(name: str = "llm", replicas: int = 1) -> dict[str, Any]:
    """A clique that stands alone, and a group of two; their pods take their time to go."""
    cliques = [clique(each, count, annotations=SLOW) for each, count in (("router", 2), ("prefill", 1), ("decode", 2))]
    return podcliqueset(name, *cliques, groups=(group("pool", "prefill", "decode", replicas=2),), replicas=replicas)


async def settled(cluster: Stage) -> None:
    """The workload is up."""
    await cluster.apply(workload())
    await cluster.settle()


def watched(cluster: Stage, ours: Process) -> list[str]:
    """What we take from under pods that are still there, as it happens."""
    fouls: list[str] = []

    def judge_call(call: Call) -> ClusterError | None:
        verb, kind, name = call
        if verb == "delete" and kind in SERVING and (there := cluster.there(kinds.POD)):
            fouls.append(f"{kind.name} {name} is deleted from under {len(there)} pods")
        return None

    def judge_state() -> None:
        held = {clique["metadata"]["uid"] for clique in cluster.there(kinds.PODCLIQUE).values()}
        for name, pod in cluster.there(kinds.POD).items():
            if any(owner["uid"] not in held for owner in pod["metadata"].get("ownerReferences", ())):
                fouls.append(f"{name} has lost its clique")

    ours.refuses, ours.on_write = judge_call, judge_state
    return fouls


async def whole_again(cluster: Stage, before: set[str]) -> None:
    """Everything is there that was, and serves."""
    await cluster.settle()
    names = {name for name in await cluster.names() if not name.startswith("Pod ")}
    assert names == {name for name in before if not name.startswith("Pod ")}
    pods = cluster.there(kinds.POD).values()
    assert len(pods) == len([name for name in before if name.startswith("Pod ")])
    assert all(map(is_ready, pods))
    assert not leaving(cluster)


def leaving(cluster: Stage) -> list[str]:
    """What is being deleted, and still there."""
    found = (body for kind in (kinds.PODCLIQUE, kinds.SCALING_GROUP, kinds.POD) for body in cluster.there(kind).values())
    return [body["metadata"]["name"] for body in found if is_leaving(body)]


@pytest.mark.parametrize("manner", ["Background", "Foreground"])
async def test_a_set_goes_pods_first_and_leaves_nothing(manner: str) -> None:
    async with stage() as cluster, cluster.running() as ours:
        await settled(cluster)
        fouls = watched(cluster, ours)

        await cluster.delete(kinds.PODCLIQUESET, "llm", manner)
        await cluster.settle()
        await cluster.clock.advance(60)

        assert await cluster.names() == set()
        assert fouls == []


async def test_what_a_set_owns_stays_and_runs_on_when_it_is_deleted_without_its_own() -> None:
    async with stage() as cluster, cluster.running():
        await settled(cluster)
        before, pods = await cluster.names(), cluster.there(kinds.POD)

        await cluster.delete(kinds.PODCLIQUESET, "llm", "Orphan")
        await cluster.settle()
        await cluster.clock.advance(60)

        assert await cluster.names() == before - {"PodCliqueSet llm"}
        assert {name: pod["metadata"]["uid"] for name, pod in cluster.there(kinds.POD).items()} == {
            name: pod["metadata"]["uid"] for name, pod in pods.items()
        }
        assert not leaving(cluster)


async def test_as_long_as_the_collector_has_not_spared_what_a_set_owns_nothing_of_it_is_touched() -> None:
    async with stage(without={"garbage"}) as cluster, cluster.running() as ours:
        await settled(cluster)
        before, count = await cluster.names(), ours.count

        await cluster.delete(kinds.PODCLIQUESET, "llm", "Orphan")
        await cluster.clock.advance(60)

        assert (await cluster.names(), ours.count) == (before, count)


async def test_a_small_set_is_not_touched_either_where_no_budget_protects_it() -> None:
    async with stage(without={"garbage"}) as cluster:
        await cluster.apply(podcliqueset("lone", clique("a")))
        await cluster.sync()
        before = await cluster.names()

        await cluster.delete(kinds.PODCLIQUESET, "lone", "Orphan")
        seen = await cluster.look()
        await cluster.until_ended(lambda: cluster.syncing(patience=30.0))

        assert [operation.verb for plan in seen.planned.plans for operation in plan.operations if operation.verb is not Verb.STATUS] == []
        assert await cluster.names() == before


async def test_what_was_spared_is_let_go_when_somebody_deletes_it_even_if_no_set_is_left() -> None:
    async with stage() as cluster, cluster.running() as ours:
        await settled(cluster)
        await cluster.delete(kinds.PODCLIQUESET, "llm", "Orphan")
        await cluster.settle()
        fouls = watched(cluster, ours)

        await cluster.delete(kinds.SCALING_GROUP, "llm-0-pool")
        await cluster.delete(kinds.PODCLIQUE, "llm-0-router")
        await cluster.clock.advance(60)

        assert not leaving(cluster)
        left = await cluster.names()
        assert not [name for name in left if name.startswith(("PodCliqueScalingGroup llm-0", "PodClique llm-0"))]
        assert "PodGang llm-0" in left
        assert not [foul for foul in fouls if "lost" in foul]


PARTS = [(kinds.PODCLIQUE, "llm-0-router"), (kinds.PODCLIQUE, "llm-0-pool-1-decode"), (kinds.SCALING_GROUP, "llm-0-pool")]


@pytest.mark.parametrize("manner", ["Background", "Foreground"])
@pytest.mark.parametrize(("kind", "name"), PARTS)
async def test_a_part_that_somebody_deletes_goes_pods_first_and_is_made_again(kind: Kind, name: str, manner: str) -> None:
    async with stage() as cluster, cluster.running() as ours:
        await settled(cluster)
        before, uid = await cluster.names(), cluster.there(kind)[name]["metadata"]["uid"]
        fouls = watched(cluster, ours)

        await cluster.delete(kind, name, manner)

        await whole_again(cluster, before)
        assert cluster.there(kind)[name]["metadata"]["uid"] != uid
        assert fouls == []


async def test_pods_that_somebody_orphans_are_nobodys_and_others_are_made_beside_them() -> None:
    async with stage() as cluster, cluster.running():
        await settled(cluster)
        before = cluster.there(kinds.POD)

        await cluster.delete(kinds.PODCLIQUE, "llm-0-router", "Orphan")
        await cluster.settle()

        after = cluster.there(kinds.POD)
        assert before.keys() < after.keys()
        orphans = [name for name, pod in after.items() if not pod["metadata"].get("ownerReferences")]
        assert [clique_of(after[name]) for name in orphans] == ["llm-0-router"] * 2
        assert len(after) == len(before) + 2
        assert all(map(is_ready, after.values()))
        assert not leaving(cluster)


async def test_a_namespace_that_is_deleted_is_emptied_and_goes() -> None:
    async with stage() as cluster, cluster.running():
        await settled(cluster)

        await cluster.kubectl.delete(kinds.NAMESPACE, "", "default")
        await cluster.settle()
        await cluster.clock.advance(60)

        assert await cluster.names() == set()
        assert "default" not in cluster.there(kinds.NAMESPACE)


@pytest.mark.parametrize("manner", ["Background", "Foreground"])
async def test_a_set_removed_by_force_leaves_nothing_stuck_behind(manner: str) -> None:
    async with stage() as cluster:
        async with cluster.running():
            await settled(cluster)
        await cluster.delete(kinds.PODCLIQUESET, "llm", manner)
        await cluster.kubectl.patch(kinds.PODCLIQUESET, "default", "llm", {"metadata": {"finalizers": None}})
        await cluster.clock.advance(30)

        async with cluster.running() as ours:
            fouls = watched(cluster, ours)
            await cluster.settle()
            await cluster.clock.advance(60)

        assert await cluster.names() == set()
        assert fouls == []


async def test_a_set_made_again_while_the_old_one_is_torn_down_comes_up_with_objects_of_its_own() -> None:
    async with stage() as cluster, cluster.running():
        await settled(cluster)
        before, old = await cluster.names(), cluster.there(kinds.PODCLIQUESET)["llm"]["metadata"]["uid"]
        await cluster.delete(kinds.PODCLIQUESET, "llm")
        await cluster.clock.advance(2)
        await cluster.kubectl.patch(kinds.PODCLIQUESET, "default", "llm", {"metadata": {"finalizers": None}})

        await cluster.apply(workload())

        await whole_again(cluster, before)
        new = cluster.there(kinds.PODCLIQUESET)["llm"]["metadata"]["uid"]
        owners = {body["metadata"]["ownerReferences"][0]["uid"] for body in cluster.there(kinds.SCALING_GROUP).values()}
        assert owners == {new} != {old}


async def test_one_set_goes_and_its_neighbour_does_not_notice() -> None:
    async with stage() as cluster, cluster.running():
        await cluster.apply(workload("other"))
        await settled(cluster)
        kept = {name: pod["metadata"]["uid"] for name, pod in cluster.there(kinds.POD).items() if name.startswith("other-")}

        await cluster.delete(kinds.PODCLIQUESET, "llm")
        await cluster.settle()
        await cluster.clock.advance(60)

        assert {name: pod["metadata"]["uid"] for name, pod in cluster.there(kinds.POD).items()} == kept


@pytest.mark.parametrize("how", ["engine delete", "Background", "Foreground"])
async def test_a_preview_counts_every_object_that_goes_whoever_deletes_it(how: str) -> None:
    async with stage() as cluster:
        await cluster.apply(workload())
        await cluster.sync()
        before = await cluster.names()
        removals = cluster.removing(kinds.PODCLIQUESET, "llm") if how == "engine delete" else {}
        if not removals:
            await cluster.delete(kinds.PODCLIQUESET, "llm", how)
            before -= {"PodCliqueSet llm"}
        first = first_pass_of(await cluster.look(removals=removals), applying((), removals))
        forecast = forecast_of(first)
        assert forecast is not None
        lines = [line.text for line in text(shown(first, forecast).report)]
        deleted = sum(operation.verb is Verb.DELETE for operation in forecast.operations())

        assert deleted + forecast.collected == len(before) > 20
        assert (forecast.collected > 0) is (how == "Foreground")
        (plan,) = (line for line in lines if line.startswith("Plan: "))
        assert f"{deleted} to delete" in plan and (f", {forecast.collected} deleted by Kubernetes" in plan) is (how == "Foreground")
