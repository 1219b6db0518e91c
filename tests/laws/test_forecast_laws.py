"""The law of forecasts: what was forecast is what `sync` then does, by verb and object, none more and none fewer.

Each history has up to five forecasts: about 400 on the sandbox and 1,600 in the toy cluster. Parts let several processes share the work.
"""

import copy
from collections.abc import Iterator
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as some

from engine.forecast.simulation import forecast
from engine.intent import NOTHING
from engine.operation import Operation
from providers.fabrics.nvidia.names import AUTO, NAMED
from resources.admission.admit import admit
from resources.admission.request import Act, Request
from resources.base import kinds
from resources.cluster_model.cluster import ModelledCluster
from resources.registry import BLUEPRINTS
from tests.builders import clique, group, podcliqueset
from tests.laws.cases import cases
from tests.laws.toy import Toy
from tests.mnnvl.sets import gpu
from tests.stories.fabric import rack
from tests.stories.forecasts import forecast_then_sync, patched_fields, signature
from tests.stories.pods import running
from tests.stories.stage import Stage, stage

Body = dict[str, Any]
ROOT = kinds.PODCLIQUESET.id("default", "demo")
EDITS = 3
"""How often a set is edited."""


@some.composite
def histories(draw: Any) -> list[Body]:
    """A set of any shape, and how it looks after each of a few edits."""
    count = draw(some.integers(1, 3))
    cliques = [clique(f"c{number}", draw(some.integers(1, 3)), pod_spec=running(1)) for number in range(count)]
    for number, entry in enumerate(cliques):
        entry["spec"]["minAvailable"] = draw(some.integers(1, entry["spec"]["replicas"]))
        if number and draw(some.booleans()):
            entry["spec"]["startsAfter"] = [f"c{draw(some.integers(0, number - 1))}"]
    groups: tuple[Body, ...] = ()
    if members := draw(some.integers(0, count)):
        replicas = draw(some.integers(1, 3))
        names = [f"c{number}" for number in range(members)]
        groups = (group("g", *names, replicas=replicas, min_available=draw(some.integers(1, replicas))),)
    order = f"CliqueStartupType{draw(some.sampled_from(('AnyOrder', 'InOrder', 'Explicit')))}"
    manifest = podcliqueset("demo", *cliques, groups=groups, replicas=draw(some.integers(0, 3)), cliqueStartupType=order)
    return list(_edited(draw, manifest))


@some.composite
def fabric_histories(draw: Any) -> list[Body]:
    """The same for a set whose pods share domains: one of each replica, or one that it names."""
    mode = draw(some.sampled_from(("enabled", "disabled")))
    cliques = []
    for number in range(draw(some.integers(1, 3))):
        named = draw(some.sampled_from((None, "rack", "rack-$(GROVE_PCS_INDEX)"))) if mode == "disabled" else None
        make = gpu if number == 0 or draw(some.booleans()) else clique
        cliques.append(make(f"c{number}", draw(some.integers(1, 2)), annotations={NAMED: named} if named else {}))
    groups = (group("g", "c0", replicas=draw(some.integers(1, 2))),) if draw(some.booleans()) else ()
    manifest = podcliqueset("demo", *cliques, groups=groups, replicas=draw(some.integers(0, 2)))
    manifest["metadata"]["annotations"] = {AUTO: mode}
    return list(_edited(draw, manifest))


def _edited(draw: Any, manifest: Body) -> Iterator[Body]:
    """The manifest, and after each edit another one: images, numbers of replicas, numbers of pods."""
    yield manifest
    for version in range(2, 2 + EDITS):
        manifest = copy.deepcopy(manifest)
        for entry in manifest["spec"]["template"]["cliques"]:
            if draw(some.booleans()):
                entry["spec"]["podSpec"]["containers"][0]["image"] = f"example/worker:{version}"
            if draw(some.integers(0, 3)) == 0:
                entry["spec"]["replicas"] = draw(some.integers(entry["spec"].get("minAvailable") or 1, 4))
        if draw(some.booleans()):
            manifest["spec"]["replicas"] = draw(some.integers(0, 3))
        yield manifest


FULL = 60
"""More nodes than the largest of these sets has pods: each takes the GPUs of a node, and forecasts assume that there is room."""


async def live_through(cluster: Stage, history: list[Body]) -> None:
    """Apply one manifest after the other, as a user or with `sync -f` in turns, then delete the set or let us remove it.

    Every time it is as it was forecast.
    """
    for number, manifest in enumerate(history):
        existing = cluster.there(kinds.PODCLIQUESET).get("demo")
        act = Act.UPDATE if existing else Act.CREATE
        decision = admit(Request(act, ROOT, manifest, existing), cluster.setup)
        if not decision.allowed:
            continue
        if number % 2:
            (await forecast_then_sync(cluster, [decision.body or manifest])).assert_equal()
        else:
            await cluster.apply(manifest)
            (await forecast_then_sync(cluster)).assert_equal()
    if existing := cluster.there(kinds.PODCLIQUESET).get("demo"):
        if existing["spec"]["replicas"] % 2:
            await cluster.delete(kinds.PODCLIQUESET, "demo")
            (await forecast_then_sync(cluster)).assert_equal()
        else:
            (await forecast_then_sync(cluster, removals=cluster.removing(kinds.PODCLIQUESET, "demo"))).assert_equal()
    assert cluster.there(kinds.PODCLIQUESET) == {}


@pytest.mark.parametrize("part", range(2))
@given(history=histories())
@cases(8)
def test_forecast_everything_that_sync_does_and_nothing_else(part: int, history: list[Body]) -> None:
    async def story() -> None:
        async with stage(nodes=30) as cluster:
            await live_through(cluster, history)

    anyio.run(story)


@given(fabric_histories())
@cases(8)
def test_forecast_with_domains(history: list[Body]) -> None:
    async def story() -> None:
        async with rack(nodes=FULL) as cluster:
            await live_through(cluster, history)

    anyio.run(story)


class RecordingToy(Toy):
    """A toy cluster that records the calls."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[Operation] = []

    def call(self, operation: Operation) -> None:
        """Record the call and make it."""
        self.calls.append(operation)
        super().call(operation)


@pytest.mark.parametrize("part", range(4))
@given(history=histories())
@cases(12)
def test_forecast_in_a_toy_cluster(part: int, history: list[Body]) -> None:
    toy = RecordingToy()
    for number, manifest in enumerate(history):
        if number == 0:
            toy.put(manifest)
        else:
            generation = toy.objects[ROOT]["metadata"]["generation"]
            toy.write(ROOT, {"spec": manifest["spec"], "metadata": {"generation": generation + 1}})
        assert_forecast(toy)
    toy.delete(ROOT)
    assert_forecast(toy)
    assert ROOT not in toy.objects


def assert_forecast(toy: RecordingToy) -> None:
    """The forecast has the calls that are made until the cluster has settled."""
    toy.calls, toy.previous = [], None
    expected = forecast(BLUEPRINTS, toy.world(), NOTHING, toy.now, toy.configuration, ModelledCluster(toy.configuration.fabrics))
    toy.settle(400)

    assert signature(expected.operations()) == signature(toy.calls)
    assert patched_fields(expected.operations()) == patched_fields(toy.calls)
