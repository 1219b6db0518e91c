"""WatchingCluster: a cluster is listed once and followed from then on: a look costs no call, and a change is noticed at once."""

from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Any

import anyio
import pytest

from engine.errors import ClusterError, Expired, Forbidden, NotFound, ServerFault, Unreachable
from engine.ids import Kind
from engine.observed import live
from engine.operation import Cause, Expect, Operation
from engine.runtime.provider import Observation, Scope, WatchingProvider
from engine.verb import Verb
from providers.following import ABSENT_FOR, STALE_AFTER
from providers.sandbox.api.verbs import Api
from providers.sandbox.clients.inprocess import InProcessClient
from providers.sandbox.clock import VirtualClock
from providers.watched import WatchingCluster
from resources.base import kinds
from resources.base.kinds import POD, SECRET, SERVICE

pytestmark = pytest.mark.anyio

WIDGET = Kind("example.com", "v1", "Widget", "widgets")
SCOPE = Scope((), (SERVICE, SECRET), "a=b", references=(POD, WIDGET))
WIDGETS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}],
    },
}


class Line:
    """A client that counts what is asked, and can be cut."""

    def __init__(self, client: InProcessClient) -> None:
        self.client = client
        self.asked: Counter[str] = Counter()
        self.cut: dict[str, ClusterError] = {}
        """Verb -> why it is not answered."""
        self.hang_up = anyio.Event()
        self.held = anyio.Event()
        """Lists are answered when it is set, with what was there when they were asked for."""
        self.held.set()
        self.deaf = self.brief = False
        """Whether watches tell nothing, and whether they end at once."""
        self.garbage: list[Any] = []
        """What every watch begins with."""
        self.lost: ClusterError | None = None
        """What becomes of the answers to creations."""

    async def create(self, *asked: Any, **options: Any) -> Any:
        answer = await self.client.create(*asked, **options)
        if self.lost is not None:
            raise self.lost
        return answer

    async def list(self, kind: Kind, namespace: str = "", *, labels: str = "", fields: str = "") -> Any:
        self._ask("list")
        listing = await self.client.list(kind, namespace, labels=labels, fields=fields)
        await self.held.wait()
        return listing

    async def watch(self, kind: Kind, namespace: str = "", **options: Any) -> AsyncGenerator[tuple[str, dict[str, Any]]]:
        self._ask("watch")
        for event in self.garbage:
            yield event
        if self.brief:
            return
        async with aclosing(self.client.watch(kind, namespace, **options)) as events:
            while (event := await self._next(events)) is not None:
                if not self.deaf:
                    yield event
        self._check("watch")

    async def _next(self, events: AsyncGenerator[tuple[str, dict[str, Any]]]) -> tuple[str, dict[str, Any]] | None:
        """The next event, or nothing where the line is cut before it comes."""
        heard: list[tuple[str, dict[str, Any]]] = []
        async with anyio.create_task_group() as tasks:

            async def hear() -> None:
                heard.append(await anext(events))
                tasks.cancel_scope.cancel()

            tasks.start_soon(hear)
            await self.hang_up.wait()
            tasks.cancel_scope.cancel()
        return heard[0] if heard else None

    def __getattr__(self, verb: str) -> Any:
        self.asked[verb] += 1
        return getattr(self.client, verb)

    def _ask(self, verb: str) -> None:
        self.asked[verb] += 1
        self._check(verb)

    def _check(self, verb: str) -> None:
        if verb in self.cut:
            raise self.cut[verb]

    def drop(self) -> None:
        """Break every watch."""
        self.hang_up.set()
        self.hang_up = anyio.Event()


