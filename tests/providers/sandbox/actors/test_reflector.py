"""Reflections: what an actor sees stays true whatever becomes of its watches."""

from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from typing import Any

import anyio
import pytest

from engine.errors import ClusterError, Expired, Unreachable
from engine.ids import Kind
from providers.sandbox.actors.body import Body, Key, uid_of
from providers.sandbox.actors.reflector import Reflection, reflect
from providers.sandbox.api.verbs import Api
from providers.sandbox.clients.inprocess import InProcessClient
from providers.sandbox.clock import VirtualClock
from resources.base.kinds import CRD, PODGANG, SECRET
from resources.schema.crds import crds
from tests.providers.sandbox.actors.manifests import gang

pytestmark = pytest.mark.anyio


class Unsteady(InProcessClient):
    """A client whose watches break in place of their next event, once for each trouble in wait."""

    def __init__(self, api: Api) -> None:
        super().__init__(api)
        self.troubles: list[ClusterError] = []
        self.watched: list[str] = []

    async def watch(
        self, kind: Kind, namespace: str = "", *, since: str, labels: str = "", fields: str = ""
    ) -> AsyncGenerator[tuple[str, dict[str, Any]]]:
        self.watched.append(since)
        async with aclosing(super().watch(kind, namespace, since=since, labels=labels, fields=fields)) as events:
            async for event in events:
                if self.troubles:
                    raise self.troubles.pop(0)
                yield event


class Sight:
    """One reflection on a fresh cluster, and what it told."""

    def __init__(self, kind: Kind) -> None:
        self.clock = VirtualClock()
        self.client = Unsteady(Api(self.clock))
        self.told: list[tuple[str, str]] = []
        self.seen = Reflection(kind, self._listen)

    def _listen(self, key: Key, old: Body | None, new: Body | None) -> None:
        self.told.append((key[1], "new" if old is None else "gone" if new is None else "changed"))

    async def make(self, *names: str) -> None:
        for name in names:
            await self.client.create(SECRET, "default", {"metadata": {"name": name}})

    @property
    def names(self) -> set[str]:
        return {name for _, name in self.seen.objects}


@asynccontextmanager
async def sight(kind: Kind = SECRET) -> AsyncGenerator[Sight]:
    made = Sight(kind)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(reflect, made.client, made.clock, made.seen)
        await made.clock.advance(0)
        yield made
        tasks.cancel_scope.cancel()


async def test_what_is_there_and_what_comes_and_goes_is_told_in_order() -> None:
    async with sight() as here:
        await here.make("b", "a")
        await here.client.patch(SECRET, "default", "b", {"metadata": {"labels": {"x": "y"}}})
        await here.client.delete(SECRET, "default", "a")
        await here.clock.advance(0)

        assert here.told == [("b", "new"), ("a", "new"), ("b", "changed"), ("a", "gone")]
        assert here.names == {"b"}


async def test_a_watch_that_breaks_is_taken_up_where_it_broke() -> None:
    async with sight() as here:
        here.client.troubles = [Unreachable("cut")]
        await here.make("a", "b")
        await here.clock.advance(1)

        assert here.told == [("a", "new"), ("b", "new")]


async def test_after_a_forgotten_revision_the_world_is_listed_again_and_the_difference_told() -> None:
    async with sight() as here:
        await here.make("stays", "goes")
        await here.clock.advance(0)
        here.client.troubles = [Expired("too old")]
        await here.client.delete(SECRET, "default", "goes")
        await here.make("comes")
        await here.clock.advance(1)

        assert here.names == {"stays", "comes"}
        assert here.told[2:] == [("goes", "gone"), ("comes", "new")]


async def test_a_server_that_breaks_every_watch_is_not_asked_without_pause() -> None:
    async with sight() as here:
        here.client.troubles = [Unreachable("cut")] * 1000
        await here.make("a")
        await here.clock.advance(300)

        assert len(here.client.watched) < 25


async def test_a_kind_that_is_not_served_is_empty_and_seen_as_soon_as_it_is_without_asking_for_it() -> None:
    async with sight(PODGANG) as here:
        assert here.seen.synced.is_set()
        await here.clock.advance(3600)
        assert PODGANG not in await here.client.kinds()

        for definition in crds():
            await here.client.create(CRD, "", definition)
        await here.client.create(PODGANG, "default", {**gang("g", {}), "metadata": {"name": "g"}})
        await here.clock.advance(1)
        assert here.names == {"g"}


async def test_a_write_of_our_own_is_seen_at_once_and_told_once() -> None:
    async with sight() as here:
        await here.make("a")
        await here.clock.advance(0)
        here.seen.assume(await here.client.patch(SECRET, "default", "a", {"metadata": {"labels": {"x": "y"}}}))
        assert here.told[-1] == ("a", "changed")

        await here.clock.advance(0)
        assert len(here.told) == 2


async def test_an_answer_that_the_watch_has_overtaken_brings_nothing_back() -> None:
    async with sight() as here:
        await here.make("a")
        late = await here.client.patch(SECRET, "default", "a", {"metadata": {"labels": {"x": "y"}}})
        await here.client.delete(SECRET, "default", "a")
        await here.make("a")
        await here.clock.advance(0)
        here.seen.assume(late)

        (seen,) = here.seen.objects.values()
        assert uid_of(seen) != uid_of(late)
