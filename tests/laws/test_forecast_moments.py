"""The law of forecasts at any moment: in the middle of a rollout, after a crash, and where labels, pods or whole objects are lost."""

from typing import Any

import anyio
from hypothesis import event, given
from hypothesis import strategies as some

from engine.ids import Kind
from engine.runtime.sync_report import Ending
from resources.base import kinds, labels
from tests.laws.cases import cases
from tests.laws.test_forecast_laws import FULL, fabric_histories, histories
from tests.mnnvl.sets import named
from tests.stories.fabric import rack
from tests.stories.forecasts import forecast_then_sync
from tests.stories.process import Killed
from tests.stories.stage import CHILDREN, Stage, stage

Body = dict[str, Any]
LABELLED = tuple(kind for kind in CHILDREN if kind != kinds.EVENT)
LOST = (kinds.POD, kinds.SERVICE, kinds.PODCLIQUE, kinds.PODGANG, kinds.SECRET, kinds.ROLE_BINDING)
"""Kinds of which objects are deleted."""


async def cut_short(cluster: Stage, draw: Any, *manifests: Body) -> None:
    """A sync of these that ends in the middle: after some seconds, or because its process is killed at some write."""
    if draw(some.booleans()):
        ours = cluster.start()
        ours.dies_after = draw(some.integers(1, 12))
        try:
            await cluster.sync(ours, manifests=manifests)
        except (Killed, ExceptionGroup):
            event("killed")
    else:
        await cluster.sync(manifests=manifests, patience=draw(some.integers(1, 40)) / 4)
    await cluster.clock.advance(draw(some.sampled_from((0, 0.3, 1, 5))))


async def disturb(cluster: Stage, draw: Any) -> None:
    """Labels of some objects of ours are removed, and others are deleted."""
    for _ in range(draw(some.integers(0, 2))):
        if found := ours_of(cluster, draw(some.sampled_from(LABELLED))):
            kind, name = draw(some.sampled_from(found))
            key = draw(some.sampled_from((labels.MANAGED_BY, labels.MANAGED_BY, labels.PART_OF)))
            event(f"without label: {kind.name}")
            await cluster.kubectl.patch(kind, "default", name, {"metadata": {"labels": {key: None}}})
    for _ in range(draw(some.integers(0, 1))):
        if found := ours_of(cluster, draw(some.sampled_from(LOST))):
            kind, name = draw(some.sampled_from(found))
            event(f"deleted: {kind.name}")
            await cluster.delete(kind, name)


def ours_of(cluster: Stage, kind: Kind) -> list[tuple[Kind, str]]:
    """The objects of a kind that are ours, and not being deleted."""
    if not cluster.serves(kind):
        return []
    metadata = {name: body["metadata"] for name, body in cluster.there(kind).items()}
    ours = [name for name, each in metadata.items() if labels.MANAGED_BY in each.get("labels", {}) and "deletionTimestamp" not in each]
    return [(kind, name) for name in sorted(ours)]


async def assert_settles(cluster: Stage, *manifests: Body) -> None:
    """What is forecast now is what a sync does from now on, and it settles everything."""
    comparison = await forecast_then_sync(cluster, manifests)
    comparison.assert_equal()
    assert comparison.ending is Ending.DONE


@given(histories(), some.data())
@cases(9)
def test_what_is_forecast_in_the_middle_of_a_rollout_is_what_is_left_of_it(history: list[Body], data: Any) -> None:
    async def story() -> None:
        async with stage(nodes=30) as cluster:
            for manifest in history[:3]:
                await cut_short(cluster, data.draw, manifest)
                await disturb(cluster, data.draw)
                await assert_settles(cluster, *([manifest] if data.draw(some.booleans()) else []))

    anyio.run(story)


@given(fabric_histories(), some.data())
@cases(6)
def test_what_is_forecast_in_the_middle_of_a_rollout_with_domains_is_what_is_left_of_it(history: list[Body], data: Any) -> None:
    async def story() -> None:
        async with rack(nodes=FULL) as cluster:
            for manifest in history[:2]:
                await cut_short(cluster, data.draw, manifest)
                await disturb(cluster, data.draw)
                await assert_settles(cluster)

    anyio.run(story)


@some.composite
def shared_histories(draw: Any) -> list[list[Body]]:
    """Two or three sets of one domain, each time with some of them changed, one more or one fewer."""
    steps = []
    for _ in range(3):
        names = draw(some.lists(some.sampled_from(("a", "b", "c")), min_size=1, max_size=3, unique=True))
        sets = [named("rack", name, replicas=draw(some.integers(1, 2))) for name in names]
        for each in sets:
            for entry in each["spec"]["template"]["cliques"]:
                entry["spec"]["podSpec"]["containers"][0]["image"] = f"example/worker:{draw(some.integers(1, 2))}"
        steps.append(sets)
    return steps


@given(shared_histories(), some.data())
@cases(6)
def test_what_is_forecast_of_sets_that_share_a_domain_is_what_is_done(history: list[list[Body]], data: Any) -> None:
    async def story() -> None:
        async with rack(nodes=FULL) as cluster:
            for sets in history:
                for name in cluster.there(kinds.PODCLIQUESET).keys() - {each["metadata"]["name"] for each in sets}:
                    await cluster.delete(kinds.PODCLIQUESET, name)
                for each in sets:
                    await cluster.apply(each)
                if data.draw(some.booleans()):
                    await cut_short(cluster, data.draw)
                await assert_settles(cluster)

    anyio.run(story)
