"""Removals: roots that a command removes go with all that they have, as it was forecast, and none is touched too early."""

from typing import Any

import pytest
from msgspec.structs import replace

from engine.errors import ClusterError, Forbidden
from engine.forecast.forecast import End
from engine.ids import Kind
from engine.resource import Body
from engine.runtime.sync_report import Ending
from engine.verb import Verb
from resources.base import kinds, labels
from tests.builders import clique, group, podcliqueset
from tests.stories.forecasts import forecast_then_sync
from tests.stories.graphs import graph
from tests.stories.process import Call
from tests.stories.stage import Stage, stage

pytestmark = pytest.mark.anyio

SET, GRAPH = kinds.PODCLIQUESET, kinds.DYNAMO_GRAPH
BINDING: Body = {
    "apiVersion": "grove.io/v1alpha1",
    "kind": "ClusterTopologyBinding",
    "metadata": {"name": "racks"},
    "spec": {"levels": [{"domain": "rack", "key": "example.com/rack"}]},
}


def workload(name: str = "llm", **template: Any) -> dict[str, Any]:
    """A set with a clique that stands alone and a scaling group."""
    return podcliqueset(name, clique("a", 2), clique("b"), groups=(group("g", "b", replicas=2),), **template)


@pytest.mark.parametrize(("kind", "manifest"), [(SET, workload()), (GRAPH, graph())], ids=["set", "graph"])
async def test_a_removed_root_goes_with_everything_it_has_as_it_was_forecast(kind: Kind, manifest: dict[str, Any]) -> None:
    async with stage(nodes=30) as cluster:
        await cluster.sync(manifests=[manifest])
        name = manifest["metadata"]["name"]
        removals = cluster.removing(kind, name)

        comparison = await forecast_then_sync(cluster, removals=removals)

        comparison.assert_equal()
        assert comparison.ending is Ending.DONE
        assert comparison.forecast is not None and comparison.forecast.end_of(kind.id("default", name)) is End.SETTLED
        first = next(comparison.forecast.operations())
        assert (first.verb, first.id.name, first.why, first.intended) == (Verb.DELETE, name, "asked for", True)
        assert not await cluster.names()


async def test_a_removed_binding_is_gone_at_once() -> None:
    async with stage() as cluster:
        await cluster.sync(manifests=[BINDING])

        comparison = await forecast_then_sync(cluster, removals=cluster.removing(kinds.TOPOLOGY_BINDING, "racks"))

        comparison.assert_equal()
        assert not cluster.there(kinds.TOPOLOGY_BINDING)


async def test_only_what_is_removed_goes() -> None:
    async with stage() as cluster:
        await cluster.sync(manifests=[workload("gone"), workload("kept")])

        await cluster.sync(removals=cluster.removing(SET, "gone"))

        assert list(cluster.there(SET)) == ["kept"]
        assert len(cluster.there(kinds.POD)) == 4


async def test_a_root_that_was_made_anew_since_it_was_judged_stays() -> None:
    async with stage() as cluster:
        await cluster.sync(manifests=[workload()])
        removals = cluster.removing(SET, "llm")
        other = {id: replace(removal, uid="another") for id, removal in removals.items()}

        report = await cluster.sync(removals=other)

        assert (report.ending, list(cluster.there(SET))) == (Ending.DONE, ["llm"])


async def test_nothing_is_removed_while_a_manifest_cannot_be_applied() -> None:
    async with stage() as cluster:
        await cluster.sync(manifests=[workload("gone")])
        removals = cluster.removing(SET, "gone", after_manifests=True)
        ours = cluster.start()

        def refuse(call: Call) -> ClusterError | None:
            return Forbidden("no rights") if call[:2] == ("create", SET) else None

        ours.refuses = refuse
        report = await cluster.sync(ours, manifests=[workload("new")], removals=removals)

        assert report.ending is Ending.FAILED
        assert list(cluster.there(SET)) == ["gone"]
        assert cluster.there(SET)["gone"]["metadata"].get("deletionTimestamp") is None
        later = [wait.why for plan in report.plans for wait in plan.later]
        assert later == ["asked for; it is deleted once all manifests are applied, PodCliqueSet/default/new is not"]


