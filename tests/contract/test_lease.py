"""The lease on an API server: what leader election reads and writes is accepted."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from engine.errors import ClusterError, LeaseLost, LeaseTaken, NotFound
from engine.runtime.clock import SystemClock
from engine.runtime.lease import LEASE, Durations, Lease, held
from engine.runtime.lease_holder import CurrentHolder
from providers.kubernetes.client import KubernetesClient
from providers.kubernetes.connect import connected
from providers.kubernetes.kubeconfig import Source
from tests.contract.server import Server
from tests.waiting import PATIENCE

pytestmark = pytest.mark.anyio

QUICK = Durations(lease=2, renew=1.5, retry=0.05)


class Counting:
    """A client that records its requests and their errors."""

    def __init__(self, client: KubernetesClient) -> None:
        self.client = client
        self.requests: list[str] = []
        self.errors: list[ClusterError] = []
        self.renewed_often = anyio.Event()

    def __getattr__(self, verb: str) -> Any:
        async def request(*args: Any, **options: Any) -> Any:
            self.requests.append(verb)
            if self.requests.count("replace") >= 3:
                self.renewed_often.set()
            try:
                return await getattr(self.client, verb)(*args, **options)
            except ClusterError as error:
                self.errors.append(error)
                raise

        return request


@asynccontextmanager
async def counting(server: Server) -> AsyncIterator[Counting]:
    async with connected(Source(str(server.kubeconfig)), SystemClock()) as client:
        yield Counting(client)


def lease(client: Counting, name: str, identity: str, durations: Durations = QUICK, purpose: str = "") -> Lease:
    return Lease(client, SystemClock(), "default", name, identity, durations, purpose)


async def test_acquiring_renewing_and_releasing_cause_no_conflict(server: Server) -> None:
    async with counting(server) as client:
        for identity in ("first", "second"):
            async with held(lease(client, "in-good-order", identity)) as leadership:
                with anyio.fail_after(PATIENCE):
                    await client.renewed_often.wait()
                assert leadership.may_write()

        left = (await client.get(LEASE, "default", "in-good-order"))["spec"]

    assert [type(error) for error in client.errors] == [NotFound], "the first get: there is no Lease yet"
    assert client.requests.count("list") == 0
    assert client.requests.count("create") == 1
    assert left["holderIdentity"] == ""
    assert left["leaseTransitions"] == 1


async def test_while_one_holds_it_another_gets_an_error_that_names_the_holder(server: Server) -> None:
    async with counting(server) as client, held(lease(client, "contested", "first")):
        with pytest.raises(LeaseTaken, match="held by first"):
            async with held(lease(client, "contested", "second", Durations(0.3, 0.2, 0.05)), patience=0.1):
                pass


async def test_what_it_is_held_for_is_in_the_lease_while_it_is_held(server: Server) -> None:
    async with counting(server) as client:
        async with held(lease(client, "annotated", "first", purpose="sync -f racks.yaml in namespace x")):
            await client.client.patch(LEASE, "default", "annotated", {"metadata": {"annotations": {"theirs": "stays"}}})
            current = CurrentHolder()
            with pytest.raises(LeaseTaken, match=r"held by first, since \d{4}-\S+Z, for: sync -f racks\.yaml in namespace x$"):
                async with held(lease(client, "annotated", "second"), patience=0.0, current=current):
                    pass
        left = await client.get(LEASE, "default", "annotated")
        async with held(lease(client, "annotated", "second"), patience=0.0, current=current):
            pass

    assert (left["spec"]["holderIdentity"], left["metadata"]["annotations"]) == ("", {"theirs": "stays"})


async def test_a_leader_whose_lease_is_taken_over_stops_and_does_not_take_it_back(server: Server) -> None:
    async with counting(server) as client:
        with pytest.raises(LeaseLost):
            async with held(lease(client, "usurped", "first")):
                await client.patch(LEASE, "default", "usurped", {"spec": {"holderIdentity": "usurper"}})
                await anyio.sleep_forever()

        left = (await client.get(LEASE, "default", "usurped"))["spec"]

    assert left["holderIdentity"] == "usurper"


async def test_a_namespace_that_does_not_exist_is_reported_at_once(server: Server) -> None:
    async with counting(server) as client:
        with pytest.raises(NotFound):
            async with held(Lease(client, SystemClock(), "nowhere", "engine", "first", QUICK)):
                pass
