"""Approvals while they are carried out: what is lost is made again, what nobody approved is left, everything else goes on."""

from collections.abc import Callable, Sequence
from typing import Any

import anyio
import pytest

from engine.approval.approval import Approval
from engine.approval.ledger import Excess, Ledger
from engine.operation import Outcome, Result
from engine.runtime.progress import NoProgress
from engine.runtime.sync_report import Ending, SyncReport
from engine.verb import Verb
from resources.base import kinds
from resources.preview.pod_recognition import RECOGNITION
from tests.builders import clique, group, podcliqueset
from tests.stories.approvals import approve
from tests.stories.pods import images, is_ready, running
from tests.stories.stage import Stage, stage

pytestmark = pytest.mark.anyio


def web(version: int, replicas: int = 2) -> dict[str, Any]:
    """A set that is updated pod by pod."""
    return podcliqueset("web", clique("a", 2, minAvailable=1, pod_spec=running(version)), replicas=replicas)


def grouped(version: int) -> dict[str, Any]:
    """A set with a scaling group."""
    cliques = [clique("a", pod_spec=running(version)), clique("b", 2, pod_spec=running(version))]
    return podcliqueset("web", *cliques, groups=(group("g", "a", "b", replicas=2, min_available=1),), replicas=2)


class Interference(NoProgress):
    """Does something to the cluster after a number of deletes."""

    def __init__(self, after: int, act: Callable[[], object]) -> None:
        self.left, self.act = after, act
        self.excess: list[Excess] = []

    def applied(self, result: Result) -> None:
        """Count the deletes."""
        if result.operation.verb is Verb.DELETE and result.outcome is Outcome.DONE:
            self.left -= 1
            if self.left == 0:
                self.act()

    def unapproved(self, excess: Sequence[Excess]) -> None:
        """Keep what is not done."""
        self.excess += excess


async def sync_with(
    cluster: Stage, approval: Approval, act: Callable[[], object], after: int = 1
) -> tuple[SyncReport[object], Interference]:
    """A sync within the approval, in the middle of which something happens."""
    interference = Interference(after, act)
    ledger = Ledger(approval, RECOGNITION)
    report = await cluster.sync(manifests=approval.manifests, ledger=ledger, progress=interference, patience=120.0)
    return report, interference


def pods(cluster: Stage) -> list[dict[str, Any]]:
    """The pods that serve."""
    return [pod for pod in cluster.there(kinds.POD).values() if is_ready(pod)]


@pytest.mark.parametrize("workload", [web, grouped])
@pytest.mark.parametrize("end", ["first", "last"])
async def test_a_pod_that_fails_midway_is_made_again(workload: Callable[[int], dict[str, Any]], end: str) -> None:
    async with stage() as cluster:
        await cluster.sync(manifests=[workload(1)])
        approval, _ = await approve(cluster, [workload(2)])

        def evict() -> None:
            serving = sorted(pod["metadata"]["name"] for pod in pods(cluster))
            cluster.fail(serving[0 if end == "first" else -1], "evict")

        report, interference = await sync_with(cluster, approval, evict, after=2)

        assert (report.ending, [str(each.deviation) for each in interference.excess]) == (Ending.DONE, [])
        assert images(pods(cluster)) == {"example/worker:2"}


@pytest.mark.parametrize("lost", [0, 1])
async def test_a_pod_that_is_lost_before_its_update_is_made_again_as_it_was_and_updated_then(lost: int) -> None:
    def single(version: int) -> dict[str, Any]:
        cliques = [clique("a", 2, minAvailable=1, pod_spec=running(version))]
        return podcliqueset("web", *cliques, groups=(group("g", "a"),))

    async with stage() as cluster:
        await cluster.sync(manifests=[single(1)])
        approval, _ = await approve(cluster, [single(2)])
        await cluster.delete(kinds.POD, sorted(cluster.there(kinds.POD))[lost])
        await cluster.clock.advance(3)

        report, interference = await sync_with(cluster, approval, lambda: None)

        assert (report.ending, [str(each.deviation) for each in interference.excess]) == (Ending.DONE, [])
        assert images(pods(cluster)) == {"example/worker:2"}


async def test_what_nobody_approved_is_left_and_what_was_approved_goes_on() -> None:
    async with stage() as cluster:
        await cluster.sync(manifests=[web(1), podcliqueset("other", clique("a", pod_spec=running(1)))])
        await cluster.apply(web(2))
        approval, _ = await approve(cluster)
        ledger, progress = Ledger(approval, RECOGNITION), Interference(1, lambda: None)
        ended: list[SyncReport[object]] = []

        async def attend() -> None:
            options: dict[str, Any] = {"ledger": ledger, "progress": progress, "patience": 120.0}
            ended.append(await cluster.syncing(manifests=approval.manifests, **options))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(attend)
            await cluster.until(lambda: progress.left == 0)
            await cluster.delete(kinds.PODCLIQUESET, "other")
            await cluster.until(lambda: bool(ended))

        serving = {pod["metadata"]["labels"]["grove.io/podclique"]: pod for pod in pods(cluster)}
        assert ended[0].ending is Ending.UNAPPROVED
        assert {each.root.name for each in progress.excess} == {"other"}
        assert serving.keys() == {"web-0-a", "web-1-a", "other-0-a"}
        assert images(pod for name, pod in serving.items() if name != "other-0-a") == {"example/worker:2"}


async def test_pods_that_an_autoscaler_adds_midway_are_not_ours_to_create() -> None:
    async with stage() as cluster:
        await cluster.sync(manifests=[web(1)])
        approval, _ = await approve(cluster, [web(2)])
        await cluster.scale(kinds.PODCLIQUE, "web-0-a", 3)
        report, interference = await sync_with(cluster, approval, lambda: None)

        assert report.ending is Ending.UNAPPROVED
        assert {each.subject.text for each in interference.excess} == {"Pod/default/web-0-a[2]"}
        assert {each.then for each in interference.excess} == {"not planned"}
