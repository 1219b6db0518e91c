"""WatchingCluster: the provider that lists once and then watches, so that `observe` makes no call and changes are noticed at once."""

from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Protocol

import anyio
import anyio.lowlevel

from engine.errors import AlreadyExists, ClusterError, Conflict, NotFound, ServerFault, Unreachable
from engine.event import Event
from engine.ids import Kind, ResourceId
from engine.observed import Live, Unlisted, unlisted
from engine.operation import Operation
from engine.runtime.clock import Clock
from engine.runtime.logs import Log
from engine.runtime.provider import TRANSIENT, Client, Observation, Scope, TakenNames
from engine.world_update import LiveChange
from providers.cache_state import CacheState, InformerObserver, NoInformerObserver
from providers.cluster import Cluster, raise_if_nothing_observed
from providers.informer import Informer
from providers.listing import is_newer, is_older
from providers.live_store import LiveStore
from providers.observed_changes import ObservedChanges
from providers.snapshot import observation, targets
from resources.base import kinds

DOUBTFUL = (Unreachable, ServerFault, Conflict, AlreadyExists, NotFound)
"""Errors of writes after which a store may be wrong: the write may have been done, or was planned from outdated objects."""

DELIVERY = 4
"""How many turns of the event loop an observation lets pass, so that the watches deliver what has arrived and nothing is planned from older
news: a connection reads in the first one, a watch stores in the next."""

CONCURRENCY = 8
"""How many doubtful objects are read at a time."""


class Feed(Protocol):
    """A store, and whether it can be trusted. An `Informer` is one."""

    @property
    def store(self) -> LiveStore:
        """The objects."""
        ...

    @property
    def synced(self) -> anyio.Event:
        """Set after the first list, successful or not."""
        ...

    @property
    def served(self) -> bool:
        """Whether the server serves the kind."""
        ...

    @property
    def error(self) -> ClusterError | None:
        """Why the store cannot be trusted; None if it can."""
        ...


def cache_state(informer: Informer[Any], objects: int) -> CacheState:
    """The state of the cache that the informer fills, with that many objects."""
    store = informer.store
    return CacheState(store.target.kind, store.namespace, informer.confirmed_at, informer.is_filled, informer.last_error, objects)


