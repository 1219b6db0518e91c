"""`engine run` follows the cluster: with nothing to do it asks for nothing, and what happens it notices at once."""

from typing import Any

import anyio
import pytest

from engine.ids import Kind
from engine.runtime.lease import LEASE
from grove_sandbox.clients.inprocess import InProcessClient
from resources.base import kinds
from tests.builders import clique, podcliqueset
from tests.stories.process import Process
from tests.stories.stage import stage

pytestmark = pytest.mark.anyio


async def test_a_set_at_rest_costs_no_call_however_long_it_rests() -> None:
    async with stage() as cluster, cluster.running() as ours:
        await cluster.apply(podcliqueset("web", clique("worker", 2), replicas=2))
        await cluster.settle()
        asked: set[Kind] = set()
        ours.refuses = lambda call: asked.add(call[1])

        await cluster.clock.advance(3600)

        # Kinds that are not served are asked for now and then: somebody may install them.
        assert {kind.name for kind in asked if cluster.serves(kind)} <= {"Lease"}


async def test_what_somebody_takes_away_is_there_again_before_the_interval_is_over() -> None:
    async with stage() as cluster, cluster.running():
        await cluster.apply(podcliqueset("web", clique("worker", 2)))
        await cluster.settle()
        began = cluster.clock.monotonic()

        await cluster.delete(kinds.SERVICE, "web-0")
        await cluster.until(lambda: "web-0" in cluster.there(kinds.SERVICE))

        assert cluster.clock.monotonic() - began < 1


async def test_who_loses_the_lease_and_wins_it_back_begins_with_what_is_there_then() -> None:
    async with stage() as cluster, cluster.running() as ours:
        await cluster.apply(podcliqueset("web", clique("worker", 2)))
        await cluster.settle()
        done = ours.count
        spec = {"holderIdentity": "somebody-else", "leaseDurationSeconds": 15, "renewTime": "2030-01-01T00:00:00.000000Z"}
        await cluster.kubectl.patch(LEASE, "default", "engine", {"spec": spec})
        await cluster.clock.advance(8)
        await cluster.delete(kinds.SERVICE, "web-0")
        await cluster.clock.advance(2)
        assert ours.count == done

        await cluster.until(lambda: "web-0" in cluster.there(kinds.SERVICE), within=60)
        await cluster.settle()
        assert ours.count == done + 1


class Silent(InProcessClient):
    """A line on which lists are not answered."""

    async def list(self, kind: Kind, *asked: Any, **options: Any) -> Any:
        if kind != LEASE:
            await anyio.sleep_forever()
        return await super().list(kind, *asked, **options)


async def test_who_is_told_to_stop_before_anything_was_answered_stops() -> None:
    async with stage() as cluster:
        async with cluster.running(Process(Silent(cluster.api))):
            await cluster.clock.advance(5)
            (lease,) = cluster.there(LEASE).values()
            assert lease["spec"]["holderIdentity"]

        (lease,) = cluster.there(LEASE).values()
        assert not lease["spec"]["holderIdentity"]
