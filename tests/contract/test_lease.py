"""The lease on an API server: what the election writes is accepted, and in good order nothing is refused."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from engine.errors import ClusterError, LeaseLost, LeaseTaken, NotFound
from engine.runtime.clock import SystemClock
from engine.runtime.lease import LEASE, Durations, Lease, held
from providers.kubernetes.client import KubernetesClient
from providers.kubernetes.connect import connected
from providers.kubernetes.kubeconfig import Source
from tests.contract.server import Server

pytestmark = pytest.mark.anyio

QUICK = Durations(lease=2, renew=1.5, retry=0.05)


class Counting:
    """A client that remembers what was asked and what was refused."""

    def __init__(self, client: KubernetesClient) -> None:
        self.client = client
        self.asked: list[str] = []
        self.refused: list[ClusterError] = []
        self.renewed_often = anyio.Event()

    def __getattr__(self, verb: str) -> Any:
        async def ask(*args: Any, **options: Any) -> Any:
            self.asked.append(verb)
            if self.asked.count("replace") >= 3:
                self.renewed_often.set()
            try:
                return await getattr(self.client, verb)(*args, **options)
            except ClusterError as error:
                self.refused.append(error)
                raise

        return ask


@asynccontextmanager
async def counting(server: Server) -> AsyncIterator[Counting]:
    async with connected(Source(str(server.kubeconfig)), SystemClock()) as client:
        yield Counting(client)


def lease(client: Counting, name: str, identity: str, durations: Durations = QUICK) -> Lease:
    return Lease(client, SystemClock(), "default", name, identity, durations)


async def test_taking_renewing_and_giving_back_are_never_refused(server: Server) -> None:
    async with counting(server) as client:
        for identity in ("first", "second"):
            async with held(lease(client, "in-good-order", identity)) as leadership:
                with anyio.fail_after(10):
                    await client.renewed_often.wait()
                assert leadership.sure()

        left = (await client.get(LEASE, "default", "in-good-order"))["spec"]

    assert client.refused == []
    assert client.asked.count("list") == 2
    assert client.asked.count("create") == 1
    assert left["holderIdentity"] == ""
    assert left["leaseTransitions"] == 1


async def test_while_one_holds_it_another_is_refused_and_told_who(server: Server) -> None:
    async with counting(server) as client, held(lease(client, "contested", "first")):
        with pytest.raises(LeaseTaken, match="held by first"):
            async with held(lease(client, "contested", "second", Durations(0.3, 0.2, 0.05)), patience=0.1):
                pass


async def test_who_is_pushed_aside_stops_and_does_not_push_back(server: Server) -> None:
    async with counting(server) as client:
        with pytest.raises(LeaseLost):
            async with held(lease(client, "usurped", "first")):
                now = await client.get(LEASE, "default", "usurped")
                usurped = now | {"spec": now["spec"] | {"holderIdentity": "usurper"}}
                await client.patch(LEASE, "default", "usurped", {"spec": usurped["spec"]})
                await anyio.sleep_forever()

        left = (await client.get(LEASE, "default", "usurped"))["spec"]

    assert left["holderIdentity"] == "usurper"


async def test_a_namespace_that_is_not_there_is_said_at_once(server: Server) -> None:
    async with counting(server) as client:
        with pytest.raises(NotFound):
            async with held(Lease(client, SystemClock(), "nowhere", "engine", "first", QUICK)):
                pass
