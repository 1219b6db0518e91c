"""Queues of graphs: where KAI is the default scheduler, nothing is created before the queue exists, and the status names it."""

import pytest

from engine.runtime.sync_report import Ending
from resources.base import kinds
from tests.stories.graph_cluster import KAI_SETUP
from tests.stories.graphs import graph
from tests.stories.stage import stage
from tests.stories.test_graphs import ready

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("addons", [(), ("kai",)], ids=["without KAI", "with KAI"])
async def test_a_queue_that_does_not_exist_is_named_in_the_status_whether_or_not_kai_is_served(addons: tuple[str, ...]) -> None:
    async with stage(addons=addons) as cluster:
        cluster.setup = KAI_SETUP
        report = await cluster.sync(manifests=[graph(annotations={"nvidia.com/kai-scheduler-queue": "later"})], wait=False)

        state, message = ready(cluster)
        assert (report.ending, state) == (Ending.STUCK, "failed")
        assert "queue 'later' not found in cluster" in message
        assert not cluster.there(kinds.PODCLIQUESET)
