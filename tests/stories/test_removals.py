"""Removals: roots that a command removes go with all that they have, as it was forecast, and none is touched too early."""

from typing import Any

import pytest
from msgspec.structs import replace

from engine.errors import ClusterError, Forbidden
from engine.forecast.forecast import End
from engine.ids import Kind, ResourceId
from engine.intent import Record
from engine.observed import live
from engine.resource import Body
from engine.runtime.sync_report import Ending, SyncReport
from engine.verb import Verb
from enginectl.actions.planning import first_pass_of
from resources.base import applyset, kinds, labels
from resources.ports.configuration import Configuration
from resources.preview.forecasting import forecast_of
from tests.builders import applying, clique, group, podcliqueset
from tests.stories.forecasts import comparison, forecast_then_sync
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


TEAM = kinds.CONFIG_MAP.id("default", "team")


async def record(cluster: Stage, *needed: ResourceId) -> Record:
    """The parent of an ApplySet as it is, which is to name the kinds of these members in the end."""
    bodies = cluster.there(kinds.CONFIG_MAP)
    existing = live(bodies["team"]) if "team" in bodies else None
    return applyset.record_of(TEAM, existing, applyset.extent_of_roots(needed, TEAM))


def named(cluster: Stage) -> str:
    """The kinds that the parent names; empty if it does not exist."""
    parents = cluster.there(kinds.CONFIG_MAP)
    return str(parents["team"]["metadata"]["annotations"][applyset.GROUP_KINDS]) if "team" in parents else ""


def writes(report: SyncReport[Configuration]) -> list[tuple[str, str]]:
    """Verb and kind of what was written, in order, statuses apart; each pair once."""
    operations = (result.operation for result in report.results if result.operation.verb is not Verb.STATUS)
    return list(dict.fromkeys((str(each.verb), each.id.kind) for each in operations))


async def test_the_record_is_written_before_everything_else_and_again_when_what_is_removed_is_gone() -> None:
    async with stage() as cluster:
        first = await cluster.sync(manifests=[graph()], record=await record(cluster, GRAPH.id("default", "chat")))
        assert writes(first)[0] == ("create", "ConfigMap") and named(cluster) == "DynamoGraphDeployment.nvidia.com"

        noted = await record(cluster, SET.id("default", "new"))
        removals = cluster.removing(GRAPH, "chat", after_manifests=True)
        second = await cluster.sync(manifests=[workload("new")], removals=removals, record=noted)

        assert second.ending is Ending.DONE
        assert writes(second)[0] == ("patch", "ConfigMap") and named(cluster) == "PodCliqueSet.grove.io"
        own = [result.operation for result in second.results if result.operation.id == TEAM]
        assert [each.changes[0].new for each in own] == ["DynamoGraphDeployment.nvidia.com,PodCliqueSet.grove.io", "PodCliqueSet.grove.io"]
        assert (await cluster.sync(manifests=[workload("new")], record=await record(cluster, SET.id("default", "new")))).results == ()


async def test_what_is_written_in_the_record_was_forecast() -> None:
    async with stage() as cluster:
        await cluster.sync(manifests=[graph()], record=await record(cluster, GRAPH.id("default", "chat")))
        noted = await record(cluster, SET.id("default", "new"))
        intent = applying([workload("new")], cluster.removing(GRAPH, "chat", after_manifests=True), noted)

        forecast = forecast_of(first_pass_of(await cluster.look(intent.manifests, intent.removals, record=noted), intent))
        report = await cluster.sync(manifests=intent.manifests, removals=intent.removals, record=noted)

        comparison(forecast, report).assert_equal()
        assert forecast is not None
        expected = [(each.verb, each.changes) for each in forecast.operations() if each.id == TEAM]
        assert expected == [(each.operation.verb, each.operation.changes) for each in report.results if each.operation.id == TEAM]
        assert [each.operations.keys() for each in forecast.passes][0] == {TEAM}


async def test_the_record_names_what_is_removed_as_long_as_something_is_left() -> None:
    async with stage() as cluster:
        await cluster.sync(manifests=[graph()], record=await record(cluster, GRAPH.id("default", "chat")))
        noted, removals = await record(cluster), cluster.removing(GRAPH, "chat")

        await cluster.sync(removals=removals, record=noted, wait=False)
        assert cluster.there(GRAPH) and named(cluster) == "DynamoGraphDeployment.nvidia.com"

        await cluster.sync(removals=removals, record=noted)
        assert not cluster.there(GRAPH) and named(cluster) == ""


async def test_nothing_is_written_when_another_program_has_changed_the_record_meanwhile() -> None:
    async with stage() as cluster:
        noted = await record(cluster, SET.id("default", "new"))
        await cluster.kubectl.create(kinds.CONFIG_MAP, "default", {"metadata": {"name": "team"}})

        report = await cluster.sync(manifests=[workload("new")], record=noted)

        assert (report.ending, report.results) == (Ending.DENIED, ())
        assert "was changed meanwhile" in report.objections[0].message
        assert not cluster.there(SET)


async def test_nothing_is_written_while_the_record_cannot_be() -> None:
    async with stage() as cluster:
        ours = cluster.start()
        ours.refuses = lambda call: Forbidden("no rights") if call[:2] == ("create", kinds.CONFIG_MAP) else None

        report = await cluster.sync(ours, manifests=[workload("new")], record=await record(cluster, SET.id("default", "new")))

        assert report.ending is Ending.FAILED
        assert not cluster.there(SET)
