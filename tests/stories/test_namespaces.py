"""A namespace that is missing or being deleted: nothing is created in it, again and again it is not tried, and the reason is told."""

from collections.abc import Iterable

import pytest

from engine.forecast.forecast import End
from engine.ids import ResourceId
from engine.plan import Plan, Wait
from engine.reason import Reason
from engine.verb import Verb
from enginectl.actions.planning import first_pass_of
from resources.base import kinds
from resources.preview.forecasting import forecast_of
from tests.builders import applying, clique, podcliqueset
from tests.stories.process import Process
from tests.stories.stage import Stage, stage

pytestmark = pytest.mark.anyio


def blocked(plans: Iterable[Plan]) -> dict[ResourceId, list[Wait]]:
    """Root -> what is blocked."""
    return {plan.root: list(plan.blocked) for plan in plans if plan.blocked}


async def make_namespace(cluster: Stage) -> ResourceId:
    """A set of two pods in a namespace of its own."""
    await cluster.kubectl.create(kinds.NAMESPACE, "", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    await cluster.apply(podcliqueset("web", clique("worker", 2), namespace="team"))
    return kinds.PODCLIQUESET.id("team", "web")


async def end(cluster: Stage) -> None:
    """Delete the namespace while the set needs more pods than it has."""
    await cluster.kubectl.delete(kinds.NAMESPACE, "", "team")
    await cluster.kubectl.patch(kinds.PODCLIQUESET, "team", "web", {"spec": {"replicas": 2}}, subresource="scale")


async def test_run_tries_no_create_twice_in_a_namespace_that_is_being_deleted_and_goes_on_in_one_that_was_created_again() -> None:
    async with stage() as cluster, cluster.running() as ours:
        await make_namespace(cluster)
        await cluster.settle()
        await end(cluster)
        await cluster.settle()

        creates = refused_creates(ours)
        assert creates and len(creates) == len(set(creates))
        await cluster.until(lambda: "team" not in cluster.there(kinds.NAMESPACE))
        await cluster.clock.advance(120)

        await make_namespace(cluster)
        await cluster.settle()
        assert len((await cluster.kubectl.list(kinds.POD, "team")).items) == 2


def refused_creates(ours: Process) -> list[str]:
    """What could not be created, events apart."""
    return [call for call in ours.refused if call.startswith("create") and not call.startswith("create Event")]


@pytest.mark.parametrize("reads", [True, False], ids=["read before", "refused"])
async def test_a_sync_into_a_missing_namespace_ends_blocked_and_writes_nothing(reads: bool) -> None:
    manifest = podcliqueset("web", clique("worker", 2), namespace="nowhere")
    async with stage() as cluster:
        cluster.reads_namespaces = reads

        report = await cluster.until_ended(lambda: cluster.syncing(manifests=(manifest,)))

        ((wait,),) = blocked(report.plans).values()
        assert (wait.id, wait.reason) == (kinds.NAMESPACE.id("", "nowhere"), Reason.NAMESPACE_MISSING)
        assert wait.remedy == "kubectl create namespace nowhere"
        assert not report.timed_out and not report.failures
        assert not reads or not report.results


@pytest.mark.parametrize("reads", [True, False], ids=["read before", "refused"])
async def test_a_sync_in_a_namespace_that_is_being_deleted_ends_and_does_the_rest(reads: bool) -> None:
    async with stage() as cluster:
        await make_namespace(cluster)
        await cluster.sync()
        await end(cluster)
        cluster.reads_namespaces = reads

        report = await cluster.until_ended(lambda: cluster.syncing())

        assert not report.timed_out and not report.failures
        assert bool(refused_creates(cluster.process)) is not reads
        assert not (await cluster.kubectl.list(kinds.PODCLIQUESET, "team")).items


async def test_a_forecast_creates_nothing_where_nothing_can_be_created_and_is_stuck() -> None:
    async with stage() as cluster:
        root = await make_namespace(cluster)
        await cluster.sync()
        await end(cluster)
        cluster.reads_namespaces = True

        current = await cluster.look()
        forecast = forecast_of(first_pass_of(current, applying(())))

        assert {wait.reason for wait in blocked(current.planned.plans)[root]} == {Reason.NAMESPACE_TERMINATING}
        assert forecast is not None and forecast.end_of(root) is End.STUCK
        assert not [operation for operation in forecast.operations() if operation.verb is Verb.CREATE]