class Scene:
    """A cluster, somebody else in it, and us."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.api = Api(self.clock, seed=1)
        self.others = InProcessClient(self.api, "others")
        self.line = Line(InProcessClient(self.api))
        self.ours = WatchingCluster(self.line, self.clock)

    async def make(self, kind: Kind, name: str, **more: Any) -> dict[str, Any]:
        """Somebody else makes an object."""
        return await self.others.create(kind, "default", body(kind, name, **more))

    async def look(self) -> Observation:
        """A look, after everybody has had the time for what is on its way."""
        await self.clock.advance(0)
        return await self.ours.observe(SCOPE)

    async def noticed(self, act: Callable[[], Any]) -> bool:
        """Whether something that happens is noticed at once."""
        await self.look()
        seen = anyio.Event()

        async def wait() -> None:
            await self.ours.changed()
            seen.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            await act()
            await self.clock.advance(0)
            tasks.cancel_scope.cancel()
        return seen.is_set()


def body(kind: Kind, name: str, **more: Any) -> dict[str, Any]:
    """A Service, Secret or pod of our making."""
    specs: dict[Kind, dict[str, Any]] = {SERVICE: {"ports": [{"port": 80}]}, POD: {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"spec": specs[kind]} if kind in specs else {}
    return {
        "apiVersion": kind.api_version,
        "kind": kind.name,
        "metadata": {"name": name, "namespace": "default", "labels": {"a": "b"}},
        **spec,
        **more,
    }


def creation(kind: Kind, name: str) -> Operation:
    """We make an object."""
    return Operation(Verb.CREATE, kind.id("default", name), "wanted", Cause.INTENT, body=body(kind, name))


def names(seen: Observation) -> list[str]:
    """The names of the children."""
    return sorted(one.id.name for one in seen.children)


@asynccontextmanager
async def scene(**cut: ClusterError) -> AsyncIterator[Scene]:
    made = Scene()
    made.line.cut = dict(cut)
    await made.make(SERVICE, "one")
    async with made.ours.following(SCOPE):
        yield made


async def test_a_look_costs_nothing_as_long_as_nothing_happens() -> None:
    async with scene() as cluster:
        first = await cluster.look()
        before = cluster.line.asked.copy()
        for _ in range(40):
            await cluster.clock.advance(1)
            assert await cluster.look() is first

        assert names(first) == ["one"]
        assert first.unserved == frozenset({"Widget"})
        assert cluster.line.asked - before == Counter()
        assert isinstance(cluster.ours, WatchingProvider)


async def test_what_others_make_change_and_delete_is_noticed_at_once() -> None:
    async with scene() as cluster:
        assert await cluster.noticed(lambda: cluster.make(SERVICE, "two"))
        assert names(await cluster.look()) == ["one", "two"]

        assert await cluster.noticed(lambda: cluster.others.patch(SERVICE, "default", "two", {"metadata": {"annotations": {"x": "y"}}}))
        assert await cluster.noticed(lambda: cluster.others.delete(SERVICE, "default", "one"))
        assert names(await cluster.look()) == ["two"]
        assert not await cluster.noticed(lambda: cluster.make(kinds.NODE, "n", metadata={"name": "n"}))


async def test_what_we_write_is_seen_before_the_watch_tells_of_it() -> None:
    async with scene() as cluster:
        await cluster.look()
        answer = await cluster.ours.execute(creation(SERVICE, "mine"), {})
        seen = await cluster.ours.observe(SCOPE)
        assert names(seen) == ["mine", "one"]

        assert answer is not None
        gone = Operation(Verb.DELETE, SERVICE.id("default", "mine"), "unwanted", Cause.INTENT, expect=Expect(answer["metadata"]["uid"]))
        await cluster.ours.execute(gone, {})
        assert names(await cluster.ours.observe(SCOPE)) == ["one"]
        assert names(await cluster.look()) == ["one"]


async def test_an_answer_that_comes_late_does_not_bring_back_what_has_gone() -> None:
    async with scene() as cluster:
        await cluster.look()
        made = await cluster.make(SERVICE, "brief")
        await cluster.others.delete(SERVICE, "default", "brief")
        await cluster.look()
        (service,) = (one for one in cluster.ours._followed[1] if one.target.kind == SERVICE)  # type: ignore[index]
        service.assume(creation(SERVICE, "brief"), made)

        assert names(await cluster.look()) == ["one"]
        again = await cluster.make(SERVICE, "brief")
        assert live(again).uid in {one.uid for one in (await cluster.look()).children}


async def test_a_watch_that_ends_or_whose_place_is_forgotten_is_taken_up_again_and_nothing_is_missed() -> None:
    async with scene() as cluster:
        await cluster.look()
        for end in (None, Expired("too old"), Unreachable("the line is dead"), ServerFault("not now")):
            if end is not None:
                cluster.line.cut = {"watch": end}
            cluster.line.drop()
            name = type(end).__name__.lower()
            await cluster.make(SERVICE, name)
            await cluster.clock.advance(1)
            cluster.line.cut = {}
            await cluster.clock.advance(60)
            assert name in names(await cluster.look())
            assert (await cluster.look()).incomplete == {}


async def test_what_was_seen_last_stands_for_a_while_when_the_server_falls_silent_and_then_no_longer() -> None:
    async with scene() as cluster:
        await cluster.look()
        cluster.line.cut = dict.fromkeys(("list", "watch"), Unreachable("nobody is there"))
        cluster.line.drop()
        await cluster.clock.advance(STALE_AFTER / 2)
        assert names(await cluster.look()) == ["one"]

        await cluster.clock.advance(STALE_AFTER)
        with pytest.raises(Unreachable):
            await cluster.look()

        cluster.line.cut = {}
        await cluster.clock.advance(120)
        assert names(await cluster.look()) == ["one"]


async def test_what_may_not_be_listed_is_a_hole_until_it_may() -> None:
    async with scene(list=Forbidden("not for you")) as cluster:
        seen = await cluster.look()
        assert set(seen.incomplete) == {"Service", "Secret", "Pod"}
        assert seen.unserved == frozenset({"Widget"})

        cluster.line.cut = {}
        await cluster.clock.advance(120)
        assert (await cluster.look()).incomplete == {}


async def test_a_kind_that_the_server_has_only_later_is_seen_when_it_has_it() -> None:
    async with scene() as cluster:
        assert (await cluster.look()).unserved == frozenset({"Widget"})
        await cluster.others.create(kinds.CRD, "", WIDGETS)
        await cluster.make(WIDGET, "w")
        await cluster.clock.advance(2 * ABSENT_FOR)
        seen = await cluster.look()

        assert seen.unserved == frozenset()
        assert [one.id.name for one in seen.references] == ["w"]


async def test_a_kind_that_is_taken_away_and_given_again_is_seen_again() -> None:
    async with scene() as cluster:
        for name in ("before", "after"):
            await cluster.others.create(kinds.CRD, "", WIDGETS)
            await cluster.make(WIDGET, name)
            await cluster.clock.advance(2 * ABSENT_FOR)
            assert [one.id.name for one in (await cluster.look()).references] == [name]

            await cluster.others.delete(kinds.CRD, "", "widgets.example.com")
            await cluster.clock.advance(ABSENT_FOR)
            seen = await cluster.look()
            assert (len(seen.references), sorted(seen.unserved), dict(seen.incomplete)) == (0, ["Widget"], {})


async def test_what_secrets_hold_is_forgotten_whichever_way_they_come() -> None:
    async with scene() as cluster:
        await cluster.look()
        await cluster.make(SECRET, "told", stringData={"password": "hunter2"})
        await cluster.look()
        await cluster.others.patch(SECRET, "default", "told", {"stringData": {"password": "hunter3"}})
        secrets = [one for one in (await cluster.look()).children if one.id.kind == "Secret"]

        assert secrets and not any("aHVudGVy" in str(one.body) or "hunter" in str(one.body) for one in secrets)


async def test_what_was_made_without_an_answer_is_seen_at_the_next_look_however_late_the_watch_is() -> None:
    async with scene() as cluster:
        await cluster.look()
        cluster.line.deaf = True
        cluster.line.lost = Unreachable("the answer was lost")
        with pytest.raises(Unreachable):
            await cluster.ours.execute(creation(SERVICE, "mine"), {})
        assert names(await cluster.look()) == ["mine", "one"]

        await cluster.others.delete(SERVICE, "default", "one")
        (one,) = (each for each in (await cluster.look()).children if each.id.name == "one")
        gone = Operation(Verb.PATCH, one.id, "unwanted", Cause.INTENT, body={}, expect=Expect(one.uid, one.revision))
        with pytest.raises(NotFound):
            await cluster.ours.execute(gone, {})
        assert names(await cluster.look()) == ["mine"]


async def test_what_loses_our_labels_is_gone_and_comes_back_with_them() -> None:
    async with scene() as cluster:
        await cluster.look()
        for label, seen in ((None, []), ("b", ["one"]), (None, []), ("b", ["one"])):
            await cluster.others.patch(SERVICE, "default", "one", {"metadata": {"labels": {"a": label}}})
            assert names(await cluster.look()) == seen


async def test_a_list_that_is_older_than_what_we_did_meanwhile_does_not_undo_it() -> None:
    async with scene() as cluster:
        (one,) = (await cluster.look()).children
        cluster.line.cut = {"watch": Expired("too old")}
        cluster.line.drop()
        cluster.line.held = anyio.Event()
        await cluster.clock.advance(1)
        cluster.line.cut = {}
        await cluster.ours.execute(creation(SERVICE, "mine"), {})
        await cluster.ours.execute(Operation(Verb.DELETE, one.id, "unwanted", Cause.INTENT, expect=Expect(one.uid)), {})
        cluster.line.deaf = True
        cluster.line.held.set()
        await cluster.clock.advance(1)

        assert names(await cluster.look()) == ["mine"]


async def test_a_watch_that_is_behind_does_not_bring_back_what_we_have_replaced() -> None:
    async with scene() as cluster:
        (old,) = (await cluster.look()).children
        await cluster.ours.execute(Operation(Verb.DELETE, old.id, "unwanted", Cause.INTENT, expect=Expect(old.uid)), {})
        answer = await cluster.ours.execute(creation(SERVICE, "one"), {})
        assert answer is not None
        (service,) = (one for one in cluster.ours._followed[1] if one.target.kind == SERVICE)  # type: ignore[index]
        service._gone.clear()
        service._hear("MODIFIED", dict(old.body))

        assert [one.uid for one in (await cluster.look()).children] == [answer["metadata"]["uid"]]


async def test_nothing_that_a_server_says_ends_the_following() -> None:
    async with scene() as cluster:
        await cluster.look()
        said: tuple[Any, ...] = ({}, {"metadata": 1}, {"metadata": {"name": 1, "labels": [1], "resourceVersion": None}}, [], None)
        for number, garbage in enumerate(said):
            cluster.line.garbage.append(("MODIFIED", garbage))
            cluster.line.drop()
            await cluster.clock.advance(60)
            cluster.line.garbage.clear()
            await cluster.make(SERVICE, f"after-{number}")
            await cluster.clock.advance(60)

        seen = await cluster.look()
        assert (len(seen.children), seen.incomplete) == (6, {})


@pytest.mark.parametrize("event", [None, ("BOOKMARK", {"metadata": {"resourceVersion": "1"}})])
async def test_a_server_that_ends_every_watch_at_once_is_not_asked_without_pause(event: Any) -> None:
    async with scene() as cluster:
        await cluster.look()
        cluster.line.brief = True
        cluster.line.garbage = [event] if event else []
        cluster.line.drop()
        before = cluster.line.asked.copy()
        await cluster.clock.advance(600)

        assert (cluster.line.asked - before).total() < 4 * 600 / 20
