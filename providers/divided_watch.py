"""DivisibleCluster: the watching provider whose watches several shards of one process share, each with a store of its own."""

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import anyio
from anyio.abc import TaskGroup
from msgspec import Struct, field

from engine.errors import ClusterError, ServerFault
from engine.observed import Live
from engine.runtime.clock import Clock
from engine.runtime.logs import Log
from engine.runtime.provider import Client, Provider, Scope
from engine.shards import Shard, shard_of
from engine.world_update import LiveChange
from providers.cache_state import CacheState, InformerObserver
from providers.informer import Informer
from providers.listing import ListedLives, list_lives
from providers.live_store import LiveStore
from providers.snapshot import Target, targets
from providers.watching import Feed, WatchingCluster, cache_state

OnChange = Callable[[LiveChange | None], None]
"""Called with a change; None: something else has changed than one object."""


class DividedStore:
    """The objects of one list that belong to the shards which have joined, one `LiveStore` for each."""

    def __init__(self, target: Target, count: int) -> None:
        self.target, self.kind = target, target.kind
        self.namespace, self.labels = target.namespace, target.sent
        self._count = count
        self._parts: dict[int, LiveStore] = {}
        self._feeds: dict[int, PartFeed] = {}
        """The shards that have joined."""

    @property
    def feeds(self) -> Iterable["PartFeed"]:
        """The feeds of the shards that have joined."""
        return self._feeds.values()

    @property
    def objects(self) -> int:
        """The number of objects that are kept."""
        return sum(len(part.lives) for part in tuple(self._parts.values()))

    def join(self, shard: Shard, informer: Informer["DividedStore"], on_change: OnChange) -> "PartFeed":
        """Keep the objects of that shard from now on. They are there after the next list that begins after this call."""
        part = self._part_of(shard.index)
        if part not in self._parts:
            self._parts[part] = LiveStore(self.target, lambda change: self._note_change(part, change))
        feed = self._feeds[shard.index] = PartFeed(informer, self._parts[part], on_change)
        return feed

    def leave(self, shard: Shard) -> bool:
        """Keep the objects of that shard no longer. Returns whether no shard is left."""
        del self._feeds[shard.index]
        if self.target.kind.namespaced or not self._feeds:
            del self._parts[self._part_of(shard.index)]
        return not self._feeds

    def _part_of(self, shard: int) -> int:
        return shard if self.target.kind.namespaced else UNDIVIDED

    def _note_change(self, part: int, change: LiveChange) -> None:
        """Notify the shards that see that part."""
        for shard, feed in self._feeds.items():
            if part in (shard, UNDIVIDED):
                feed.on_change(change)

    async def list(self, client: Client) -> str:
        """Replace the contents by a list, and return its revision. Shards that join meanwhile have to wait for the next one."""
        parts, feeds = dict(self._parts), list(self._feeds.values())
        listed: ListedLives | None = None
        for part in parts.values():
            part.begin_list()
        try:
            listed = await list_lives(client, self.target)
        finally:
            groups = self._grouped(listed.lives) if listed is not None else {}
            for key, part in parts.items():
                part.end_list(listed._replace(lives=groups.get(key, ())) if listed is not None else None)
        self.kind = listed.kind
        for feed in feeds:
            feed.note_listed()
        return listed.revision

    def _grouped(self, lives: Iterable[Live]) -> Mapping[int, Sequence[Live]]:
        groups: dict[int, list[Live]] = {part: [] for part in self._parts}
        for live in lives:
            if (group := groups.get(self._part_in(live.id.namespace))) is not None:
                group.append(live)
        return groups

    def _part_in(self, namespace: str) -> int:
        """The part with the objects of a namespace."""
        return shard_of(namespace, self._count) if self.target.kind.namespaced else UNDIVIDED

    def apply(self, event: str, body: dict[str, Any]) -> None:
        """Apply an event of the watch, if its object belongs to a shard that has joined."""
        if (part := self._parts.get(self._part_in(body["metadata"].get("namespace", "")))) is not None:
            part.apply(event, body)

    def clear(self) -> None:
        """Remove everything: the kind is not served, which is as good as an empty list."""
        for part in self._parts.values():
            part.clear()
        for feed in self._feeds.values():
            feed.note_listed()


class PartFeed:
    """What one shard sees of a divided store; a `Feed`."""

    def __init__(self, informer: Informer[DividedStore], store: LiveStore, on_change: OnChange) -> None:
        self.store, self.on_change = store, on_change
        self.synced = anyio.Event()
        """Set after the first list since the shard joined, successful or not."""
        self._informer = informer
        self._is_listed = False
        if informer.last_error is not None:
            self.synced.set()  # The next attempt may be half a minute away.

    @property
    def served(self) -> bool:
        """Whether the server serves the kind."""
        return self._informer.served

    @property
    def error(self) -> ClusterError | None:
        """Why the store cannot be trusted; None if it can."""
        if self._is_listed:
            return self._informer.error
        return self._informer.last_error or ServerFault(f"{self.store.target.kind.plural} have not been listed yet")

    def note_listed(self) -> None:
        """Note that everything of the shard is in the store."""
        self._is_listed = True
        self.synced.set()

    def note_status(self) -> None:
        """Note that the state of the informer may have changed: after a failure the shard must not wait for a list that succeeds."""
        if self._informer.last_error is not None:
            self.synced.set()
        self.on_change(None)


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


UNDIVIDED = -1
"""In place of a shard's index for a cluster-scoped kind, whose objects all shards see."""
