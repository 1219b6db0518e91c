"""Deployments of graphs that have missed their deadline: a model that loads for long is late, and what somebody must act on is stuck."""

from typing import Any

import pytest

from engine.forecast.forecast import End
from enginectl.actions.diff import exit_code
from enginectl.actions.sync import with_stuck
from enginectl.base.exit_codes import Exit
from enginectl.base.options import Options
from enginectl.wiring.configuration import Wiring
from grove_sandbox.actors.script import FAIL
from providers.cluster import Cluster
from resources.base import kinds
from resources.settings import Settings
from tests.laws.test_forecast_worlds import GRAPH, frontend
from tests.stories.graphs import graph, service
from tests.stories.stage import Stage, stage
from tests.stories.test_cluster_constraints import blocked, preview_with

pytestmark = pytest.mark.anyio

DEPLOYMENT = kinds.DEPLOYMENT.id("default", "chat-frontend")
RUNNING = {"phase": "Running", "containerStatuses": [{"name": "main", "started": True, "ready": False, "state": {"running": {}}}]}
CRASHING = {"phase": "Running", "containerStatuses": [{"name": "main", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]}
UNPLACED = {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "full"}]}


async def miss_deadline(cluster: Stage, status: dict[str, Any], others: int = 0) -> None:
    """The Deployments of a graph, one and so many others before it, report that they are late; the one has one pod of this status."""
    more: dict[str, Any] = {f"Early{number}": frontend(1) for number in range(others)}
    await cluster.sync(manifests=[graph(**more, Frontend=frontend(1))], wait=False)
    late = {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}
    namespace, name = DEPLOYMENT.namespace, DEPLOYMENT.name
    for each in cluster.there(kinds.DEPLOYMENT):
        await cluster.kubectl.patch(
            kinds.DEPLOYMENT, namespace, each, {"status": {"conditions": [late]}}, how="merge", subresource="status"
        )
    labels = cluster.there(kinds.DEPLOYMENT)[name]["spec"]["selector"]["matchLabels"]
    spec = {"containers": [{"name": "main", "image": "x"}], **({} if status is UNPLACED else {"nodeName": "node-0"})}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "chat", "namespace": namespace, "labels": labels}, "spec": spec}
    await cluster.kubectl.create(kinds.POD, namespace, pod)
    await cluster.kubectl.patch(kinds.POD, namespace, "chat", {"status": status}, how="merge", subresource="status")


@pytest.mark.parametrize(
    ("status", "why"),
    [(RUNNING, ""), (CRASHING, "pod chat: main CrashLoopBackOff"), (UNPLACED, "pod chat: Unschedulable: full")],
    ids=["running", "crashing", "unplaced"],
)
async def test_a_late_deployment_is_stuck_only_if_its_pods_need_somebody(status: dict[str, Any], why: str) -> None:
    async with stage(grove=False, without=("deployments", "scheduler", "kubelet")) as cluster:
        await miss_deadline(cluster, status)

        seen, brief = await preview_with(cluster), await preview_with(cluster, only_next=True)

        (root,) = seen.report.roots
        assert blocked(brief) == blocked(seen)
        assert seen.report.forecast is not None
        assert (seen.report.forecast.end_of(GRAPH) is End.STUCK) is bool(why)
        assert blocked(seen).get(DEPLOYMENT, "") == (f"no pod has become ready for 600 s: {why}" if why else "")
        assert any("is late, still starting" in note for note in root.notes) is not bool(why)


async def test_pods_of_every_late_deployment_are_read_however_many_there_are() -> None:
    async with stage(grove=False, without=("deployments", "scheduler", "kubelet")) as cluster:
        await miss_deadline(cluster, CRASHING, others=24)

        seen = await preview_with(cluster)

        (root,) = seen.report.roots
        assert "main CrashLoopBackOff" in blocked(seen)[DEPLOYMENT]
        assert len([note for note in root.notes if "is late, still starting" in note]) == 24
        assert not [note for note in root.notes if "could not be read" in note]


@pytest.mark.parametrize("failure", ["image-pull", "crash"])
async def test_a_component_whose_new_pod_cannot_run_is_not_forecast_to_settle(failure: str) -> None:
    async with stage(grove=False) as cluster:
        await cluster.sync(manifests=[graph(a=service(), b=service())])
        await cluster.clock.advance(60)
        failing = service(script="other", extraPodMetadata={"annotations": {FAIL: failure}})
        ended = await cluster.sync(manifests=[graph(a=failing, b=service())], patience=60)

        unchanged = await preview_with(cluster)
        edited = await preview_with(cluster, graph(a=failing, b=service(script="other")))
        scaled = await preview_with(cluster, graph(a={**failing, "replicas": 2}, b=service()))
        mended = await preview_with(cluster, graph(a=service(script="mended"), b=service()))

        wiring = Wiring(Options(), Settings(), cluster.setup, cluster.clock)
        (stuck,) = (await with_stuck(wiring, ended, Cluster(cluster.kubectl, cluster.clock), assume_nodes=False)).stuck
        assert stuck == GRAPH
        for seen in (unchanged, scaled):
            assert any("Deployment chat-a: pod chat-a-" in note and "BackOff" in note for note in seen.report.roots[0].notes)
        assert [exit_code(seen.report, detailed=False) for seen in (unchanged, edited, mended)] == [Exit.DONE, Exit.STUCK, Exit.DONE]
