"""The law of extrapolation: a forecast that is extended from a sample is the one for which every replica is simulated."""

import copy
from collections import Counter
from collections.abc import Mapping
from datetime import timedelta
from math import inf
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as some
from msgspec.structs import replace

from engine.forecast.forecast import End, Forecast
from engine.forecast.simulation import forecast
from engine.guard import Limits
from engine.ids import ResourceId
from engine.intent import NOTHING, Intent
from engine.memo import Memo
from engine.observed import Live, World, live
from engine.operation import body_of
from engine.paths import overlay
from engine.proposal import propose
from engine.report.forecast_text import stages_of
from engine.tick import plan_all
from engine.verb import Verb
from engine.world import assemble
from providers.fabrics.nvidia.names import AUTO
from resources.base import kinds
from resources.cluster_model.cluster import ModelledCluster
from resources.preview.facts import FirstPass
from resources.preview.forecasting import forecast_of, from_sample, simulated
from resources.registry import BLUEPRINTS
from tests.builders import clique, group, podcliqueset
from tests.laws.cases import cases
from tests.laws.toy import CONFIGURATION, REFERENCES, START
from tests.mnnvl.sets import gpu
from tests.stories.forecasts import stable_name
from tests.stories.pods import running

Body = dict[str, Any]
ROOT = kinds.PODCLIQUESET.id("default", "demo")
ALL = 10**6
"""More passes than any of these forecasts has."""


@some.composite
def large_sets(draw: Any) -> Body:
    """A set of many small replicas."""
    with_domains = draw(some.booleans())
    make = gpu if with_domains else clique
    cliques = [make(f"c{number}", draw(some.integers(1, 2))) for number in range(draw(some.integers(1, 2)))]
    cliques[0]["spec"]["minAvailable"] = draw(some.integers(1, cliques[0]["spec"]["replicas"]))
    groups = (group("g", "c0", replicas=draw(some.integers(1, 2))),) if draw(some.integers(0, 2)) == 0 else ()
    manifest = podcliqueset("demo", *cliques, groups=groups, replicas=draw(some.integers(16, 40)))
    if with_domains:
        manifest["metadata"]["annotations"] = {AUTO: "enabled"}
    return manifest


@some.composite
def edits(draw: Any) -> Body:
    """Changes of a set: images, the number of replicas, the number of pods."""
    return {
        "images": draw(some.sampled_from((0, 1, 1, 2))),
        "replicas": draw(some.sampled_from((0, 0, -3, 3, 20))),
        "pods": draw(some.sampled_from((0, 0, 0, 1))),
    }


def edited(manifest: Body, edit: Body) -> Body:
    """The set after an edit."""
    result = copy.deepcopy(manifest)
    for entry in result["spec"]["template"]["cliques"][: edit["images"]]:
        entry["spec"]["podSpec"]["containers"][0]["image"] = "example/worker:2"
    result["spec"]["template"]["cliques"][0]["spec"]["replicas"] += edit["pods"]
    result["spec"]["replicas"] += edit["replicas"]
    return result


def world_of(objects: Mapping[ResourceId, Live]) -> World:
    """The world with these objects."""
    roots = [each for each in objects.values() if each.id.kind == ROOT.kind]
    references = [each for each in objects.values() if each.id.kind in REFERENCES]
    children = [each for each in objects.values() if each.id.kind != ROOT.kind and each.labels.get("app.kubernetes.io/managed-by")]
    return assemble(BLUEPRINTS, roots, children, {}, references=references)


def after(world: World, intent: Intent, work: float = inf) -> Mapping[ResourceId, Live]:
    """The objects at the end of a forecast, or when it has done so much work."""
    model = ModelledCluster(CONFIGURATION.fabrics)
    end = forecast(BLUEPRINTS, world, intent, START, CONFIGURATION, model, max_work=work, max_passes=ALL)
    assert end.objects is not None
    return end.objects


def disturbed(draw: Any, objects: Mapping[ResourceId, Live]) -> Mapping[ResourceId, Live]:
    """The objects after something has happened to some of them: pods that fail, are deleted, or are gone; a set that is deleted."""
    result = dict(objects)
    pods = sorted(id for id in objects if id.kind == "Pod")
    for id in draw(some.lists(some.sampled_from(pods), max_size=2, unique=True)):
        how = draw(some.sampled_from(("failing", "terminating", "gone")))
        if how == "gone":
            del result[id]
            continue
        failing = {"status": {"conditions": [{"type": "Ready", "status": "False"}], "containerStatuses": [FAILING]}}
        change = failing if how == "failing" else {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}
        result[id] = live(overlay(result[id].body, overlay(change, {"metadata": {**change.get("metadata", {}), "resourceVersion": "7"}})))
    return result


CRASHED = {"waiting": {"reason": "CrashLoopBackOff"}}
FAILING = {"name": "main", "ready": False, "state": CRASHED, "lastState": {"terminated": {"exitCode": 1}}}


