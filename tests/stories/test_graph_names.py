"""A graph whose name leaves no room for names of pods: it comes up, is scaled, replaced and deleted like any other."""

import pytest

from engine.runtime.sync_report import Ending
from resources.base import kinds
from tests.stories.graphs import graph, service
from tests.stories.stage import stage
from tests.stories.test_graphs import REPLACED, leaves_nothing, ready, status

pytestmark = pytest.mark.anyio

NAME = "a-graph-whose-name-has-exactly-39-chars"
SHORT, SHORTER = "a-graph-whose-name-has-e-3f73", "a-graph-whose-name-3f73"
"""What becomes of it beside `decode` on two nodes, and beside `long-name`."""


async def test_a_graph_with_a_long_name_comes_up_is_scaled_replaced_and_deleted() -> None:
    decode = service(1, nodes=2)
    async with stage() as cluster:
        assert (await cluster.sync(manifests=[graph(NAME, decode=decode)])).ending is Ending.DONE
        assert list(cluster.there(kinds.PODCLIQUESET)) == [SHORT]
        assert ready(cluster, NAME) == ("successful", "All resources are ready")
        assert status(cluster, NAME)["services"]["decode"]["componentName"] == f"{SHORT}-0-decode"
        assert all(len(name) <= 63 for name in cluster.there(kinds.POD))

        assert (await cluster.sync(manifests=[graph(NAME, decode=service(2, nodes=2))])).ending is Ending.DONE
        assert len(cluster.there(kinds.POD)) == 4
        ours = cluster.start()
        await cluster.sync(ours)
        assert not ours.writes and not ours.refused

        more = graph(NAME, decode=decode, **{"long-name": service(1, nodes=2)})
        blocked = await cluster.sync(manifests=[more], wait=False)
        (wait,) = {wait for plan in blocked.plans for wait in plan.blocked}
        assert wait.why == f"PodCliqueSet {SHORT} must be replaced, which restarts all its 4 pods: its name is to be {SHORTER}"
        assert list(cluster.there(kinds.PODCLIQUESET)) == [SHORT]

        allowed = {**more, "metadata": {**more["metadata"], "annotations": REPLACED}}
        assert (await cluster.sync(manifests=[allowed])).ending is Ending.DONE
        assert list(cluster.there(kinds.PODCLIQUESET)) == [SHORTER]
        assert len(cluster.there(kinds.POD)) == 4

        none = {name: service(0, nodes=2) for name in ("decode", "long-name")}
        assert (await cluster.sync(manifests=[graph(NAME, REPLACED, **none)])).ending is Ending.DONE
        assert not cluster.there(kinds.PODCLIQUESET)
        assert status(cluster, NAME)["services"]["decode"]["componentName"] == f"{SHORTER}-0-decode"

        await cluster.delete(kinds.DYNAMO_GRAPH, NAME)
        await cluster.sync()
        assert await leaves_nothing(cluster)


async def test_a_graph_whose_names_would_meet_with_more_replicas_runs_and_is_edited() -> None:
    async with stage() as cluster:
        for replicas in (2, 3):
            # The leaders of `g` would have the name of the other service if it had a replica 5.
            manifest = graph(g=service(replicas, nodes=2))
            manifest["spec"]["services"]["g-5-g-ldr"] = service()
            assert (await cluster.sync(manifests=[manifest])).ending is Ending.DONE
            assert ready(cluster, "chat") == ("successful", "All resources are ready")
            assert len(cluster.there(kinds.POD)) == 2 * replicas + 1
