"""The laws of approvals: what was approved is done in full, and nothing else is ever done."""

from typing import Any

import anyio
from hypothesis import HealthCheck, given, settings

from resources.admission.admit import admit
from resources.admission.request import Act, Request
from resources.base import kinds
from tests.laws.test_forecast_laws import ROOT, fabric_histories, histories
from tests.stories.approvals import approve_then_sync
from tests.stories.fabric import rack
from tests.stories.stage import Stage, stage

Body = dict[str, Any]


async def live_through(cluster: Stage, history: list[Body]) -> None:
    """Apply one manifest after the other, as a user or with the plan in turns, then delete the set; every time within an approval."""
    for number, manifest in enumerate(history):
        existing = cluster.there(kinds.PODCLIQUESET).get("demo")
        act = Act.UPDATE if existing else Act.CREATE
        decision = admit(Request(act, ROOT, manifest, existing), cluster.setup)
        if not decision.allowed:
            continue
        if number % 2 == 0:
            (await approve_then_sync(cluster, [decision.body or manifest])).assert_equal()
        else:
            await cluster.apply(manifest)
            (await approve_then_sync(cluster)).assert_equal()
    if cluster.there(kinds.PODCLIQUESET):
        await cluster.delete(kinds.PODCLIQUESET, "demo")
        (await approve_then_sync(cluster)).assert_equal()
    assert cluster.there(kinds.PODCLIQUESET) == {}


@given(histories())
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
def test_what_was_approved_is_done(history: list[Body]) -> None:
    async def story() -> None:
        async with stage(nodes=30) as cluster:
            await live_through(cluster, history)

    anyio.run(story)


@given(fabric_histories())
@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
def test_what_was_approved_is_done_with_domains(history: list[Body]) -> None:
    async def story() -> None:
        async with rack(nodes=30) as cluster:
            await live_through(cluster, history)

    anyio.run(story)
