"""Objects that no list by label shows: they are read by their names before they count as absent, so nothing is created a second time."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from engine.ids import Kind
from engine.operation import Operation, Outcome
from engine.resource import Body
from engine.runtime.sync_report import Ending
from engine.verb import Verb
from enginectl.actions.planning import first_pass_of
from resources.base import kinds, labels
from resources.preview.forecasting import forecast_of
from tests.builders import clique, group, podcliqueset
from tests.stories.forecasts import comparison
from tests.stories.graphs import graph, service
from tests.stories.permission_scenario import sets
from tests.stories.process import Process
from tests.stories.stage import CHILDREN, SCOPE, Stage, stage

pytestmark = pytest.mark.anyio

WORKLOADS: Mapping[str, Callable[[], list[Body]]] = {
    "a set": lambda: [body for _, body in sets("default", "a")],
    "graphs": lambda: [graph("by-grove"), graph("by-parts", {"nvidia.com/enable-grove": "false"}, decode=service(1))],
}

EDITS: Mapping[str, Callable[[Mapping[str, str]], dict[str, str | None]]] = {
    "the label of the selector is removed": lambda old: {labels.MANAGED_BY: None},
    "the label of the selector has another value": lambda old: {labels.MANAGED_BY: "somebody"},
    "the label that names the root is removed": lambda old: {labels.PART_OF: None},
    "all labels are removed": lambda old: dict.fromkeys(old),
}
"""What is changed -> the patch of the labels."""


def ours(cluster: Stage) -> Iterator[tuple[Kind, dict[str, Any]]]:
    """The first object of each kind that a root has labelled."""
    for kind in filter(cluster.serves, CHILDREN):
        labelled = [body for _, body in sorted(cluster.there(kind).items()) if labels.MANAGED_BY in (body["metadata"].get("labels") or {})]
        if labelled and kind not in SCOPE.roots:
            yield kind, labelled[0]


def identities(cluster: Stage) -> dict[tuple[str, str], str]:
    """Kind and name of everything -> its uid."""
    served = [kind for kind in CHILDREN if cluster.serves(kind)]
    return {(kind.name, name): body["metadata"]["uid"] for kind in served for name, body in cluster.there(kind).items()}


def refused(process: Process) -> list[str]:
    """The calls of a process that were refused, events apart."""
    return [call for call in process.refused if not call.startswith("create Event")]


def patches(operations: Iterator[Operation]) -> list[tuple[str, str]]:
    """Kind and name of what is patched, each as often as it is."""
    return sorted((each.id.kind, each.id.name) for each in operations if each.verb is Verb.PATCH)


async def relabel(cluster: Stage, kind: Kind, body: Body, edit: Callable[[Mapping[str, str]], dict[str, str | None]]) -> None:
    metadata = body["metadata"]
    await cluster.kubectl.patch(kind, metadata["namespace"], metadata["name"], {"metadata": {"labels": edit(metadata["labels"])}})


async def forecast_and_sync(cluster: Stage) -> list[tuple[str, str]]:
    """Forecast and sync, compare them, and return what was patched."""
    current = await cluster.look()
    forecast = forecast_of(first_pass_of(current))
    report = await cluster.sync()

    assert report.ending is Ending.DONE
    assert refused(cluster.process) == []
    assert all(result.outcome is Outcome.DONE for result in report.results)
    comparison(forecast, report).assert_equal()
    done = patches(result.operation for result in report.results)
    assert forecast is not None and patches(forecast.operations()) == done
    return done


@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("workload", WORKLOADS)
async def test_an_object_without_its_label_is_patched_once_by_diff_and_sync_alike(workload: str, edit: str) -> None:
    async with stage(addons=("lws",) if workload == "graphs" else ()) as cluster:
        for body in WORKLOADS[workload]():
            await cluster.apply(dict(body))
        assert (await cluster.sync()).ending is Ending.DONE
        before = identities(cluster)
        tried = list(ours(cluster))
        assert len(tried) > 4
        for kind, body in tried:
            await relabel(cluster, kind, body, EDITS[edit])

            assert await forecast_and_sync(cluster) == [(kind.name, body["metadata"]["name"])]
            assert identities(cluster) == before


async def test_a_clique_and_its_pods_without_their_labels_are_found_together() -> None:
    async with stage() as cluster:
        await cluster.apply(podcliqueset("web", clique("front", 2), clique("work"), groups=(group("m", "work"),)))
        await cluster.sync()
        before, remove = identities(cluster), EDITS["all labels are removed"]
        for kind in (kinds.PODCLIQUE, kinds.POD, kinds.SCALING_GROUP, kinds.PODGANG):
            for body in cluster.there(kind).values():
                await relabel(cluster, kind, body, remove)

        await forecast_and_sync(cluster)

        assert identities(cluster) == before


async def test_a_pod_that_replaced_another_one_and_has_lost_its_labels_is_not_created_under_another_name() -> None:
    async with stage() as cluster:
        await cluster.apply(podcliqueset("web", clique("front", 2)))
        await cluster.sync()
        await cluster.kubectl.delete(kinds.POD, "default", min(cluster.there(kinds.POD)))
        await cluster.sync()
        before = identities(cluster)
        for body in cluster.there(kinds.POD).values():
            await relabel(cluster, kinds.POD, body, EDITS["all labels are removed"])

        assert len(await forecast_and_sync(cluster)) == 2

        assert identities(cluster) == before


@pytest.mark.parametrize("edit", EDITS)
async def test_run_restores_the_labels_of_an_object_of_each_kind_without_a_refused_call(edit: str) -> None:
    async with stage() as cluster:
        for body in WORKLOADS["a set"]():
            await cluster.apply(dict(body))
        async with cluster.running() as process:
            await cluster.settle()
            before, created = identities(cluster), process.created.copy()
            for kind, body in list(ours(cluster)):
                await relabel(cluster, kind, body, EDITS[edit])
            await cluster.settle()

            assert {kind.name for kind, body in ours(cluster)} >= {"Pod", "PodClique", "PodGang", "Service"}
            assert all(labels.PART_OF in body["metadata"]["labels"] for _, body in ours(cluster))
        assert identities(cluster) == before
        assert process.created == created
        assert refused(process) == []


async def test_run_reads_nothing_by_name_while_it_brings_a_set_up_scales_it_and_updates_it() -> None:
    async with stage() as cluster:
        async with cluster.running() as process:
            await cluster.settle()
            reads: list[str] = []
            process.refuses = lambda call: reads.append(call[1].name) if call[0] == "get" and call[1] in CHILDREN else None
            for replicas, image in ((2, "app:1"), (4, "app:1"), (4, "app:2"), (1, "app:2")):
                pod_spec = {"containers": [{"name": "main", "image": image}]}
                await cluster.apply(podcliqueset("web", clique("front", 3, pod_spec=pod_spec), replicas=replicas))
                await cluster.settle()

        assert reads == []
