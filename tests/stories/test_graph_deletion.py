"""Deletion of graphs: nothing is left however a graph is deleted, and `--cascade=orphan` leaves everything as it is."""

import pytest

from engine.runtime.sync_report import Ending
from resources.base import kinds
from tests.stories.graphs import graph
from tests.stories.stage import stage

pytestmark = pytest.mark.anyio

PATHS = [{"nvidia.com/enable-grove": "true"}, {"nvidia.com/enable-grove": "false"}]
MANNERS = ["Background", "Foreground"]
CREATED = (
    kinds.POD,
    kinds.SERVICE,
    kinds.PODCLIQUESET,
    kinds.PODCLIQUE,
    kinds.PODGANG,
    kinds.LEADER_WORKER_SET,
    kinds.VOLCANO_POD_GROUP,
    kinds.DEPLOYMENT,
)


@pytest.mark.parametrize("annotations", PATHS, ids=["grove", "components"])
@pytest.mark.parametrize("manner", MANNERS)
async def test_one_sync_ends_when_a_deleted_graph_and_what_it_had_are_gone(annotations: dict[str, str], manner: str) -> None:
    async with stage(addons=("lws", "volcano")) as cluster:
        await cluster.sync(manifests=[graph(annotations=annotations)])
        await cluster.delete(kinds.DYNAMO_GRAPH, "chat", manner)
        await cluster.clock.advance(1)

        assert (await cluster.sync()).ending is Ending.DONE

        await cluster.clock.advance(60)
        assert not await cluster.names(kinds.DYNAMO_GRAPH, *CREATED)


async def test_a_sync_does_not_end_before_what_others_still_keep_is_gone() -> None:
    async with stage() as cluster:
        await cluster.sync(manifests=[graph()])
        kept = {"metadata": {"finalizers": ["example.com/kept"]}}
        await cluster.kubectl.patch(kinds.SERVICE, "default", "chat-frontend", kept)
        await cluster.delete(kinds.DYNAMO_GRAPH, "chat")

        report = await cluster.sync(patience=30)
        assert (report.ending, [str(wait.id) for wait in report.pending]) == (Ending.TIMED_OUT, ["Service/default/chat-frontend"])

        await cluster.kubectl.patch(kinds.SERVICE, "default", "chat-frontend", {"metadata": {"finalizers": None}})
        assert (await cluster.sync()).ending is Ending.DONE
        assert not cluster.there(kinds.DYNAMO_GRAPH)


@pytest.mark.parametrize("annotations", PATHS, ids=["grove", "components"])
async def test_what_an_orphaned_graph_had_stays_as_it_is(annotations: dict[str, str]) -> None:
    async with stage(addons=("lws", "volcano"), without=("garbage",)) as cluster:
        await cluster.sync(manifests=[graph(annotations=annotations)])
        before = {kind.name: set(cluster.there(kind)) for kind in CREATED}
        await cluster.delete(kinds.DYNAMO_GRAPH, "chat", "Orphan")

        await cluster.sync(wait=False)
        assert {kind.name: set(cluster.there(kind)) for kind in CREATED} == before

        async with cluster.playing("garbage"):
            await cluster.clock.advance(5)
            await cluster.sync(wait=False)
            await cluster.clock.advance(60)
        assert {kind.name: set(cluster.there(kind)) for kind in CREATED} == before
        assert not cluster.there(kinds.DYNAMO_GRAPH)
