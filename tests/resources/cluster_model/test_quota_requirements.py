"""Quota requirements: what containers of new pods have to say where a quota limits it."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from engine.forecast.forecast import Forecast, ForecastPass
from engine.observed import Observed, Slice, World, live
from engine.operation import Operation
from resources.cluster_model.quota_requirements import unsaid
from tests.resources.cluster_model.test_quota_shortages import GRAPH, NEW, TEAM, created, deployment, patched, quota

LACKING = "container main has no requests.memory"
SAYING = {"containers": [{"name": "main", "image": "x:2", "resources": {"requests": {"memory": "1"}}}]}


def lacking(operation: Operation, what: str = "requests.memory") -> list[str]:
    """What an operation of a graph with a Deployment of two pods lacks, in a namespace with a quota."""
    root = live({"apiVersion": "nvidia.com/v1alpha1", "kind": GRAPH.kind, "metadata": {"name": "llm", "namespace": "ml", "uid": "g"}})
    existing = deployment(2)
    world = World((Observed(root, {"all": Slice({existing.id: existing})}),))
    step = ForecastPass(timedelta(), {GRAPH: (operation,)})
    forecast = Forecast(datetime(2026, 1, 1, tzinfo=UTC), (step,), True, {}, {}, frozenset())
    listed = list(unsaid((quota(0, 10, what),), forecast, world))
    assert all((root, limit) == (GRAPH, TEAM) for root, limit, _, _ in listed)
    return [why for *_, why in listed]


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ({}, [LACKING]),
        ({"requests": {"memory": "1"}}, []),
        ({"requests": {"cpu": "1"}}, []),
        ({"limits": {"hugepages-2Mi": "2Mi"}}, []),
        ({"requests": {"nvidia.com/gpu": "1"}}, [LACKING]),
    ],
    ids=["nothing", "memory", "only cpu", "huge pages", "nothing that is heeded"],
)
def test_where_the_pod_as_a_whole_says_anything_containers_need_not(resources: dict[str, Any], expected: list[str]) -> None:
    assert lacking(created("p", **NEW, resources=resources)) == expected


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (patched(template={"spec": NEW}), [LACKING]),
        (patched(replicas=3), [LACKING]),
        (patched(replicas=1), []),
        (patched(template={"spec": SAYING}), []),
        (patched(template={"spec": NEW}, replicas=0), []),
        (patched(template={"spec": NEW}, paused=True), []),
    ],
    ids=["another template", "more pods", "fewer pods", "a template that says it", "no pods", "paused"],
)
def test_a_component_that_is_patched_creates_pods_too(operation: Operation, expected: list[str]) -> None:
    assert lacking(operation) == expected
