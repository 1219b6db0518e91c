"""Informer: a store stays up to date whatever becomes of its watches, and the server is asked for no more than that needs."""

from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from typing import Any

import anyio
import pytest

from engine.errors import ClusterError, Expired, Forbidden, ServerFault, Throttled, Unreachable
from engine.ids import Kind
from engine.runtime.provider import Listing
from grove_sandbox.actors.body import Body, Key, uid_of
from grove_sandbox.actors.store import InformerStore, run_informers
from grove_sandbox.api.verbs import Api
from grove_sandbox.clients.inprocess import InProcessClient
from grove_sandbox.clock import VirtualClock
from providers.informer import LONGEST_PAUSE, STALE_AFTER, Informer
from resources.base.kinds import CRD, PODGANG, SECRET
from resources.schema.crds import crds
from sandbox.tests.actors.manifests import gang

pytestmark = pytest.mark.anyio


class Unsteady(InProcessClient):
    """A client that records its calls and whose watches break: in place of their next event, or (`refused`) from the start."""

    def __init__(self, api: Api) -> None:
        super().__init__(api)
        self.errors: list[ClusterError] = []
        """Raised in place of the next events, one for each."""
        self.refused: ClusterError | None = None
        """Raised by every call."""
        self.hang_up = anyio.Event()
        self.calls: list[str] = []

    async def list(self, kind: Kind, namespace: str = "", *, labels: str = "", fields: str = "") -> Listing:
        self._call("list")
        return await super().list(kind, namespace, labels=labels, fields=fields)

    async def watch(self, kind: Kind, namespace: str = "", *, since: str, **options: Any) -> AsyncGenerator[tuple[str, dict[str, Any]]]:
        self._call(f"watch {since}")
        async with aclosing(super().watch(kind, namespace, since=since, **options)) as events:
            while event := await self._next(events):
                if self.errors:
                    raise self.errors.pop(0)
                yield event
        if self.refused is not None:
            raise self.refused

    async def _next(self, events: AsyncGenerator[tuple[str, dict[str, Any]]]) -> tuple[str, dict[str, Any]] | None:
        """The next event; None if the watch is cut before."""
        received: list[tuple[str, dict[str, Any]]] = []
        async with anyio.create_task_group() as tasks:

            async def receive() -> None:
                received.append(await anext(events))
                tasks.cancel_scope.cancel()

            tasks.start_soon(receive)
            await self.hang_up.wait()
            tasks.cancel_scope.cancel()
        return received[0] if received else None

    def _call(self, call: str) -> None:
        self.calls.append(call)
        if self.refused is not None:
            raise self.refused

    def cut(self) -> None:
        """End every watch."""
        self.hang_up.set()
        self.hang_up = anyio.Event()


class Cluster:
    """A fresh cluster, an informer of one kind in it, and the changes that its store reported."""

    def __init__(self, kind: Kind) -> None:
        self.clock = VirtualClock()
        self.client = Unsteady(Api(self.clock))
        self.changes: list[tuple[str, str]] = []
        self.store = InformerStore(kind, self._on_change)
        self.internal_errors: list[Exception] = []
        self.informer = Informer(self.store, self.client, self.clock, on_internal_error=self.internal_errors.append)

    def _on_change(self, key: Key, old: Body | None, new: Body | None) -> None:
        self.changes.append((key[1], "new" if old is None else "gone" if new is None else "changed"))

    async def make(self, *names: str) -> str:
        """Create Secrets; the revision of the last one."""
        made: dict[str, Any] = {}
        for name in names:
            made = await self.client.create(SECRET, "default", {"metadata": {"name": name}})
        return str(made["metadata"]["resourceVersion"])

    def error(self) -> ClusterError | None:
        """Why the store cannot be trusted."""
        return self.informer.error

    @property
    def names(self) -> set[str]:
        return {name for _, name in self.store.objects}


