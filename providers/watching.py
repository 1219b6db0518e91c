"""WatchingCluster: the provider that lists once and then watches, so that `observe` makes no call and changes are noticed at once."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio

from engine.errors import AlreadyExists, ClusterError, Conflict, NotFound, ServerFault, Unreachable
from engine.event import Event
from engine.ids import Kind, ResourceId
from engine.observed import Live
from engine.operation import Operation
from engine.runtime.client import Client
from engine.runtime.clock import Clock
from engine.runtime.logs import Log
from engine.runtime.provider import TRANSIENT, Observation, Scope
from providers.cache_state import CacheState, InformerObserver, NoInformerObserver
from providers.cluster import Cluster, raise_if_nothing_observed
from providers.informer import Informer
from providers.listing import is_older
from providers.live_store import LiveStore
from providers.scoping import observation, targets

DOUBTFUL = (Unreachable, ServerFault, Conflict, AlreadyExists, NotFound)
"""Errors of writes after which a store may be wrong: the write may have been done, or was planned from outdated objects."""

CONCURRENCY = 8
"""How many doubtful objects are read at a time."""


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
        self._informers: list[Informer[LiveStore]] = []
        self._changed = anyio.Event()
        self._last: Observation | None = None
        """The last observation; None once something has changed since."""
        self._doubtful: set[ResourceId] = set()
        """Objects to read before the next observation, because a write of ours ended with a `DOUBTFUL` error."""

    @asynccontextmanager
    async def watching(self, scope: Scope) -> AsyncGenerator[None]:
        """Watch everything in the scope while the block runs."""
        self._cluster.register(scope)
        self._informers = [
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
        self._scope, self._last, self._doubtful = scope, None, set()
        async with anyio.create_task_group() as tasks:
            for informer in self._informers:
                tasks.start_soon(informer.run)
            try:
                yield
            finally:
                self._scope, self._informers = None, []
                tasks.cancel_scope.cancel()

    def caches(self) -> tuple[CacheState, ...]:
        """The state of every cache now; empty while nothing is watched. May be called in any thread: it only reads single values."""
        return tuple(
            CacheState(
                informer.store.target.kind,
                informer.store.namespace,
                informer.confirmed_at,
                informer.is_filled,
                informer.last_error,
                len(informer.store.lives),
            )
            for informer in self._informers
        )

    async def changed(self) -> None:
        """Return when something has changed since the last `observe`."""
        await self._changed.wait()

    def _note_change(self) -> None:
        """Discard the last observation, and let `changed` return."""
        self._last = None
        self._changed.set()

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
        for informer in self._informers:
            await informer.synced.wait()
        errors = {informer.store.target.kind.key: error for informer in self._informers if (error := informer.error) is not None}
        raise_if_nothing_observed(errors.values(), anything=any(informer.served and informer.error is None for informer in self._informers))
        if self._last is None or errors or self._last.incomplete:
            self._changed = anyio.Event()
            self._last = self._observation(scope, {kind: str(error) for kind, error in errors.items()})
        return self._last

    def _observation(self, scope: Scope, incomplete: Mapping[str, str]) -> Observation:
        stores = [informer.store for informer in self._informers]
        unserved = {informer.store.target.kind.key for informer in self._informers if not informer.served}
        older = {store.target.kind.key for store in stores if is_older(store.kind, scope)}
        return observation(scope, ((store.target.kind, store.lives.values()) for store in stores), incomplete, unserved | older)

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

    async def get(self, id: ResourceId) -> Live | None:
        """The object of that id, read from the server now; the stores are corrected by it."""
        known = [(store, store.lives.get(id)) for store in self._stores(id)]
        current = await self._cluster.get(id)
        for store, before in known:
            store.correct(before, current)
        self._doubtful.discard(id)
        return current

    def _stores(self, id: ResourceId) -> list[LiveStore]:
        """The stores in which an object of that id would be."""
        return [informer.store for informer in self._informers if informer.store.contains(id)]

    async def _read_doubtful(self) -> None:
        """Read the doubtful objects before anything is planned: an object that is not known to exist would be created again.

        Raises the first transient error; its object stays doubtful.
        """
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

    async def serves(self, kind: Kind) -> bool:
        """Whether the cluster serves that kind."""
        return await self._cluster.serves(kind)
