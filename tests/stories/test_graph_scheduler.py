"""Where the configuration lists no profiles, KAI schedules graphs made from now on if it is served; others keep their scheduler."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec.structs import replace

from engine.runtime.sync_report import Ending
from engine.verb import Verb
from enginectl.wiring.configuration import configuration_of
from providers.registry import SCHEDULERS
from resources.base import kinds
from resources.base.labels import GRAPH_SCHEDULER, POD_FORM
from resources.settings import valid_settings
from tests.builders import clique, podcliqueset
from tests.stories.graphs import graph, service
from tests.stories.stage import DEFAULT, SETUP, Stage, stage
from tests.stories.test_graph_form import annotations, uids
from tests.stories.test_graph_upgrade import notes
from tests.stories.test_graphs import ready

pytestmark = pytest.mark.anyio

KAI = "kai-scheduler"
UNLISTED = replace(SETUP, schedulers={**SETUP.schedulers, KAI: SCHEDULERS[KAI]}, graph_scheduler_where_served=KAI)
"""A configuration without profiles."""
LISTED = replace(SETUP, schedulers={DEFAULT: SCHEDULERS[DEFAULT]})
"""One that lists the default scheduler only; also what the version before made of one without profiles."""
ASKED = {GRAPH_SCHEDULER: KAI}


async def with_queue(cluster: Stage, name: str = "dynamo") -> None:
    """Create a queue of KAI without limits, below another one."""
    unlimited = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
    spec = {"resources": dict.fromkeys(("cpu", "memory", "gpu"), unlimited)}
    for each, parent in ((f"{name}-parent", {}), (name, {"parentQueue": f"{name}-parent"})):
        queue = {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": each}, "spec": spec | parent}
        await cluster.kubectl.create(kinds.KAI_QUEUE, "", queue)


@asynccontextmanager
async def cluster_with_kai(setup: Any = UNLISTED) -> AsyncIterator[Stage]:
    """A cluster with KAI and its default queue."""
    async with stage(addons=("kai",)) as cluster:
        cluster.setup = setup
        await with_queue(cluster)
        yield cluster


def schedulers(cluster: Stage) -> set[str]:
    """The schedulers of all pods; empty for pods that name none."""
    return {pod["spec"].get("schedulerName", "") for pod in cluster.there(kinds.POD).values()}


def decoding(annotations: dict[str, str] | None = None, **fields: Any) -> dict[str, Any]:
    """A graph with a decoder on two nodes."""
    return graph(annotations=annotations, decode=service(2, nodes=2, **fields))


@pytest.mark.parametrize(
    ("document", "of_graphs"),
    [
        ({}, KAI),
        ({"scheduler": {"profiles": []}}, KAI),
        ({"scheduler": {"profiles": [{"name": DEFAULT}]}}, ""),
        ({"scheduler": {"profiles": [{"name": KAI}]}}, ""),
        ({"dynamo": {"enabled": False}}, ""),
    ],
)
def test_only_a_configuration_without_profiles_leaves_the_scheduler_of_graphs_to_the_cluster(document: Any, of_graphs: str) -> None:
    configured = configuration_of(valid_settings(document))

    assert configured.graph_scheduler_where_served == of_graphs
    assert (KAI in configured.schedulers, KAI in configured.listed_schedulers) == (
        bool(of_graphs) or KAI in str(document),
        KAI in str(document),
    )


async def test_a_new_graph_has_kai_where_it_is_served_and_records_it() -> None:
    async with cluster_with_kai() as cluster:
        said = await notes(cluster, decoding())
        report = await cluster.sync(manifests=[decoding()])

        assert (report.ending, ready(cluster)[0]) == (Ending.DONE, "successful")
        assert "KAI schedules the pods, in its queue dynamo: the cluster has KAI, and the configuration lists no scheduler profiles" in said
        assert (schedulers(cluster), annotations(cluster)[GRAPH_SCHEDULER]) == ({KAI}, KAI)
        assert set(cluster.there(kinds.KAI_POD_GROUP)) == set(cluster.there(kinds.PODGANG))
        again = await cluster.sync(manifests=[decoding()])
        assert [result for result in again.results if result.operation.verb is not Verb.STATUS] == []


async def test_without_its_default_queue_the_status_names_it_and_nothing_is_made() -> None:
    async with stage(addons=("kai",)) as cluster:
        cluster.setup = UNLISTED
        report = await cluster.sync(manifests=[decoding()], wait=False)

        state, message = ready(cluster)
        assert (report.ending, state, "queue 'dynamo' not found" in message) == (Ending.STUCK, "failed", True)
        assert not cluster.there(kinds.PODCLIQUESET)
        await with_queue(cluster)
        assert (await cluster.sync()).ending is Ending.DONE
        assert schedulers(cluster) == {KAI}


@pytest.mark.parametrize("setup", [LISTED, SETUP], ids=["default only", "as the stories"])
async def test_profiles_that_are_listed_decide(setup: Any) -> None:
    async with cluster_with_kai(setup) as cluster:
        report = await cluster.sync(manifests=[decoding()])

        assert (report.ending, KAI in schedulers(cluster), GRAPH_SCHEDULER in annotations(cluster)) == (Ending.DONE, False, False)


async def test_an_existing_graph_keeps_its_scheduler_after_an_upgrade_and_an_edit_and_a_note_says_how_to_change_it() -> None:
    async with cluster_with_kai(LISTED) as cluster:
        await cluster.sync(manifests=[decoding()])
        before = uids(cluster)
        cluster.setup = UNLISTED

        said = await notes(cluster, decoding())
        report = await cluster.sync(manifests=[decoding()])
        assert [result for result in report.results if result.operation.verb is not Verb.STATUS] == []
        assert uids(cluster) == before
        assert len([note for note in said if "keep their scheduler" in note and f'{GRAPH_SCHEDULER}: "{KAI}"' in note]) == 1

        await cluster.sync(manifests=[decoding(script="python3 -m dynamo.vllm --model other")])
        assert (KAI in schedulers(cluster), GRAPH_SCHEDULER in annotations(cluster)) == (False, False)


async def test_a_graph_from_before_kai_keeps_its_scheduler_when_kai_comes() -> None:
    async with stage() as cluster:
        cluster.setup = UNLISTED
        await cluster.sync(manifests=[decoding()])
        assert (KAI in schedulers(cluster), GRAPH_SCHEDULER in annotations(cluster)) == (False, False)


async def test_an_existing_graph_gets_kai_if_its_annotation_asks_for_it_and_its_set_may_be_replaced() -> None:
    async with cluster_with_kai(LISTED) as cluster:
        await cluster.sync(manifests=[decoding()])
        before = uids(cluster)
        cluster.setup = UNLISTED

        blocked = await cluster.sync(manifests=[decoding(ASKED)], wait=False)
        assert (blocked.ending, uids(cluster)) == (Ending.STUCK, before)
        done = await cluster.sync(manifests=[decoding({**ASKED, "engine.grove.io/allow-replace": "true"})])
        assert (done.ending, schedulers(cluster)) == (Ending.DONE, {KAI})


async def test_a_graph_that_lost_its_record_keeps_kai() -> None:
    async with cluster_with_kai() as cluster:
        await cluster.sync(manifests=[decoding()])
        before = uids(cluster)
        await cluster.kubectl.patch(kinds.DYNAMO_GRAPH, "default", "chat", {"metadata": {"annotations": {GRAPH_SCHEDULER: None}}})

        report = await cluster.sync(manifests=[decoding()])

        assert (report.ending, uids(cluster), annotations(cluster)[GRAPH_SCHEDULER]) == (Ending.DONE, before, KAI)


async def test_the_scheduler_that_a_service_names_is_kept() -> None:
    own = {"extraPodSpec": {"schedulerName": DEFAULT, "mainContainer": {"image": "example/vllm:1", "args": ["python3 -m dynamo.vllm"]}}}
    async with cluster_with_kai() as cluster:
        report = await cluster.sync(manifests=[graph(decode=service(2, nodes=2) | own)])

        assert (report.ending, KAI in schedulers(cluster), GRAPH_SCHEDULER in annotations(cluster)) == (Ending.DONE, False, False)


async def test_a_graph_may_ask_for_the_default_scheduler_and_older_forms_have_it() -> None:
    for said in ({GRAPH_SCHEDULER: DEFAULT}, {POD_FORM: "1"}):
        async with cluster_with_kai() as cluster:
            report = await cluster.sync(manifests=[decoding(said)])

            assert (report.ending, KAI in schedulers(cluster)) == (Ending.DONE, False)


async def test_sets_name_kai_only_where_it_is_served() -> None:
    manifest = podcliqueset("own", clique("worker", 2, pod_spec={"schedulerName": KAI, "containers": [{"name": "main", "image": "a"}]}))
    manifest["metadata"]["labels"] = {"kai.scheduler/queue": "dynamo"}
    async with cluster_with_kai() as cluster:
        assert (await cluster.sync(manifests=[manifest])).ending is Ending.DONE
    async with stage() as cluster:
        cluster.setup = UNLISTED
        report = await cluster.sync(manifests=[manifest], wait=False)

        assert report.ending is not Ending.DONE
        assert any("not enabled" in problem for plan in report.plans for problem in plan.problems)