@asynccontextmanager
async def informed(kind: Kind = SECRET) -> AsyncGenerator[Cluster]:
    """An informer of one kind that has listed."""
    cluster = Cluster(kind)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(cluster.informer.run)
        await cluster.clock.advance(0)
        yield cluster
        tasks.cancel_scope.cancel()


async def test_additions_changes_and_deletions_are_reported_in_order() -> None:
    async with informed() as cluster:
        await cluster.make("b", "a")
        await cluster.client.patch(SECRET, "default", "b", {"metadata": {"labels": {"x": "y"}}})
        await cluster.client.delete(SECRET, "default", "a")
        await cluster.clock.advance(0)

        assert cluster.changes == [("b", "new"), ("a", "new"), ("b", "changed"), ("a", "gone")]
        assert cluster.names == {"b"}


@pytest.mark.parametrize("error", [Unreachable("cut"), ServerFault("503"), Throttled("429"), None])
async def test_after_a_transient_error_the_watch_resumes_at_the_last_revision_and_nothing_is_listed(error: ClusterError | None) -> None:
    async with informed() as cluster:
        last = await cluster.make("a")
        await cluster.clock.advance(0)
        cluster.client.calls.clear()
        cluster.client.refused = error
        cluster.client.cut()
        await cluster.clock.advance(0)
        await cluster.make("b")
        await cluster.clock.advance(10)
        cluster.client.refused = None
        await cluster.clock.advance(LONGEST_PAUSE)

        assert set(cluster.client.calls) == {f"watch {last}"}
        assert cluster.changes == [("a", "new"), ("b", "new")]


async def test_a_watch_that_breaks_in_the_middle_misses_nothing() -> None:
    async with informed() as cluster:
        cluster.client.errors = [Unreachable("cut")]
        await cluster.make("a", "b")
        await cluster.clock.advance(1)

        assert cluster.changes == [("a", "new"), ("b", "new")]
        assert cluster.client.calls.count("list") == 1


async def test_a_bookmark_moves_the_place_at_which_the_watch_resumes(monkeypatch: pytest.MonkeyPatch) -> None:
    async with informed() as cluster:
        first = cluster.client.calls[-1]
        await cluster.clock.advance(60)

        async def one_bookmark(*_: Any, since: str, **options: Any) -> AsyncGenerator[tuple[str, dict[str, Any]]]:
            cluster.client.calls.append(f"watch {since}")
            yield "BOOKMARK", {"metadata": {"resourceVersion": "1000"}}

        monkeypatch.setattr(cluster.client, "watch", one_bookmark)
        cluster.client.cut()
        await cluster.clock.advance(0)

        assert cluster.client.calls[:3] == ["list", first, first]
        assert cluster.client.calls[3] == "watch 1000"


async def test_a_forgotten_revision_leads_to_exactly_one_list_and_the_difference_is_reported() -> None:
    async with informed() as cluster:
        await cluster.make("stays", "goes")
        await cluster.clock.advance(0)
        cluster.client.errors = [Expired("too old")]
        await cluster.client.delete(SECRET, "default", "goes")
        await cluster.make("comes")
        await cluster.clock.advance(300)

        assert cluster.names == {"stays", "comes"}
        assert cluster.changes[2:] == [("goes", "gone"), ("comes", "new")]
        assert cluster.client.calls.count("list") == 2


async def test_an_event_that_cannot_be_processed_leads_to_a_list() -> None:
    async with informed() as cluster:

        def fail(key: Key, old: Body | None, new: Body | None) -> None:
            if not cluster.internal_errors:
                raise KeyError(key[1])

        cluster.store.subscribe(fail)
        await cluster.make("a", "b")
        await cluster.clock.advance(60)

        (error,) = cluster.internal_errors
        assert isinstance(error, KeyError)
        assert error.__traceback__ is not None
        assert cluster.names == {"a", "b"}
        assert (cluster.client.calls.count("list"), cluster.informer.error) == (2, None)


