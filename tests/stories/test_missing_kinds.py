"""A cluster that lacks the definition of a kind: what needs it is blocked, in the forecast as in a sync, and nothing fails."""

import pytest

from engine.forecast.forecast import End
from engine.operation import Outcome
from engine.reason import Reason
from engine.runtime.sync_report import Ending
from resources.base import kinds
from tests.builders import clique, podcliqueset
from tests.stories.forecasts import forecast_then_sync
from tests.stories.pods import running
from tests.stories.stage import stage

pytestmark = pytest.mark.anyio

WEB = kinds.PODCLIQUESET.id("default", "web")
GANGS = "podgangs.scheduler.grove.io"


async def test_what_needs_a_missing_kind_is_blocked_until_it_is_installed() -> None:
    async with stage() as cluster:
        definition = await cluster.kubectl.get(kinds.CRD, "", GANGS)
        await cluster.kubectl.delete(kinds.CRD, "", GANGS)
        await cluster.clock.advance(5)

        manifest = podcliqueset("web", clique("a", 2, pod_spec=running(1)))
        without = await forecast_then_sync(cluster, [manifest])

        without.assert_equal()
        assert without.forecast is not None and without.forecast.end_of(WEB) is End.STUCK
        assert without.ending is not Ending.DONE
        assert ("create", "PodClique", "web-0-a") in without.operations

        await cluster.kubectl.create(kinds.CRD, "", {**definition, "metadata": {"name": GANGS}})
        await cluster.clock.advance(5)
        report = await cluster.sync()
        assert report.ending is Ending.DONE
        assert sorted(cluster.there(kinds.PODGANG)) == ["web-0"]


async def test_nothing_is_sent_that_the_server_would_not_know() -> None:
    async with stage() as cluster:
        await cluster.kubectl.delete(kinds.CRD, "", GANGS)
        await cluster.clock.advance(5)
        await cluster.apply(podcliqueset("web", clique("a", pod_spec=running(1))))

        report = await cluster.sync()

        (blocked,) = [wait for wait in report.last_pass.planned.plans[0].blocked if wait.reason is Reason.NOT_SERVED]
        assert (blocked.id.name, blocked.why) == ("web-0", "the cluster does not serve PodGang of scheduler.grove.io/v1alpha1")
        assert [result for result in report.results if result.outcome is Outcome.FAILED] == []
