"""Needs: which facts a preview reads depends on what follows the first pass."""

from collections.abc import Iterable
from typing import Any

import pytest
from msgspec.structs import replace

from engine import tick
from engine.forecast.cluster_model import Assumption
from engine.forecast.simulation import existing
from engine.guard import Limits
from engine.intent import Intent
from engine.memo import Memo
from engine.observed import Live, World, live
from engine.proposal import propose
from engine.tick import plan_all
from engine.world import assemble
from providers.fabrics.nvidia.fabric import Nvidia
from resources.base import kinds
from resources.cluster_model.pods import is_component
from resources.preview.facts import FirstPass
from resources.preview.forecasting import Needs, forecast_of, needs
from resources.registry import BLUEPRINTS
from tests.builders import clique, podcliqueset
from tests.counting import counted
from tests.laws.toy import CONFIGURATION, START
from tests.mnnvl.sets import auto
from tests.stories.graphs import graph, service

SELECTIVE = {"nodeSelector": {"zone": "a"}, "containers": [{"name": "main", "image": "nginx:1"}]}


def first_pass(world: World, *manifests: dict[str, Any]) -> FirstPass:
    """The first pass over a world with these manifests."""
    proposed, memo = propose(world, manifests), Memo()
    planned = plan_all(BLUEPRINTS, proposed, START, CONFIGURATION, memo, Limits())
    return FirstPass(START, proposed, planned, CONFIGURATION, Intent(manifests, memo=memo))


def foreseen(first: FirstPass) -> Needs:
    """What a preview with a forecast needs."""
    return needs(first, forecast_of(first))


def world_after(first: FirstPass) -> World:
    """What exists when everything that was forecast is done."""
    forecast = forecast_of(first)
    assert forecast is not None
    return forecast.end


def listed(lives: Iterable[Live]) -> World:
    """The world of these objects, as it is assembled from lists."""
    of_root: dict[bool, list[Live]] = {True: [], False: []}
    for each in lives:
        of_root[each.id.kind in (kinds.PODCLIQUESET.name, kinds.DYNAMO_GRAPH.name)].append(each)
    return assemble(BLUEPRINTS, of_root[True], of_root[False], {})


def demo(replicas: int) -> dict[str, Any]:
    """A set with one pod in each replica."""
    return podcliqueset("demo", clique("a", pod_spec=SELECTIVE), replicas=replicas)


def test_new_pods_need_quotas_and_room() -> None:
    needed = foreseen(first_pass(World(()), demo(2)))

    assert needed.quotas == ("default",) and needed.fabrics == ()
    assert needed.room is not None and needed.room.known == frozenset()
    assert [spec["nodeSelector"] for spec in needed.room.specs] == [{"zone": "a"}] * 2


def test_without_a_forecast_neither_quotas_nor_room_matter() -> None:
    needed = needs(first_pass(World(()), demo(2)))

    assert (needed.quotas, needed.room) == ((), None)


def test_a_forecast_ends_when_its_work_is_used_up() -> None:
    first = first_pass(World(()), demo(2))

    ends = [made.is_finished for work in (1, first.work) if (made := forecast_of(replace(first, work=work))) is not None]

    assert ends == [False, True]


def test_workloads_that_do_not_change_are_not_planned_again_for_a_forecast() -> None:
    beside = podcliqueset("beside", clique("a", pod_spec=SELECTIVE))
    alone, both = (listed(existing(world_after(first_pass(World(()), *bodies)))) for bodies in ([demo(1)], [demo(1), beside]))

    assert plans_for_a_forecast(first_pass(both, demo(2))) == plans_for_a_forecast(first_pass(alone, demo(2)))


def plans_for_a_forecast(first: FirstPass) -> int:
    """How many plans a forecast computes after the first pass."""
    with counted({"planned": tick._plan_of}) as counts:
        forecast = forecast_of(first)
    assert forecast is not None and forecast.passes and forecast.is_finished
    return counts["planned"]


def test_an_update_counts_the_pods_that_exist_once() -> None:
    world = world_after(first_pass(World(()), demo(1)))
    pods = {live.uid for root in world.roots for live in root.lives() if live.id.kind == kinds.POD.name}

    needed = foreseen(first_pass(world, demo(2)))

    assert needed.room is not None and len(needed.room.specs) == 1
    assert needed.room.known == pods and len(pods) == 1


@pytest.mark.parametrize("replicas", [0, 2])
def test_what_creates_no_pod_needs_no_room(replicas: int) -> None:
    world = world_after(first_pass(World(()), demo(2)))

    assert foreseen(first_pass(world, demo(replicas))).room is None


def test_components_in_namespaces_in_which_nothing_happens_need_no_room() -> None:
    beside = graph("chat", {"nvidia.com/enable-grove": "false"}, Frontend=service(1, componentType="frontend"))
    beside["metadata"]["namespace"] = "other"
    settled = [each for body in (demo(1), beside) for each in existing(world_after(first_pass(World(()), body)))]
    lives = [refused(each) if each.id.kind == kinds.POD.name else each for each in settled]
    first = first_pass(listed(lives))
    forecast = forecast_of(first)

    assert any(is_component(each.id) for each in lives)
    assert forecast is not None and Assumption.FAILURES_STAY in forecast.assumptions
    assert needs(first, forecast).room is None


def refused(pod: Live) -> Live:
    """The pod, for which the scheduler has had no node for long."""
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "lastTransitionTime": "2020-01-01T00:00:00Z"}
    spec = {key: value for key, value in pod.body["spec"].items() if key != "nodeName"}
    metadata = {**pod.body["metadata"], "uid": "not-of-a-forecast"}
    return live({**pod.body, "metadata": metadata, "spec": spec, "status": {"phase": "Pending", "conditions": [condition]}})


def test_nodes_of_a_fabric_matter_only_if_a_set_requests_domains_of_it() -> None:
    with_domains = foreseen(first_pass(World(()), auto(1)))

    assert [fabric.kind for fabric in with_domains.fabrics] == [Nvidia().kind] and with_domains.has_islands
    assert not foreseen(first_pass(World(()), demo(1))).has_islands
