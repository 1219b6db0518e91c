"""DivisibleCluster: the watching provider whose watches several shards of one process share."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import anyio
from anyio.abc import TaskGroup
from msgspec import Struct, field

from engine.runtime.clock import Clock
from engine.runtime.logs import Log
from engine.runtime.provider import Client, Provider, Scope
from engine.shards import Shard
from providers.cache_state import CacheState, InformerObserver
from providers.divided_store import DividedStore, OnChange, PartFeed
from providers.informer import Informer
from providers.snapshot import Target, targets
from providers.watching import Feed, WatchingCluster, cache_state


class DivisibleCluster(WatchingCluster):
    """A `WatchingCluster` that is a `DividingProvider` as well."""

    _watches: "_SharedWatches | None" = None
    """The watches that the shards share; None: there are no shards."""

    @asynccontextmanager
    async def dividing(self, count: int) -> AsyncGenerator[Callable[[Shard], Provider]]:
        """Yield what returns the provider of a shard; all of them share one watch for each kind while the block runs."""
        async with anyio.create_task_group() as tasks:
            watches = self._watches = _SharedWatches(tasks, count, self._client, self._clock, self._log_internal_error, self)
            yield lambda shard: _ShardCluster(self._client, self._clock, self._log, shard, watches)
            tasks.cancel_scope.cancel()

    def caches(self) -> tuple[CacheState, ...]:
        """The state of every cache now; with shards of those that they share. May be called in any thread."""
        return super().caches() if self._watches is None else self._watches.caches()


class _SharedWatch(Struct, frozen=True, eq=False):
    """The watch of one list."""

    informer: Informer[DividedStore]
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)

    async def run(self) -> None:
        """Watch until the last shard has left."""
        with self.scope:
            await self.informer.run()

    def note_status(self) -> None:
        """Tell all shards that the state of the watch may have changed."""
        for feed in tuple(self.informer.store.feeds):
            feed.note_status()


class _SharedWatches:
    """The watches that the shards of a process share: one for each list, begun by the first shard that needs it."""

    def __init__(
        self,
        tasks: TaskGroup,
        count: int,
        client: Client,
        clock: Clock,
        on_internal_error: Callable[[Exception], None],
        observer: InformerObserver,
    ) -> None:
        self._tasks, self._count = tasks, count
        self._client, self._clock, self._on_internal_error = client, clock, on_internal_error
        self._observer = observer
        self._watches: dict[Target, _SharedWatch] = {}

    def caches(self) -> tuple[CacheState, ...]:
        """The state of the cache of every list."""
        informers = [watch.informer for watch in tuple(self._watches.values())]
        return tuple(cache_state(informer, informer.store.objects) for informer in informers)

    def join(self, target: Target, shard: Shard, on_change: OnChange) -> PartFeed:
        """What the shard sees of that list, as it is after this call: what was listed before may lack what the last holder wrote."""
        watch = self._watches.get(target)
        if watch is not None:
            feed = watch.informer.store.join(shard, watch.informer, on_change)
            watch.informer.list_again()
            return feed
        watch = self._watches[target] = self._begin(target)
        feed = watch.informer.store.join(shard, watch.informer, on_change)
        self._tasks.start_soon(watch.run)
        return feed

    def _begin(self, target: Target) -> _SharedWatch:
        def note_status() -> None:
            watch.note_status()

        informer = Informer(
            DividedStore(target, self._count),
            self._client,
            self._clock,
            on_status=note_status,
            on_internal_error=self._on_internal_error,
            observer=self._observer,
        )
        watch = _SharedWatch(informer)
        return watch

    def leave(self, target: Target, shard: Shard) -> None:
        """End the watch if no other shard needs it."""
        if self._watches[target].informer.store.leave(shard):
            self._watches.pop(target).scope.cancel()


class _ShardCluster(WatchingCluster):
    """The cluster as one shard sees it."""

    def __init__(self, client: Client, clock: Clock, log: Log | None, shard: Shard, watches: _SharedWatches) -> None:
        super().__init__(client, clock, log)
        self._shard, self._watches = shard, watches

    def _feeding(self, scope: Scope) -> AbstractAsyncContextManager[Sequence[Feed]]:
        """What the shard sees of the shared watches."""
        return self._sharing(list(targets(scope)))

    @asynccontextmanager
    async def _sharing(self, needed: Sequence[Target]) -> AsyncGenerator[Sequence[Feed]]:
        feeds = [self._watches.join(target, self._shard, self._note_change) for target in needed]
        try:
            yield feeds
        finally:
            for target in needed:
                self._watches.leave(target, self._shard)
