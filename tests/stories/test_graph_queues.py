"""Queues of graphs: with KAI nothing is created before the queue exists; with Volcano the graph names the queue of its set."""

import pytest

from engine.runtime.sync_report import Ending
from providers.registry import SCHEDULERS
from resources.base import kinds
from resources.base.labels import POD_FORM
from resources.ports.configuration import Configuration
from tests.stories.graph_cluster import KAI_SETUP
from tests.stories.graphs import graph
from tests.stories.stage import DEFAULT, Stage, stage
from tests.stories.test_graphs import ready

pytestmark = pytest.mark.anyio

VOLCANO_QUEUE = "nvidia.com/volcano-queue"
VOLCANO_SETUP = Configuration({DEFAULT: SCHEDULERS[DEFAULT], "volcano": SCHEDULERS["volcano"]}, DEFAULT)


@pytest.mark.parametrize("addons", [(), ("kai",)], ids=["without KAI", "with KAI"])
async def test_a_queue_that_does_not_exist_is_named_in_the_status_whether_or_not_kai_is_served(addons: tuple[str, ...]) -> None:
    async with stage(addons=addons) as cluster:
        cluster.setup = KAI_SETUP
        report = await cluster.sync(manifests=[graph(annotations={"nvidia.com/kai-scheduler-queue": "later"})], wait=False)

        state, message = ready(cluster)
        assert (report.ending, state) == (Ending.STUCK, "failed")
        assert "queue 'later' not found in cluster" in message
        assert not cluster.there(kinds.PODCLIQUESET)


def schedulers(cluster: Stage) -> set[str]:
    """The schedulers of all pods."""
    return {pod["spec"].get("schedulerName", "") for pod in cluster.there(kinds.POD).values()}


async def test_volcano_schedules_a_graph_in_the_queue_that_it_names() -> None:
    async with stage(addons=("volcano",)) as cluster:
        cluster.setup = VOLCANO_SETUP
        queue = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "team"}, "status": {"state": "Open"}}
        await cluster.kubectl.create(kinds.VOLCANO_QUEUE, "", queue)

        report = await cluster.sync(manifests=[graph(annotations={VOLCANO_QUEUE: "team"})])

        assert report.ending is Ending.DONE
        assert schedulers(cluster) == {"volcano"}
        assert {group["spec"]["queue"] for group in cluster.there(kinds.VOLCANO_POD_GROUP).values()} == {"team"}


async def test_a_graph_that_an_earlier_version_made_keeps_its_scheduler() -> None:
    async with stage(addons=("volcano",)) as cluster:
        cluster.setup = VOLCANO_SETUP
        made = graph(annotations={VOLCANO_QUEUE: "team", POD_FORM: "3"})
        await cluster.sync(manifests=[made])
        before = set(cluster.there(kinds.POD))

        report = await cluster.sync(manifests=[graph(annotations={VOLCANO_QUEUE: "team"})])

        assert report.ending is Ending.DONE
        assert set(cluster.there(kinds.POD)) == before
        assert "volcano" not in schedulers(cluster)
