"""WatchingCluster: a cluster is listed once and then watched: observing makes no call, and changes are noticed at once."""

import io
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Any

import anyio
import pytest

from engine.errors import ClusterError, Expired, Forbidden, NotFound, ServerFault, Unreachable
from engine.ids import Kind
from engine.observed import live
from engine.operation import Cause, Create, Delete, Expect, Operation, Patch
from engine.runtime.logs import logger
from engine.runtime.provider import Observation, Scope, WatchingProvider
from grove_sandbox.api.verbs import Api
from grove_sandbox.clients.inprocess import InProcessClient
from grove_sandbox.clock import VirtualClock
from providers.cache_state import FRESH_FOR
from providers.informer import ABSENT_FOR, LONGEST_PAUSE, STALE_AFTER
from providers.watching import WatchingCluster
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


class FaultyClient:
    """A client that counts its calls, and whose watches and answers fail on request."""

    def __init__(self, client: InProcessClient) -> None:
        self.client = client
        self.calls: Counter[str] = Counter()
        self.errors: dict[str, ClusterError] = {}
        """Verb -> the error of every call, and of watches that end."""
        self.hang_up = anyio.Event()
        self.lists_answered = anyio.Event()
        """Lists are answered when it is set, with what existed when they were called."""
        self.lists_answered.set()
        self.is_silent = self.is_brief = False
        """Whether watches report nothing, and whether they end at once."""
        self.first_events: list[Any] = []
        """The events with which every watch begins."""
        self.create_error: ClusterError | None = None
        """Raised in place of the answer to a create, which is done."""

    async def create(self, *arguments: Any, **options: Any) -> Any:
        answer = await self.client.create(*arguments, **options)
        if self.create_error is not None:
            raise self.create_error
        return answer

    async def list(self, kind: Kind, namespace: str = "", *, labels: str = "", fields: str = "") -> Any:
        self._count("list")
        listing = await self.client.list(kind, namespace, labels=labels, fields=fields)
        await self.lists_answered.wait()
        return listing

    async def watch(self, kind: Kind, namespace: str = "", **options: Any) -> AsyncGenerator[tuple[str, dict[str, Any]]]:
        self._count("watch")
        for event in self.first_events:
            yield event
        if self.is_brief:
            return
        async with aclosing(self.client.watch(kind, namespace, **options)) as events:
            while (event := await self._next(events)) is not None:
                if not self.is_silent:
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
        self.calls[verb] += 1
        return getattr(self.client, verb)

    def _count(self, verb: str) -> None:
        self.calls[verb] += 1
        self._check(verb)

    def _check(self, verb: str) -> None:
        if verb in self.errors:
            raise self.errors[verb]

    def drop(self) -> None:
        """Break every watch."""
        self.hang_up.set()
        self.hang_up = anyio.Event()