class WatchingCluster:
    """`engine.runtime.provider.Provider` and `WatchingProvider` over a client. Outside of `watching` it lists, as `Cluster` does.

    An exception of our own code in a watch goes to `log` with its traceback. `observer` is told of lists and watches.
    """

    def __init__(self, client: Client, clock: Clock, log: Log | None = None, observer: InformerObserver | None = None) -> None:
        self._client, self._clock, self._log = client, clock, log
        self._observer = observer or NoInformerObserver()
        self._cluster = Cluster(client, clock)
        self._scope: Scope | None = None
        """The scope that is watched; None: none is."""
        self._feeds: Sequence[Feed] = ()
        self._versioned: Sequence[LiveStore] = ()
        """The stores of kinds that are read and written in one of several versions."""
        self._informers: Sequence[Informer[LiveStore]] = ()
        self._changed = anyio.Event()
        self._changes: list[LiveChange | None] = []
        """What has changed since the last observation; None: something else than one object."""
        self._next_change = anyio.Event()
        """Set, and replaced, at each change."""
        self._last: Observation | None = None
        """The last observation; None once something has changed since."""
        self._history = ObservedChanges()
        self._doubtful: set[ResourceId] = set()
        """Objects to read before the next observation, because a write of ours ended with a `DOUBTFUL` error."""

    @asynccontextmanager
    async def watching(self, scope: Scope) -> AsyncGenerator[None]:
        """Watch everything in the scope while the block runs."""
        self._cluster.register(scope)
        async with self._feeding(scope) as feeds:
            self._scope, self._feeds, self._last, self._doubtful = scope, feeds, None, set()
            self._versioned = [feed.store for feed in feeds if kinds.newer(feed.store.target.kind)]
            self._history = ObservedChanges()
            try:
                yield
            finally:
                self._scope, self._feeds = None, ()

    def _feeding(self, scope: Scope) -> AbstractAsyncContextManager[Sequence[Feed]]:
        """The stores of the scope, kept up to date while the block runs."""
        return self._informing(scope)

    @asynccontextmanager
    async def _informing(self, scope: Scope) -> AsyncGenerator[Sequence[Feed]]:
        informers = [
            Informer(
                LiveStore(target, self._note_change),
                self._client,
                self._clock,
                on_status=self._note_change,
                on_internal_error=self._log_internal_error,
                observer=self,
            )
            for target in targets(scope)
        ]
        self._informers = informers
        async with anyio.create_task_group() as tasks:
            for informer in informers:
                tasks.start_soon(informer.run)
            try:
                yield informers
            finally:
                self._informers = ()
                tasks.cancel_scope.cancel()

    def caches(self) -> tuple[CacheState, ...]:
        """The state of every cache now; empty while nothing is watched. May be called in any thread: it only reads single values."""
        return tuple(cache_state(informer, len(informer.store.lives)) for informer in self._informers)

    async def changed(self, concerns: Callable[[LiveChange], bool] | None = None, *, keeping: bool = False) -> None:
        """Return when something has changed since the last `observe`, with `concerns` something of which that is true."""
        if concerns is None:
            await self._changed.wait()
            return
        seen = 0
        while not any(self._concerns(concerns, self._changes[index], keeping) for index in range(seen, len(self._changes))):
            if keeping:
                seen = len(self._changes)
            else:
                self._changes = []
            await self._next_change.wait()

    def _concerns(self, concerns: Callable[[LiveChange], bool], change: LiveChange | None, keeping: bool) -> bool:
        """Whether a change is one to wait for. What is not known is left to the other waits if it is kept for them."""
        return concerns(change) if change is not None else not keeping

    def compact(self) -> None:
        """Compress the objects that have arrived and are still parsed."""
        for feed in self._feeds:
            feed.store.compact()

    def _note_change(self, change: LiveChange | None = None) -> None:
        """Discard the last observation, and let `changed` return."""
        self._last = None
        self._changed.set()
        self._changes.append(change)
        self._next_change.set()
        self._next_change = anyio.Event()

    def listed(self, kind: Kind) -> None:
        """Pass it on."""
        self._observer.listed(kind)

    def watched(self, kind: Kind) -> None:
        """Pass it on."""
        self._observer.watched(kind)

    def failed(self, kind: Kind, error: ClusterError) -> None:
        """Pass it on, and log it. What lasts is reported as an incomplete kind."""
        self._observer.failed(kind, error)
        if self._log is not None:
            self._log.debug("watch failed", kind=kind.key, error=error)

    def _log_internal_error(self, error: Exception) -> None:
        if self._log is not None:
            self._log.error("internal error", error=error, exc_info=error)

    async def observe(self, scope: Scope) -> Observation:
        """The contents of the stores, once all have been listed; the same object as before if nothing has changed.

        Raises `Unauthorized`, and `Unreachable` if no store is up to date and the server does not answer.
        """
        if self._scope is not scope:
            return await self._cluster.observe(scope)
        await self._read_doubtful()
        for feed in self._feeds:
            if not feed.synced.is_set():
                await feed.synced.wait()
        for _ in range(DELIVERY):
            await anyio.lowlevel.checkpoint()
        errors = {feed.store.target.kind.key: error for feed in self._feeds if (error := feed.error) is not None}
        raise_if_nothing_observed(errors.values(), anything=any(feed.served and feed.error is None for feed in self._feeds))
        if self._last is None or errors or self._last.incomplete:
            self._changed, self._changes = anyio.Event(), []
            self._last = self._observation(scope, {kind: unlisted(error) for kind, error in errors.items()})
        return self._last

    def _observation(self, scope: Scope, incomplete: Mapping[str, Unlisted]) -> Observation:
        """What the stores hold. If it is known what has changed since the last observation, it says so."""
        stores = [feed.store for feed in self._feeds]
        unserved = {feed.store.target.kind.key for feed in self._feeds if not feed.served}
        unserved |= {store.target.kind.key for store in stores if store.kind is not store.target.kind and is_older(store.kind, scope)}
        unserved |= self._newer_versions()
        if (later := self._history.later(scope, stores, incomplete, unserved)) is not None:
            return later
        whole = observation(scope, ((store.target.kind, store.lives.values()) for store in stores), incomplete, unserved)
        self._history.begin(whole, stores)
        return whole

    async def execute(self, operation: Operation, uids: Mapping[ResourceId, str]) -> Mapping[str, Any] | None:
        """Make the operation's API call, and put its answer into the stores before the watch reports it."""
        try:
            answer = await self._cluster.execute(operation, uids)
        except DOUBTFUL:
            if self._stores(operation.id):
                self._doubtful.add(operation.id)
            raise
        for store in self._stores(operation.id):
            store.assume(operation, answer)
        return answer

    async def scan(self, kind: Kind, visit: Callable[[Mapping[str, Any]], bool], *, fields: str = "") -> None:
        """Call `visit` with each object of the kind in all namespaces, until it returns false."""
        await self._cluster.scan(kind, visit, fields=fields)

    async def get(self, id: ResourceId) -> Live | None:
        """The object of that id, read from the server now; the stores are corrected by it."""
        known = [(store, store.lives.get(id)) for store in self._stores(id)]
        current = await self._cluster.get(id)
        for store, before in known:
            store.correct(before, current)
        self._doubtful.discard(id)
        return current

    def _newer_versions(self) -> set[str]:
        """The kinds that are listed, and therefore written, in a newer version than their own."""
        for store in self._versioned:
            self._cluster.use_version(store.kind)
        return {kinds.unread(store.target.kind) for store in self._versioned if is_newer(store.kind, store.target.kind)}

    def _stores(self, id: ResourceId) -> list[LiveStore]:
        """The stores in which an object of that id would be."""
        return [feed.store for feed in self._feeds if feed.store.contains(id)]

    async def _read_doubtful(self) -> None:
        """Read the doubtful objects before anything is planned: an object that is not known to exist would be created again.

        Raises the first transient error; its object stays doubtful.
        """
        if not self._doubtful:
            return
        limit = anyio.CapacityLimiter(CONCURRENCY)
        errors: list[ClusterError] = []

        async def read(id: ResourceId) -> None:
            async with limit:
                try:
                    await self.get(id)
                except TRANSIENT as error:
                    errors.append(error)
                except ClusterError as error:
                    self._doubtful.discard(id)  # The server refuses the read: the watch will report the object.
                    if self._log is not None:
                        self._log.warning("not read", object=id, error=error)

        async with anyio.create_task_group() as tasks:
            for id in sorted(self._doubtful):
                tasks.start_soon(read, id)
        for error in errors:
            raise error

    async def record(self, event: Event) -> None:
        """Write a Kubernetes Event."""
        await self._cluster.record(event)

    def trying(self) -> Cluster | None:
        """The same cluster, every write a dry run; None if the client cannot do that."""
        return self._cluster.trying()

    async def openapi(self, version: str) -> Mapping[str, Any]:
        """The types that the server publishes of a group and version; empty if there are none."""
        return await self._cluster.openapi(version)

    async def taken(self, ids: Collection[ResourceId]) -> TakenNames:
        """Which of the objects exist, read from the server now."""
        return await self._cluster.taken(ids)

    async def serves(self, kind: Kind) -> bool:
        """Whether the cluster serves that kind."""
        return await self._cluster.serves(kind)
