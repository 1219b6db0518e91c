"""Sets, groups and graphs that come and go under their names: each time they are ready as soon as the first time, and as forecast."""

import pytest

from engine.runtime.sync_report import Ending
from resources.base import kinds
from tests.builders import clique, podcliqueset
from tests.stories.forecasts import forecast_then_sync
from tests.stories.graphs import graph
from tests.stories.stage import Stage, stage

pytestmark = pytest.mark.anyio


async def test_a_set_that_is_created_again_and_again_under_its_name_is_ready_as_soon_each_time() -> None:
    took = []
    async with stage() as cluster, cluster.running():
        for _ in range(8):
            began = cluster.clock.monotonic()
            await cluster.apply(podcliqueset("ci", clique("fe", 2), clique("wkr", 2)))
            await cluster.until(lambda: _available(cluster, "ci") == 1)
            took.append(cluster.clock.monotonic() - began)
            await cluster.delete(kinds.PODCLIQUESET, "ci")
            await cluster.until(lambda: "ci" not in cluster.there(kinds.PODCLIQUESET) and not cluster.there(kinds.POD))

    assert max(took) <= took[0] + 0.5


async def test_a_group_that_is_scaled_out_and_in_again_and_again_is_ready_as_soon_each_time() -> None:
    group = {"name": "grp", "replicas": 1, "minAvailable": 1, "cliqueNames": ["wkr"]}
    took = []
    async with stage() as cluster, cluster.running():
        await cluster.apply(podcliqueset("flap", clique("wkr", 2), groups=(group,)))
        await cluster.until(lambda: _available(cluster, "flap") == 1)
        for _ in range(8):
            began = cluster.clock.monotonic()
            await cluster.scale(kinds.SCALING_GROUP, "flap-0-grp", 2)
            await cluster.until(
                lambda: (cluster.there(kinds.PODGANG).get("flap-0-grp-0", {}).get("status") or {}).get("phase") == "Running"
            )
            took.append(cluster.clock.monotonic() - began)
            await cluster.scale(kinds.SCALING_GROUP, "flap-0-grp", 1)
            await cluster.until(lambda: "flap-0-grp-0" not in cluster.there(kinds.PODGANG))

    assert max(took) <= took[0] + 0.5


async def test_a_graph_that_is_created_again_while_the_set_of_the_earlier_one_ends_does_what_was_forecast() -> None:
    async with stage() as cluster:
        await cluster.apply(graph())
        await cluster.sync()
        await cluster.kubectl.patch(kinds.DYNAMO_GRAPH, "default", "chat", {"metadata": {"finalizers": None}})
        await cluster.delete(kinds.DYNAMO_GRAPH, "chat")
        await cluster.apply(graph())
        await cluster.until(lambda: "deletionTimestamp" in cluster.there(kinds.PODCLIQUESET)["chat"]["metadata"])

        comparison = await forecast_then_sync(cluster)

        comparison.assert_equal()
        assert comparison.ending is Ending.DONE


def _available(cluster: Stage, name: str) -> int:
    """How many replicas of the set are available, as its status says."""
    found = cluster.there(kinds.PODCLIQUESET).get(name, {})
    return int((found.get("status") or {}).get("availableReplicas", 0))