@given(some.data())
@cases(6)
def test_an_extended_forecast_is_the_simulated_one(data: Any) -> None:
    first = data.draw(large_sets())
    if data.draw(some.integers(0, 4)) == 0:
        assert assert_alike(World(()), Intent((first,)))
        return
    second = edited(first, data.draw(edits()))
    objects = after(World(()), Intent((first,)))
    if data.draw(some.booleans()):
        objects = disturbed(data.draw, objects)
    if data.draw(some.integers(0, 2)) == 0:
        objects = after(world_of(objects), Intent((second,)), work=len(objects) * data.draw(some.integers(1, 40)))
        intent = data.draw(some.sampled_from((NOTHING, Intent((edited(second, data.draw(edits())),)))))
    else:
        intent = Intent((second,))

    assert_alike(world_of(objects), intent)


def test_the_update_of_a_thousand_pods_is_forecast_exactly() -> None:
    first = podcliqueset("demo", clique("c0", 2), replicas=500)
    second = edited(first, {"images": 1, "replicas": 0, "pods": 0})
    objects = after(World(()), Intent((first,)))

    end = from_sample(first_pass(world_of(objects), Intent((second,))))
    assert end is not None
    assert end.end_of(ROOT) is End.SETTLED
    assert end.effects[ROOT].counts == {"pods restarted": 1000}
    assert [(stage.times, stage.period) for stage in stages_of(end, ROOT)] == [(1000, 2)]
    assert {each.id for each in end.operations() if each.verb is Verb.DELETE} == {id for id in objects if id.kind == "Pod"}


def test_new_pods_have_the_names_that_they_will_have() -> None:
    first = podcliqueset("demo", clique("c0"), replicas=20)
    second = edited(first, {"images": 1, "replicas": 0, "pods": 0})
    world = world_of(after(World(()), Intent((first,))))
    first_of_all = first_pass(world, Intent((second,)))
    from_few, from_all = from_sample(first_of_all), simulated(first_of_all)

    assert from_few is not None
    assert created(from_few) == created(from_all)


@pytest.mark.parametrize("version", ["example/demo-9:2", "example/demo-12:2", "example/demo:2"])
def test_an_image_whose_name_looks_like_that_of_a_replica_stays_as_it_is(version: str) -> None:
    first = podcliqueset("demo", clique("c0", pod_spec=running(1)), replicas=20)
    second = podcliqueset("demo", clique("c0", pod_spec={"containers": [{"name": "main", "image": version}]}), replicas=20)
    intent = Intent((second,))

    end = forecast_of(replace(first_pass(world_of(after(World(()), Intent((first,)))), intent), passes=None))

    assert end is not None
    pods = created(end)
    assert len(pods) == 20
    assert {container["image"] for _, body in pods for container in body["spec"]["containers"]} == {version}


def created(forecast: Forecast) -> list[tuple[ResourceId, Body]]:
    """The pods that are created, in order, with their bodies."""
    return [(each.id, dict(body_of(each))) for each in forecast.operations() if each.verb is Verb.CREATE and each.id.kind == "Pod"]


def first_pass(world: World, intent: Intent) -> FirstPass:
    """The pass that a forecast begins with."""
    proposed = propose(world, intent.manifests)
    planned = plan_all(BLUEPRINTS, proposed, START, CONFIGURATION, Memo(), Limits())
    return FirstPass(START, proposed, planned, CONFIGURATION, intent, passes=ALL)


def assert_alike(world: World, intent: Intent) -> bool:
    """The extended forecast, if there is one, is the simulated one. Returns whether there is one."""
    first = first_pass(world, intent)
    from_few = from_sample(first)
    event(f"extended: {from_few is not None}")
    if from_few is None:
        return False
    from_all = simulated(first)

    assert passes_of(from_few) == passes_of(from_all)
    assert first_body(from_few) == first_body(from_all)
    assert [(stage.after, stage.times, stage.period) for stage in stages_of(from_few, ROOT)] == [
        (stage.after, stage.times, stage.period) for stage in stages_of(from_all, ROOT)
    ]
    assert from_few.effects == from_all.effects
    assert from_few.end_of(ROOT) is from_all.end_of(ROOT)
    assert from_few.assumptions == from_all.assumptions
    return True


def first_body(forecast: Forecast) -> Body | None:
    """The body of the first operation that is no status: an extended forecast has no statuses of the objects of sampled sets."""
    return next((dict(body_of(each)) for each in forecast.operations() if each.verb is not Verb.STATUS), None)


def passes_of(forecast: Forecast) -> dict[timedelta, Counter[tuple[str, str, str, str]]]:
    """The operations of each pass, of pods by clique; without statuses."""
    passes = {}
    for each in forecast.passes:
        operations = [operation for listed in each.operations.values() for operation in listed if operation.verb is not Verb.STATUS]
        if operations:
            passes[each.after] = Counter((str(one.verb), one.id.kind, stable_name(one), str(one.cause)) for one in operations)
    return passes