async def test_an_exception_of_our_own_code_is_reported_as_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(client: Any) -> str:
        raise KeyError("metadata")

    cluster = Cluster(SECRET)
    monkeypatch.setattr(cluster.store, "list", fail)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(cluster.informer.run)
        await cluster.clock.advance(0)
        tasks.cancel_scope.cancel()

    assert str(cluster.error()) == "internal error in the watch of secrets: KeyError: 'metadata'"
    assert isinstance(cluster.error(), ServerFault)


async def test_a_server_that_breaks_every_watch_is_not_asked_without_pause() -> None:
    async with informed() as cluster:
        cluster.client.errors = [Unreachable("cut")] * 1000
        await cluster.make("a")
        await cluster.clock.advance(300)

        assert len(cluster.client.calls) < 25


async def test_a_retry_waits_as_long_as_the_server_asks() -> None:
    async with informed() as cluster:
        cluster.client.calls.clear()
        cluster.client.refused = Throttled("busy", retry_after=100)
        cluster.client.cut()
        await cluster.clock.advance(99)
        assert cluster.client.calls == []

        await cluster.clock.advance(300)
        assert len(cluster.client.calls) == 3


async def test_the_contents_are_trusted_for_a_while_after_a_failure_and_again_as_soon_as_a_watch_is_open() -> None:
    async with informed() as cluster:
        cluster.client.refused = Unreachable("nobody answers")
        cluster.client.cut()
        await cluster.clock.advance(STALE_AFTER - 1)
        assert cluster.error() is None
        await cluster.clock.advance(STALE_AFTER)
        assert isinstance(cluster.error(), Unreachable)

        cluster.client.refused = None
        await cluster.clock.advance(2 * LONGEST_PAUSE)
        assert cluster.error() is None
        await cluster.clock.advance(3600)
        assert cluster.error() is None
        assert cluster.client.calls.count("list") == 1


async def test_a_watch_without_permission_is_reported_at_once() -> None:
    async with informed() as cluster:
        cluster.client.refused = Forbidden('cannot watch resource "pods"')
        cluster.client.cut()
        await cluster.clock.advance(1)

        assert isinstance(cluster.error(), Forbidden)


async def test_a_kind_that_is_not_served_is_empty_and_listed_as_soon_as_it_is_without_asking_for_it() -> None:
    cluster = Cluster(PODGANG)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run_informers, cluster.client, cluster.clock, cluster.store)
        await cluster.clock.advance(3600)
        assert cluster.store.synced.is_set()
        assert PODGANG not in await cluster.client.kinds()
        assert cluster.client.calls.count("list") == 2

        for definition in crds():
            await cluster.client.create(CRD, "", definition)
        await cluster.client.create(PODGANG, "default", {**gang("g", {}), "metadata": {"name": "g"}})
        await cluster.clock.advance(1)
        assert cluster.names == {"g"}
        tasks.cancel_scope.cancel()


async def test_an_answer_to_a_write_is_stored_at_once_and_reported_once() -> None:
    async with informed() as cluster:
        await cluster.make("a")
        await cluster.clock.advance(0)
        cluster.store.assume(await cluster.client.patch(SECRET, "default", "a", {"metadata": {"labels": {"x": "y"}}}))
        assert cluster.changes[-1] == ("a", "changed")

        await cluster.clock.advance(0)
        assert len(cluster.changes) == 2


async def test_an_answer_that_the_watch_has_overtaken_brings_nothing_back() -> None:
    async with informed() as cluster:
        await cluster.make("a")
        late = await cluster.client.patch(SECRET, "default", "a", {"metadata": {"labels": {"x": "y"}}})
        await cluster.client.delete(SECRET, "default", "a")
        await cluster.make("a")
        await cluster.clock.advance(0)
        cluster.store.assume(late)

        (secret,) = cluster.store.objects.values()
        assert uid_of(secret) != uid_of(late)