async def test_what_is_removed_goes_after_the_manifests_are_applied_as_it_was_forecast() -> None:
    async with stage(nodes=30) as cluster:
        await cluster.sync(manifests=[workload("old")])
        removals = cluster.removing(SET, "old", after_manifests=True)

        comparison = await forecast_then_sync(cluster, [workload("new")], removals)

        comparison.assert_equal()
        assert comparison.forecast is not None
        written = [(each.verb, each.id.name) for each in comparison.forecast.operations() if each.id.kind == SET.name]
        assert written.index((Verb.CREATE, "new")) < written.index((Verb.DELETE, "old"))
        assert list(cluster.there(SET)) == ["new"]


async def test_a_sync_does_not_end_before_a_removed_root_is_gone() -> None:
    async with stage() as cluster:
        await cluster.sync(manifests=[workload()])
        await cluster.kubectl.patch(SET, "default", "llm", {"metadata": {"finalizers": [labels.SET_FINALIZER, "example.com/kept"]}})

        report = await cluster.sync(removals=cluster.removing(SET, "llm"), patience=60)

        assert report.ending is Ending.TIMED_OUT
        assert [wait.why for wait in report.pending] == ["is being deleted; waits for the removal of finalizer example.com/kept"]


async def test_a_graph_that_is_to_be_removed_gets_no_new_objects_first() -> None:
    async with stage() as cluster:
        await cluster.sync(manifests=[graph()])
        await cluster.delete(kinds.PODCLIQUESET, "chat")
        removals = cluster.removing(GRAPH, "chat")

        planned = (await cluster.look(removals=removals)).planned

        assert [(each.verb, each.id.kind) for plan in planned.plans for each in plan.operations] == [(Verb.DELETE, GRAPH.name)]
        await cluster.sync(removals=removals)
        assert not await cluster.names()


async def test_a_delete_that_is_refused_ends_the_sync_as_failed() -> None:
    async with stage() as cluster:
        await cluster.sync(manifests=[workload()])
        ours = cluster.start()
        ours.refuses = lambda call: Forbidden("no rights") if call[:2] == ("delete", SET) else None

        report = await cluster.sync(ours, removals=cluster.removing(SET, "llm"))

        assert (report.ending, list(cluster.there(SET))) == (Ending.FAILED, ["llm"])


class RecordedBooks:
    """Books that note what exists when they are written."""

    def __init__(self, cluster: Stage) -> None:
        self._cluster = cluster
        self.are_closed = False
        self.written: list[tuple[str, list[str]]] = []

    async def open(self) -> None:
        """Note the sets that exist."""
        self.written.append(("open", sorted(self._cluster.there(SET))))

    async def close(self) -> None:
        """The same."""
        self.written.append(("close", sorted(self._cluster.there(SET))))
        self.are_closed = True


async def test_books_are_opened_before_the_first_write_and_closed_when_what_is_removed_is_gone() -> None:
    async with stage() as cluster:
        await cluster.sync(manifests=[workload("old")])
        books = RecordedBooks(cluster)

        await cluster.sync(manifests=[workload("new")], removals=cluster.removing(SET, "old", after_manifests=True), books=books)

        assert books.written[0] == ("open", ["old"])
        assert [entry for entry in books.written if entry[0] == "close"] == [("close", ["new"])]


async def test_books_stay_open_when_something_is_left() -> None:
    async with stage() as cluster:
        await cluster.sync(manifests=[workload("old")])
        books, removals = RecordedBooks(cluster), cluster.removing(SET, "old")

        await cluster.sync(removals=removals, books=books, wait=False)
        assert cluster.there(SET) and not books.are_closed

        await cluster.sync(removals=removals, books=books)
        assert not cluster.there(SET) and books.are_closed
