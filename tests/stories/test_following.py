"""`engine run` follows the cluster: with nothing to do it asks for nothing, and what happens it notices at once."""

import pytest

from resources import kinds
from tests.builders import clique, podcliqueset
from tests.stories.stage import stage

pytestmark = pytest.mark.anyio


async def test_a_set_at_rest_costs_no_call_however_long_it_rests() -> None:
    async with stage() as cluster, cluster.running() as ours:
        await cluster.apply(podcliqueset("web", clique("worker", 2), replicas=2))
        await cluster.settle()
        asked: set[str] = set()
        ours.refuses = lambda call: asked.add(f"{call[0]} {call[1].name}")

        await cluster.clock.advance(3600)

        assert {call for call in asked if not call.endswith("Lease")} == set()


async def test_what_somebody_takes_away_is_there_again_before_the_interval_is_over() -> None:
    async with stage() as cluster, cluster.running():
        await cluster.apply(podcliqueset("web", clique("worker", 2)))
        await cluster.settle()
        began = cluster.clock.monotonic()

        await cluster.delete(kinds.SERVICE, "web-0")
        await cluster.until(lambda: "web-0" in cluster.there(kinds.SERVICE))

        assert cluster.clock.monotonic() - began < 1
