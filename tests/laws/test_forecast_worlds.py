"""The law of forecasts in worlds that are rare: workloads that other controllers run, and deletions that cascade otherwise."""

from typing import Any

import pytest

from engine.forecast.forecast import End
from engine.runtime.sync_report import Ending
from resources.base import kinds
from tests.builders import clique, group, podcliqueset
from tests.stories.forecasts import Comparison, forecast_then_sync
from tests.stories.graphs import graph, service
from tests.stories.pods import running
from tests.stories.stage import stage

pytestmark = pytest.mark.anyio

GRAPH = kinds.DYNAMO_GRAPH.id("default", "chat")
NO_GROVE = {"nvidia.com/enable-grove": "false"}


def frontend(replicas: int, script: str = "python3 -m dynamo.frontend") -> dict[str, Any]:
    """A service on one node."""
    return service(replicas, componentType="frontend", script=script, resources={})


def demo() -> dict[str, Any]:
    """A set of two replicas, each with a clique and a scaling group."""
    cliques = [clique(name, 2, pod_spec=running(1)) for name in ("a", "b")]
    return podcliqueset("demo", *cliques, groups=(group("g", "b", replicas=2),), replicas=2)


def assert_settles(comparison: Comparison) -> None:
    """Exactly what was forecast was done, and everything became ready, as forecast."""
    comparison.assert_equal()
    assert comparison.ending is Ending.DONE
    assert comparison.forecast is not None and comparison.forecast.end_of(GRAPH) is End.SETTLED


@pytest.mark.parametrize("addons", [(), ("lws", "volcano")], ids=["deployments", "leader-worker sets"])
async def test_a_graph_without_grove_does_what_was_forecast(addons: tuple[str, ...]) -> None:
    services: dict[str, Any] = {"decode": service(2, nodes=2)} if addons else {}
    async with stage(grove=False, addons=addons) as cluster:
        for manifest in (
            graph(Frontend=frontend(1), **services),
            graph(Frontend=frontend(2, "python3 -m dynamo.frontend --verbose"), **services),
            graph(Frontend=frontend(0)),
        ):
            assert_settles(await forecast_then_sync(cluster, [manifest]))

        await cluster.delete(kinds.DYNAMO_GRAPH, "chat")
        assert_settles(await forecast_then_sync(cluster))
        assert not cluster.there(kinds.DYNAMO_GRAPH)


async def test_a_graph_that_changes_its_orchestrator_does_what_was_forecast() -> None:
    async with stage(addons=("lws", "volcano")) as cluster:
        for annotations in ({}, NO_GROVE, {"nvidia.com/enable-grove": "true"}):
            allowed = {**annotations, "engine.grove.io/allow-replace": "true"}
            assert_settles(await forecast_then_sync(cluster, [graph(annotations=allowed)]))


@pytest.mark.parametrize(
    ("failed", "end"),
    [
        ({"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate"}, End.STUCK),
        ({"type": "Progressing", "status": "False", "reason": "ReplicaSetCreateError"}, End.STUCK),
        ({"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}, End.SETTLED),
        ({"type": "Progressing", "status": "False", "reason": "GroupsProgressing"}, End.SETTLED),
    ],
    ids=lambda each: each.get("reason") if isinstance(each, dict) else "",
)
async def test_a_deployment_that_is_refused_something_stays_so_and_one_that_is_late_goes_on(failed: dict[str, str], end: End) -> None:
    async with stage(grove=False, without=("deployments",)) as cluster:
        await cluster.sync(manifests=[graph(Frontend=frontend(1))], wait=False)
        await cluster.kubectl.patch(
            kinds.DEPLOYMENT, "default", "chat-frontend", {"status": {"conditions": [failed]}}, how="merge", subresource="status"
        )

        comparison = await forecast_then_sync(cluster)
        assert comparison.forecast is not None and comparison.forecast.end_of(GRAPH) is end


@pytest.mark.parametrize("propagation", ["Foreground", "Orphan"])
@pytest.mark.parametrize("kind", [kinds.PODCLIQUESET, kinds.DYNAMO_GRAPH], ids=lambda kind: kind.name)
async def test_a_deletion_with_another_cascade_does_what_was_forecast(kind: Any, propagation: str) -> None:
    async with stage(nodes=30) as cluster:
        manifest = demo() if kind == kinds.PODCLIQUESET else graph()
        await cluster.sync(manifests=[manifest])
        await cluster.delete(kind, manifest["metadata"]["name"], propagation=propagation)
        if propagation == "Foreground":
            await cluster.clock.advance(0.01)  # Whether the garbage collector or the engine deletes an object is not forecast.

        (await forecast_then_sync(cluster)).assert_equal()
        assert not cluster.there(kind)
