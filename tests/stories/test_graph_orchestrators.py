"""What runs a graph is recorded: annotations that change replace nothing until that is allowed, and `run` never does it alone."""

from typing import Any

import pytest

from engine.runtime.passes import Pass
from engine.runtime.sync_report import Ending, SyncReport
from resources.base import kinds
from resources.base.labels import POD_FORM, VLLM_EXECUTORS, WRITTEN_AS
from resources.dynamo.model.form import PodForm
from tests.stories.graphs import graph, service
from tests.stories.stage import stage
from tests.stories.test_graph_form import annotations, uids, without_records

pytestmark = pytest.mark.anyio

GROVE = "nvidia.com/enable-grove"
PROVIDER = "nvidia.com/workload-provider"
ALLOWED = {"engine.grove.io/allow-replace": "true"}
DECODE = service(nodes=2, script="python3 -m dynamo.vllm --tensor-parallel-size 8")


def made(given: dict[str, str] | None = None) -> dict[str, Any]:
    """A graph with one service on two nodes."""
    return graph(annotations=given, decode=DECODE)


def notes(source: SyncReport[Any] | Pass[Any]) -> str:
    """All notes of a report or of a pass."""
    plans = source.planned.plans if isinstance(source, Pass) else source.plans
    return "\n".join(note for plan in plans for note in plan.notes)


async def test_a_manifest_that_no_longer_has_the_annotation_removes_it_and_replaces_nothing() -> None:
    async with stage(addons=("lws", "volcano")) as cluster:
        await cluster.sync(manifests=[made({GROVE: "false"})])
        before = uids(cluster)
        assert annotations(cluster) == {
            GROVE: "false",
            PROVIDER: "component",
            POD_FORM: PodForm.CURRENT,
            VLLM_EXECUTORS: "decode=ray",
            WRITTEN_AS: "v1alpha1",
        }

        noted = notes(await cluster.look([made()]))
        replaced = notes(await cluster.look([made(ALLOWED)]))
        assert f"the annotation {GROVE} is removed" in replaced and "what runs the graph stays" not in replaced
        report = await cluster.sync(manifests=[made()])

        assert (report.ending, uids(cluster)) == (Ending.DONE, before)
        assert annotations(cluster) == {
            PROVIDER: "component",
            POD_FORM: PodForm.CURRENT,
            VLLM_EXECUTORS: "decode=ray",
            WRITTEN_AS: "v1alpha1",
        }
        assert f"the annotation {GROVE} is removed, as the manifest no longer has it; what runs the graph stays" in noted
        assert "--allow-replace" in noted

        async with cluster.running():
            await cluster.settle()
        assert uids(cluster) == before

        await cluster.sync(manifests=[made(ALLOWED)])
        assert cluster.there(kinds.PODCLIQUESET) and not cluster.there(kinds.LEADER_WORKER_SET)
        assert annotations(cluster)[PROVIDER] == "grove"


async def test_an_annotation_of_another_writer_stays_and_is_told() -> None:
    async with stage(addons=("lws", "volcano")) as cluster:
        await cluster.apply(made({GROVE: "false"}))
        await cluster.sync()

        noted = notes(await cluster.look([made()]))
        await cluster.sync(manifests=[made()])

        assert annotations(cluster)[GROVE] == "false"
        assert f"the annotation {GROVE} stays, although the manifest does not have it: another writer has set it" in noted


@pytest.mark.parametrize("recorded", [True, False])
async def test_an_annotation_that_asks_for_another_orchestrator_is_blocked_until_it_is_allowed(recorded: bool) -> None:
    async with stage(addons=("lws", "volcano")) as cluster:
        if recorded:
            await cluster.sync(manifests=[made()])
        else:
            with without_records():
                await cluster.sync(manifests=[made()])
        before = uids(cluster)

        await cluster.apply(made({GROVE: "false"}))
        async with cluster.running():
            await cluster.clock.advance(60)
        assert uids(cluster) == before
        report = await cluster.sync(wait=False)
        (wait,) = [wait for plan in report.plans for wait in plan.deferred if wait.blocked]
        assert "Grove's objects run the graph and stay" in wait.why
        assert "--allow-replace" in (wait.to_do or "")

        await cluster.apply(made({GROVE: "false"} | ALLOWED))
        await cluster.sync()
        assert cluster.there(kinds.LEADER_WORKER_SET) and not cluster.there(kinds.PODCLIQUESET)
        assert not before & uids(cluster)


async def test_the_only_orchestrator_is_selected_although_the_annotation_excludes_it() -> None:
    async with stage() as cluster:
        report = await cluster.sync(manifests=[made({GROVE: "false"})])

        assert report.ending is Ending.DONE
        assert cluster.there(kinds.PODCLIQUESET)
        assert f'the annotation {GROVE}: "false" has no effect: the cluster has only Grove' in notes(report)


@pytest.mark.parametrize("key", ["nvidia.com/kai-scheduler-queue", "nvidia.com/enable-metrics", "engine.grove.io/protect"])
async def test_every_annotation_that_steers_goes_with_the_manifest(key: str) -> None:
    async with stage() as cluster:
        await cluster.sync(manifests=[made({key: "false", "team": "a"})])

        await cluster.sync(manifests=[made()])

        assert key not in annotations(cluster)
        assert annotations(cluster)["team"] == "a"


@pytest.mark.parametrize("recorded", ["component", "grove"])
async def test_a_new_graph_is_run_by_what_its_manifest_records(recorded: str) -> None:
    async with stage(addons=("lws", "volcano")) as cluster:
        noted = notes(await cluster.look([made({PROVIDER: recorded})]))
        report = await cluster.sync(manifests=[made({PROVIDER: recorded})])

        asks = f"the annotation {PROVIDER} asks for LeaderWorkerSets and Deployments: without it, Grove's objects would run the graph"
        assert (asks in noted, "stay" in noted) == (recorded == "component", False)
        assert report.ending is Ending.DONE
        assert bool(cluster.there(kinds.LEADER_WORKER_SET)) is (recorded == "component")
        assert bool(cluster.there(kinds.PODCLIQUESET)) is (recorded == "grove")


async def test_annotations_of_a_new_graph_that_ask_for_different_things_are_told_with_the_way_out() -> None:
    async with stage(addons=("lws", "volcano")) as cluster:
        plans = (await cluster.look([made({GROVE: "false", PROVIDER: "grove"})])).planned.plans

        (wait,) = (wait for plan in plans for wait in plan.deferred if wait.blocked)
        assert wait.why.endswith(f"LeaderWorkerSets and Deployments would run the graph, as {GROVE} says")
        assert wait.to_do == f"remove the annotation {GROVE} or {PROVIDER}"


async def test_an_edit_of_the_record_replaces_nothing_and_is_put_back() -> None:
    async with stage(addons=("lws", "volcano")) as cluster:
        await cluster.sync(manifests=[made()])
        before = uids(cluster)
        await cluster.kubectl.patch(kinds.DYNAMO_GRAPH, "default", "chat", {"metadata": {"annotations": {PROVIDER: "component"}}})

        assert (await cluster.sync()).ending is Ending.DONE

        assert uids(cluster) == before
        assert annotations(cluster)[PROVIDER] == "grove"