class Cluster:
    """A cluster, a client of another writer, and the provider."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.api = Api(self.clock, seed=1)
        self.others = InProcessClient(self.api, "others")
        self.client = FaultyClient(InProcessClient(self.api))
        self.provider = WatchingCluster(self.client, self.clock)

    async def make(self, kind: Kind, name: str, **more: Any) -> dict[str, Any]:
        """Another writer creates an object."""
        return await self.others.create(kind, "default", body(kind, name, **more))

    async def observe(self) -> Observation:
        """An observation, after all events that are under way."""
        await self.clock.advance(0)
        return await self.provider.observe(SCOPE)

    async def noticed(self, act: Callable[[], Any]) -> bool:
        """Whether `changed` returns at once after the act."""
        await self.observe()
        seen = anyio.Event()

        async def wait() -> None:
            await self.provider.changed()
            seen.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            await act()
            await self.clock.advance(0)
            tasks.cancel_scope.cancel()
        return seen.is_set()


def body(kind: Kind, name: str, **more: Any) -> dict[str, Any]:
    """A Service, Secret or pod with our labels."""
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
    """The operation that creates an object."""
    return Create(kind.id("default", name), "missing", Cause.INTENT, manifest=body(kind, name))


def names(seen: Observation) -> list[str]:
    """The names of the children."""
    return sorted(one.id.name for one in seen.children)


@asynccontextmanager
async def watched(**errors: ClusterError) -> AsyncIterator[Cluster]:
    """A cluster with one Service that is being watched."""
    cluster = Cluster()
    cluster.client.errors = dict(errors)
    await cluster.make(SERVICE, "one")
    async with cluster.provider.watching(SCOPE):
        yield cluster


async def test_caches_say_when_the_server_has_confirmed_them() -> None:
    async with watched() as cluster:
        await cluster.observe()
        await cluster.clock.advance(20)
        cluster.client.errors = {"watch": Unreachable("no route to host"), "list": Unreachable("no route to host")}
        cluster.client.drop()
        await cluster.clock.advance(FRESH_FOR)
        now, broken = cluster.clock.monotonic(), {state.kind: state for state in cluster.provider.caches()}
        cluster.client.errors = {}
        await cluster.clock.advance(LONGEST_PAUSE * 2)
        mended = {state.kind: state for state in cluster.provider.caches()}

        assert broken[SERVICE].is_stale(now)
        assert isinstance(broken[SERVICE].error, Unreachable)
        assert (broken[SERVICE].objects, broken[SERVICE].is_filled) == (1, True)
        assert not mended[SERVICE].is_stale(cluster.clock.monotonic())
        assert mended[SERVICE].error is None
    assert cluster.provider.caches() == ()


async def test_the_cache_of_a_kind_that_is_not_served_stays_fresh() -> None:
    async with watched() as cluster:
        await cluster.observe()
        for _ in range(100):
            await cluster.clock.advance(3)
            widgets = next(state for state in cluster.provider.caches() if state.kind == WIDGET)

            assert not widgets.is_stale(cluster.clock.monotonic())
            assert widgets.is_filled


async def test_observing_makes_no_call_while_nothing_changes() -> None:
    async with watched() as cluster:
        first = await cluster.observe()
        before = cluster.client.calls.copy()
        for _ in range(40):
            await cluster.clock.advance(1)
            assert await cluster.observe() is first

        assert names(first) == ["one"]
        assert first.unserved == frozenset({"Widget"})
        assert cluster.client.calls - before == Counter()
        assert isinstance(cluster.provider, WatchingProvider)


async def test_creations_changes_and_deletions_by_others_are_noticed_at_once() -> None:
    async with watched() as cluster:
        assert await cluster.noticed(lambda: cluster.make(SERVICE, "two"))
        assert names(await cluster.observe()) == ["one", "two"]

        assert await cluster.noticed(lambda: cluster.others.patch(SERVICE, "default", "two", {"metadata": {"annotations": {"x": "y"}}}))
        assert await cluster.noticed(lambda: cluster.others.delete(SERVICE, "default", "one"))
        assert names(await cluster.observe()) == ["two"]
        assert not await cluster.noticed(lambda: cluster.make(kinds.NODE, "n", metadata={"name": "n"}))


async def test_our_own_writes_are_observed_before_the_watch_reports_them() -> None:
    async with watched() as cluster:
        await cluster.observe()
        answer = await cluster.provider.execute(creation(SERVICE, "mine"), {})
        seen = await cluster.provider.observe(SCOPE)
        assert names(seen) == ["mine", "one"]

        assert answer is not None
        gone = Delete(SERVICE.id("default", "mine"), "orphaned", Cause.INTENT, expect=Expect(answer["metadata"]["uid"]))
        await cluster.provider.execute(gone, {})
        assert names(await cluster.provider.observe(SCOPE)) == ["one"]
        assert names(await cluster.observe()) == ["one"]


async def test_a_late_answer_does_not_restore_a_deleted_object() -> None:
    async with watched() as cluster:
        await cluster.observe()
        made = await cluster.make(SERVICE, "brief")
        await cluster.others.delete(SERVICE, "default", "brief")
        await cluster.observe()
        (services,) = cluster.provider._stores(SERVICE.id("default", "brief"))
        services.assume(creation(SERVICE, "brief"), made)

        assert names(await cluster.observe()) == ["one"]
        again = await cluster.make(SERVICE, "brief")
        assert live(again).uid in {one.uid for one in (await cluster.observe()).children}


async def test_after_a_watch_has_ended_broken_or_expired_nothing_is_missed() -> None:
    async with watched() as cluster:
        await cluster.observe()
        for end in (None, Expired("too old"), Unreachable("the line is dead"), ServerFault("not now")):
            if end is not None:
                cluster.client.errors = {"watch": end}
            cluster.client.drop()
            name = type(end).__name__.lower()
            await cluster.make(SERVICE, name)
            await cluster.clock.advance(1)
            cluster.client.errors = {}
            await cluster.clock.advance(60)
            assert name in names(await cluster.observe())
            assert (await cluster.observe()).incomplete == {}


async def test_the_last_observation_is_trusted_for_a_while_after_the_server_stops_answering_and_then_no_longer() -> None:
    async with watched() as cluster:
        await cluster.observe()
        cluster.client.errors = dict.fromkeys(("list", "watch"), Unreachable("nobody is there"))
        cluster.client.drop()
        await cluster.clock.advance(STALE_AFTER / 2)
        assert names(await cluster.observe()) == ["one"]

        await cluster.clock.advance(STALE_AFTER)
        with pytest.raises(Unreachable):
            await cluster.observe()

        cluster.client.errors = {}
        await cluster.clock.advance(120)
        assert names(await cluster.observe()) == ["one"]


async def test_a_kind_that_is_forbidden_is_incomplete_until_it_is_allowed() -> None:
    async with watched(list=Forbidden("not for you")) as cluster:
        seen = await cluster.observe()
        assert set(seen.incomplete) == {"Service", "Secret", "Pod"}
        assert seen.unserved == frozenset({"Widget"})

        cluster.client.errors = {}
        await cluster.clock.advance(120)
        assert (await cluster.observe()).incomplete == {}


async def test_a_kind_that_is_served_later_is_observed_then() -> None:
    async with watched() as cluster:
        assert (await cluster.observe()).unserved == frozenset({"Widget"})
        await cluster.others.create(kinds.CRD, "", WIDGETS)
        await cluster.make(WIDGET, "w")
        await cluster.clock.advance(2 * ABSENT_FOR)
        seen = await cluster.observe()

        assert seen.unserved == frozenset()
        assert [one.id.name for one in seen.references] == ["w"]


async def test_a_kind_that_is_removed_and_served_again_is_observed_again() -> None:
    async with watched() as cluster:
        for name in ("before", "after"):
            await cluster.others.create(kinds.CRD, "", WIDGETS)
            await cluster.make(WIDGET, name)
            await cluster.clock.advance(2 * ABSENT_FOR)
            assert [one.id.name for one in (await cluster.observe()).references] == [name]

            await cluster.others.delete(kinds.CRD, "", "widgets.example.com")
            await cluster.clock.advance(ABSENT_FOR)
            seen = await cluster.observe()
            assert (len(seen.references), sorted(seen.unserved), dict(seen.incomplete)) == (0, ["Widget"], {})


async def test_the_contents_of_secrets_are_masked_in_lists_watches_and_answers() -> None:
    async with watched() as cluster:
        await cluster.observe()
        await cluster.make(SECRET, "told", stringData={"password": "hunter2"})
        await cluster.observe()
        await cluster.others.patch(SECRET, "default", "told", {"stringData": {"password": "hunter3"}})
        secrets = [one for one in (await cluster.observe()).children if one.id.kind == "Secret"]

        assert secrets and not any("aHVudGVy" in str(one.body) or "hunter" in str(one.body) for one in secrets)


async def test_a_write_without_an_answer_is_read_before_the_next_observation_however_late_the_watch_is() -> None:
    async with watched() as cluster:
        await cluster.observe()
        cluster.client.is_silent = True
        cluster.client.create_error = Unreachable("the answer was lost")
        with pytest.raises(Unreachable):
            await cluster.provider.execute(creation(SERVICE, "mine"), {})
        assert names(await cluster.observe()) == ["mine", "one"]

        await cluster.others.delete(SERVICE, "default", "one")
        (one,) = (each for each in (await cluster.observe()).children if each.id.name == "one")
        gone = Patch(one.id, "orphaned", Cause.INTENT, patch={}, expect=Expect(one.uid, one.revision))
        with pytest.raises(NotFound):
            await cluster.provider.execute(gone, {})
        assert names(await cluster.observe()) == ["mine"]


async def test_an_object_that_loses_our_labels_is_gone_and_comes_back_with_them() -> None:
    async with watched() as cluster:
        await cluster.observe()
        for label, seen in ((None, []), ("b", ["one"]), (None, []), ("b", ["one"])):
            await cluster.others.patch(SERVICE, "default", "one", {"metadata": {"labels": {"a": label}}})
            assert names(await cluster.observe()) == seen


async def test_a_list_that_is_older_than_our_writes_does_not_undo_them() -> None:
    async with watched() as cluster:
        (one,) = (await cluster.observe()).children
        cluster.client.errors = {"watch": Expired("too old")}
        cluster.client.drop()
        cluster.client.lists_answered = anyio.Event()
        await cluster.clock.advance(1)
        cluster.client.errors = {}
        await cluster.provider.execute(creation(SERVICE, "mine"), {})
        await cluster.provider.execute(Delete(one.id, "orphaned", Cause.INTENT, expect=Expect(one.uid)), {})
        cluster.client.is_silent = True
        cluster.client.lists_answered.set()
        await cluster.clock.advance(1)

        assert names(await cluster.observe()) == ["mine"]


async def test_a_watch_that_lags_does_not_restore_an_object_that_we_have_replaced() -> None:
    async with watched() as cluster:
        (old,) = (await cluster.observe()).children
        await cluster.provider.execute(Delete(old.id, "orphaned", Cause.INTENT, expect=Expect(old.uid)), {})
        answer = await cluster.provider.execute(creation(SERVICE, "one"), {})
        assert answer is not None
        (services,) = cluster.provider._stores(old.id)
        services._deleted.clear()
        services.apply("MODIFIED", dict(old.body))

        assert [one.uid for one in (await cluster.observe()).children] == [answer["metadata"]["uid"]]


async def test_no_malformed_event_ends_the_watch() -> None:
    async with watched() as cluster:
        await cluster.observe()
        said: tuple[Any, ...] = ({}, {"metadata": 1}, {"metadata": {"name": 1, "labels": [1], "resourceVersion": None}}, [], None)
        for number, garbage in enumerate(said):
            cluster.client.first_events.append(("MODIFIED", garbage))
            cluster.client.drop()
            await cluster.clock.advance(60)
            cluster.client.first_events.clear()
            await cluster.make(SERVICE, f"after-{number}")
            await cluster.clock.advance(60)

        seen = await cluster.observe()
        assert (len(seen.children), seen.incomplete) == (6, {})


async def test_an_exception_of_our_own_code_in_a_watch_is_logged_with_its_traceback() -> None:
    stream = io.StringIO()
    async with watched() as cluster:
        cluster.provider._log = logger(stream, format="text")
        cluster.client.first_events = [("MODIFIED", {"metadata": {"resourceVersion": "1"}})]
        cluster.client.drop()
        await cluster.clock.advance(1)

    assert "internal error" in stream.getvalue()
    assert "Traceback (most recent call last)" in stream.getvalue()
    assert "KeyError" in stream.getvalue()


@pytest.mark.parametrize("event", [None, ("BOOKMARK", {"metadata": {"resourceVersion": "1"}})])
async def test_a_server_that_ends_every_watch_at_once_is_not_asked_without_pause(event: Any) -> None:
    async with watched() as cluster:
        await cluster.observe()
        cluster.client.is_brief = True
        cluster.client.first_events = [event] if event else []
        cluster.client.drop()
        before = cluster.client.calls.copy()
        await cluster.clock.advance(600)

        assert (cluster.client.calls - before).total() < 4 * 600 / 20
