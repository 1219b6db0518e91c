"""Law 12: the time until a small set is ready does not depend, beyond a constant, on how much others have asked for."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import replace

from engine.errors import Forbidden, RefusedBy
from engine.ids import NAMESPACE, Kind
from engine.runtime.apply import Sending
from engine.runtime.provider import Body
from engine.runtime.steps import SentPlan
from grove_sandbox.clients.inprocess import InProcessClient
from resources.base import kinds
from tests.builders import clique, podcliqueset
from tests.stories.process import ASIDE, WRITES, Call, Process
from tests.stories.stage import Stage, stage

pytestmark = pytest.mark.anyio

SECONDS_PER_WRITE = 0.01
"""How long the API server takes for a write. It serves one at a time: with more calls in progress each waits for those before it."""

CONSTANT = 4.0
"""Seconds that a small set may take longer beside others than alone: a few passes, and before each of its calls the at most 48 that are in
progress."""

MANY_REFUSALS = 90
"""More than the calls that are refused of one set in two minutes: those that are in progress when the first ones are refused, and a few
after each pause."""


class Other(Struct, frozen=True):
    """A set of another team."""

    replicas: int
    is_refused: bool
    """Whether the quota of its namespace has no room for pods."""
    is_deleted: bool
    """Whether it is deleted a little before the small set is created."""
    is_near: bool = False
    """Whether it is in the namespace of the small set."""

    @property
    def writes(self) -> int:
        """How many calls it takes at least to create what it consists of."""
        return 4 * self.replicas


class Busy(InProcessClient):
    """A client of an API server that does one write after the other, each of which takes a while."""

    def __init__(self, cluster: Stage, seconds_per_event: float) -> None:
        super().__init__(cluster.api)
        self._clock, self._turn, self._seconds_per_event = cluster.clock, anyio.Lock(), seconds_per_event

    def __getattribute__(self, name: str) -> Any:
        verb = super().__getattribute__(name)
        if name not in WRITES:
            return verb

        async def write(kind: Any, *rest: Any, **options: Any) -> Any:
            if kind.name not in ASIDE:
                async with self._turn:
                    await self._clock.sleep(SECONDS_PER_WRITE)
            elif kind == kinds.EVENT:
                await self._clock.sleep(self._seconds_per_event)
            return await verb(kind, *rest, **options)

        return write


def refusing(call: Call) -> Forbidden | None:
    """The refusal of pods of the sets whose names say so."""
    verb, kind, name = call
    if (verb, kind) == ("create", kinds.POD) and name.startswith("refused"):
        return Forbidden(
            f'pods "{name}" is forbidden: exceeded quota: few, requested: pods=1, used: pods=5, limited: pods=5', by=RefusedBy.QUOTA
        )
    return None


@asynccontextmanager
async def shared_with(*others: Other, seconds_per_event: float = 0.0) -> AsyncIterator[Stage]:
    """A cluster in which these sets have been created, each in a namespace of its own or in that of the small set, and `engine run` is at
    work on them."""
    async with stage() as cluster:
        ours = cluster.process = Process(Busy(cluster, seconds_per_event))
        ours.refuses = refusing
        names = [f"{'refused' if other.is_refused else 'other'}{number}" for number, other in enumerate(others)]
        namespaces = ["default" if other.is_near else name for name, other in zip(names, others, strict=True)]
        for name, namespace, other in zip(names, namespaces, others, strict=True):
            if not other.is_near:
                await cluster.kubectl.create(NAMESPACE, "", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
            await cluster.apply(podcliqueset(name, clique("w", 1), replicas=other.replicas, namespace=namespace))
        async with cluster.running(ours):
            await cluster.clock.advance(2.0)
            for name, namespace, other in zip(names, namespaces, others, strict=True):
                if other.is_deleted:
                    await cluster.kubectl.delete(kinds.PODCLIQUESET, namespace, name, propagation="Background")
            await cluster.clock.advance(1.0)
            yield cluster


async def seconds_until_ready(cluster: Stage) -> float:
    """How long it takes from the creation of a set of two pods until its status says that it is available."""
    began = cluster.clock.monotonic()
    await cluster.apply(podcliqueset("small", clique("w", 2)))
    await cluster.until(lambda: cluster.there(kinds.PODCLIQUESET)["small"].get("status", {}).get("availableReplicas") == 1)
    return cluster.clock.monotonic() - began


async def alone() -> float:
    async with shared_with() as cluster:
        return await seconds_until_ready(cluster)


async def beside(*others: Other) -> float:
    async with shared_with(*others) as cluster:
        return await seconds_until_ready(cluster)


OTHERS = st.lists(st.builds(Other, st.integers(1, 150), st.booleans(), st.booleans(), st.booleans()), min_size=1, max_size=4)


@settings(max_examples=4, phases=[Phase.explicit, Phase.generate])
@given(OTHERS)
def test_a_small_set_is_ready_as_soon_as_without_others(others: list[Other]) -> None:
    assert anyio.run(lambda: beside(*others)) < anyio.run(alone) + CONSTANT


@pytest.mark.parametrize("is_near", [False, True], ids=["elsewhere", "in the same namespace"])
async def test_a_small_set_is_not_delayed_by_thousands_of_calls_for_another_team(*, is_near: bool) -> None:
    creating, refused = Other(300, is_refused=False, is_deleted=False), Other(300, is_refused=True, is_deleted=False)
    deleting, refused_and_deleted = Other(300, is_refused=False, is_deleted=True), Other(300, is_refused=True, is_deleted=True)
    assert creating.writes * SECONDS_PER_WRITE > 2 * CONSTANT

    usual = await alone()

    for other in (creating, refused, deleting, refused_and_deleted):
        assert await beside(replace(other, is_near=is_near)) < usual + CONSTANT


class Slow(InProcessClient):
    """A client whose calls for one set take a while."""

    def __init__(self, cluster: Stage, name: str, seconds: float) -> None:
        super().__init__(cluster.api)
        self._clock, self._name, self._seconds = cluster.clock, name, seconds

    async def create(self, kind: Kind, namespace: str, body: Body, **options: Any) -> dict[str, Any]:
        if kind == kinds.POD and body["metadata"]["name"].startswith(self._name):
            await self._clock.sleep(self._seconds)
        return await super().create(kind, namespace, body, **options)


async def test_a_small_set_does_not_wait_until_the_short_plan_of_another_is_sent() -> None:
    async with stage() as cluster, cluster.running(Process(Slow(cluster, "slow", seconds=3.0))):
        await cluster.clock.advance(2.0)
        await cluster.apply(podcliqueset("slow", clique("w", 2)))
        await cluster.clock.advance(0.5)
        began = cluster.clock.monotonic()
        await cluster.apply(podcliqueset("small", clique("w", 2)))

        await cluster.until(lambda: sum(name.startswith("small") for name in cluster.there(kinds.POD)) == 2)

        assert cluster.clock.monotonic() - began < 0.5
        assert not any(name.startswith("slow") for name in cluster.there(kinds.POD))


async def test_a_small_set_does_not_wait_for_the_events_of_others() -> None:
    usual = await alone()

    async with shared_with(Other(300, is_refused=True, is_deleted=False), seconds_per_event=2.0) as cluster:
        assert await seconds_until_ready(cluster) < usual + CONSTANT


async def test_refused_replicas_take_as_many_calls_whatever_their_number() -> None:
    for replicas in (100, 400):
        async with shared_with(Other(replicas, is_refused=True, is_deleted=False)) as cluster:
            await cluster.clock.advance(replicas * 4 * SECONDS_PER_WRITE + 120.0)

            assert len(cluster.process.refused) < MANY_REFUSALS


async def test_a_plan_that_edits_its_own_set_is_sent_to_its_end_unless_a_user_edits_the_set(monkeypatch: pytest.MonkeyPatch) -> None:
    dropped: list[str] = []
    drop = Sending.drop

    def note(sending: Sending, holds: Callable[[SentPlan], bool]) -> None:
        before = set(sending.plans)
        drop(sending, holds)
        dropped.extend(sent.plan.root.name for sent in before if sent.is_dropped)

    monkeypatch.setattr(Sending, "drop", note)
    async with shared_with(Other(300, is_refused=False, is_deleted=False, is_near=True)) as cluster:
        assert cluster.there(kinds.PODCLIQUESET)["other0"]["metadata"]["generation"] == 2, "the engine has added defaults"
        assert dropped == []

        await cluster.apply(podcliqueset("other0", clique("w", 1), replicas=250))
        await cluster.clock.advance(1.0)
        assert dropped == ["other0"]
