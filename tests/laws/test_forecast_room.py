"""The law of forecasts in clusters with too few nodes: what is forecast, settled or not, is what `sync` ends with."""

import copy
from collections.abc import Iterator
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as some

from engine.forecast.forecast import End, Forecast
from engine.runtime.sync_report import Ending
from enginectl.actions.planning import first_pass_of
from providers.fabrics.nvidia.names import NAMED
from resources.base import kinds
from resources.preview.facts import NO_FACTS
from resources.preview.forecasting import forecast_of, needs
from resources.preview.shown import shown
from tests.builders import applying, clique, podcliqueset
from tests.laws.cases import cases
from tests.mnnvl.sets import OPTED_OUT, gpu
from tests.stories.fabric import rack
from tests.stories.forecasts import comparison
from tests.stories.pods import running
from tests.stories.room import node_facts
from tests.stories.stage import Stage, stage

pytestmark = pytest.mark.anyio

Body = dict[str, Any]
ROOT = kinds.PODCLIQUESET.id("default", "demo")
ZONE = "topology.kubernetes.io/zone"
CAPACITY = {"cpu": "4", "memory": "64Gi", "pods": "20"}


def needing(cpu: int, version: int = 1, **fields: Any) -> Body:
    """A pod spec that requests so many CPUs."""
    return {**running(version, resources={"requests": {"cpu": str(cpu)}}), **fields}


@some.composite
def histories(draw: Any) -> list[Body]:
    """A set whose pods are all of one size, and how it looks after each of a few edits; sometimes it asks for a zone that no node has."""
    cpu = draw(some.integers(1, 4))
    cliques = [clique(name, draw(some.integers(1, 3)), pod_spec=needing(cpu)) for name in ("a", "b")[: draw(some.integers(1, 2))]]
    manifest = podcliqueset("demo", *cliques, replicas=draw(some.integers(1, 2)))
    return list(_edited(draw, manifest))


def _edited(draw: Any, manifest: Body) -> Iterator[Body]:
    yield manifest
    for version in (2, 3):
        manifest = copy.deepcopy(manifest)
        for entry in manifest["spec"]["template"]["cliques"]:
            if draw(some.booleans()):
                entry["spec"]["podSpec"]["containers"][0]["image"] = f"example/worker:{version}"
            if draw(some.integers(0, 4)) == 0:
                entry["spec"]["podSpec"]["nodeSelector"] = {ZONE: draw(some.sampled_from(("zone-0", "nowhere")))}
        if draw(some.booleans()):
            manifest["spec"]["replicas"] = draw(some.integers(1, 3))
        yield manifest


async def forecast_in(cluster: Stage, manifest: Body) -> Forecast | None:
    """What a preview forecasts that knows the nodes; None if nothing follows."""
    first = first_pass_of(await cluster.look([manifest]), applying([manifest]))
    forecast = forecast_of(first)
    facts = node_facts(cluster) if needs(first, forecast).room is not None else NO_FACTS
    return shown(first, forecast, facts).forecast


async def assert_ends_as_forecast(cluster: Stage, manifest: Body) -> End:
    """A sync settles if and only if that was forecast; either way it does exactly what was forecast."""
    expected = await forecast_in(cluster, manifest)
    report = await cluster.sync(manifests=[manifest], patience=120.0)
    end = expected.end_of(ROOT) if expected is not None else End.SETTLED
    assert (end is End.SETTLED) is (report.ending is Ending.DONE)
    comparison(expected, report).assert_equal()
    return end


@given(histories(), some.integers(1, 4), some.lists(some.integers(0, 20), min_size=3, max_size=3))
@cases(10)
def test_a_set_settles_if_and_only_if_that_is_forecast(history: list[Body], nodes: int, cuts: list[int]) -> None:
    async def story() -> None:
        async with stage(nodes=nodes, capacity=CAPACITY) as cluster:
            for manifest, quarters in zip(history, cuts, strict=True):
                if quarters > 10:  # What is forecast in the middle of it is what is left of it.
                    await cluster.sync(manifests=[manifest], patience=(quarters - 10) / 4)
                await assert_ends_as_forecast(cluster, manifest)

    anyio.run(story)


async def test_a_selector_that_no_node_matches_stops_the_update_at_the_first_replica() -> None:
    async with stage(nodes=4, capacity=CAPACITY) as cluster:
        manifest = podcliqueset("demo", clique("a", 1, pod_spec=needing(1)), replicas=3)
        await cluster.sync(manifests=[manifest])
        changed = podcliqueset("demo", clique("a", 1, pod_spec=needing(1, nodeSelector={ZONE: "nowhere"})), replicas=3)

        forecast = await forecast_in(cluster, changed)
        report = await cluster.sync(manifests=[changed], patience=120.0)

        comparison(forecast, report).assert_equal()
        assert forecast is not None and forecast.end_of(ROOT) is End.STUCK and report.ending is Ending.TIMED_OUT
        assert forecast.effects[ROOT].counts["pods restarted"] == 1


async def test_a_scale_in_frees_the_room_that_a_pod_waits_for() -> None:
    async with stage(nodes=2, capacity=CAPACITY) as cluster:
        manifest = podcliqueset("demo", clique("a", 1, pod_spec=needing(4)), replicas=3)
        assert await assert_ends_as_forecast(cluster, manifest) is End.STUCK

        for replicas in (2, 3, 1):
            manifest = {**manifest, "spec": {**manifest["spec"], "replicas": replicas}}
            assert (await assert_ends_as_forecast(cluster, manifest) is End.SETTLED) is (replicas < 3)


async def test_a_scale_in_frees_the_room_of_a_later_replica_for_the_pod_of_an_earlier_one() -> None:
    async with stage(nodes=2, capacity=CAPACITY) as cluster:
        manifest = podcliqueset("demo", clique("a", 1, pod_spec=needing(4)), replicas=3)
        await cluster.sync(manifests=[manifest], patience=30.0)
        if waiting(cluster).startswith("demo-2"):
            (first,) = (name for name in cluster.there(kinds.POD) if name.startswith("demo-0"))
            await cluster.kubectl.delete(kinds.POD, "default", first, grace=0)
            await cluster.sync(manifests=[manifest], patience=30.0)
        assert not waiting(cluster).startswith("demo-2")

        assert await assert_ends_as_forecast(cluster, {**manifest, "spec": {**manifest["spec"], "replicas": 2}}) is End.SETTLED


def waiting(cluster: Stage) -> str:
    """The name of the only pod without a node."""
    (name,) = (name for name, body in cluster.there(kinds.POD).items() if not body["spec"].get("nodeName"))
    return name


async def test_many_replicas_are_counted_without_simulating_each_of_them() -> None:
    async with stage(nodes=20, capacity=CAPACITY) as cluster:
        for replicas, end in ((20, End.SETTLED), (21, End.STUCK), (18, End.SETTLED)):
            manifest = podcliqueset("demo", clique("a", 1, pod_spec=needing(4)), replicas=replicas)
            assert await assert_ends_as_forecast(cluster, manifest) is end


async def test_a_named_domain_needs_a_node_for_each_pod() -> None:
    async with rack(nodes=6) as cluster:
        for replicas, end in ((7, End.STUCK), (6, End.SETTLED), (7, End.STUCK), (5, End.SETTLED)):
            manifest = podcliqueset("demo", gpu("a", 1, annotations={NAMED: "rack"}), replicas=replicas)
            manifest["metadata"]["annotations"] = dict(OPTED_OUT)
            assert await assert_ends_as_forecast(cluster, manifest) is end
