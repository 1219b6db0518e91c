"""ReferenceCaches: the objects that admission rules look up, watched, with nothing but the fields that the rules read."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import anyio
from msgspec import Struct, field

from engine.errors import ClusterError, NotFound
from engine.ids import ResourceId
from engine.observed import Live, live
from engine.runtime.clock import Clock
from engine.runtime.logs import Log
from engine.runtime.provider import Client
from providers.cache_state import CacheState
from providers.informer import Informer
from providers.listing import list_lives, typed
from providers.snapshot import Target
from resources.admission.look_ups import GRAPHS, SETS, SIZE, LookUp
from resources.base.set_size import SetSizes

LONGEST_READ: Final = 3.0
"""Seconds that the reads for one review may take together: an API server waits for the answer."""
MOST_READ: Final = 20
"""How many objects are read for one review."""


class ReferenceStore:
    """The objects of one look-up."""

    def __init__(self, look_up: LookUp, namespace: str) -> None:
        self.look_up = look_up
        self.kind, self.namespace, self.labels = look_up.kind, namespace, ""
        self.lives: dict[ResourceId, Live] = {}
        self._sizes: dict[str, dict[str, Any]] = {}
        """Namespace -> name -> size, of objects that have one: a review of one namespace does not wait for those of others."""

    async def list(self, client: Client) -> str:
        """Replace the contents by a list, and return its revision."""
        listed = await list_lives(client, Target(self.look_up.kind, self.namespace, self.labels))
        lives = {object.id: live(self.look_up.kept(object.body)) for object in listed.lives}
        sizes: dict[str, dict[str, Any]] = {}
        for id, kept in lives.items() if self.look_up.sized else ():
            sizes.setdefault(id.namespace, {})[id.name] = kept.body[SIZE]
        self.kind, self.lives, self._sizes = listed.kind, lives, sizes  # Others read in threads of their own: all of it at once.
        return listed.revision

    def apply(self, event: str, body: dict[str, Any]) -> None:
        """Apply an event of the watch."""
        object = typed(self.kind, body)
        if event == "DELETED":
            self.lives.pop(object.id, None)
            sizes = self._sizes.get(object.id.namespace, {})
            if sizes.pop(object.id.name, None) is not None and not sizes:
                del self._sizes[object.id.namespace]
        else:
            self.lives[object.id] = kept = live(self.look_up.kept(object.body))
            if self.look_up.sized:
                self._sizes.setdefault(object.id.namespace, {})[object.id.name] = kept.body[SIZE]

    def clear(self) -> None:
        """Remove everything."""
        self.lives, self._sizes = {}, {}

    def sizes(self, namespace: str) -> Mapping[str, Any]:
        """Name -> size, of the objects of a namespace that have one."""
        return self._sizes.get(namespace, {}).copy()


class Reads(Struct, frozen=True):
    """The results of reads for one review."""

    objects: Mapping[ResourceId, Live | None] = field(default_factory=dict)
    """None: the object does not exist."""
    failed: frozenset[ResourceId] = frozenset()
    """What could not be read."""


NO_READS: Final = Reads()


class CachedReferences:
    """`References` for one review: the caches, and what was read for it.

    A cache may be a moment behind: a set may be created right after the binding that it names. So what a cache does not have is `missing`,
    and is to be read before the rules are asked again.
    """

    def __init__(self, caches: "ReferenceCaches", reads: Reads = NO_READS) -> None:
        self.missing: set[ResourceId] = set()
        """What a complete cache does not have, and was not read."""
        self._caches, self._reads = caches, reads
        self._unknown = {key for id in reads.failed for key in id.keys()}

    def find(self, id: ResourceId) -> Live | None:
        """The object, if it is in a cache or was read."""
        if id in self._reads.objects:
            return self._reads.objects[id]
        object = self._caches.find(id)
        if object is None and id not in self._reads.failed and any(map(self.knows, id.keys())):
            self.missing.add(id)
        return object

    def knows(self, kind: str) -> bool:
        """Whether the cache of that kind is complete and up to date, and no read of it has failed."""
        return kind not in self._unknown and self._caches.knows(kind)

    def sizes(self, namespace: str) -> SetSizes | None:
        """The PodCliqueSets of a namespace, as far as the cache is complete and up to date."""
        return self._caches.sizes(namespace)


class ReferenceCaches:
    """The caches of all look-ups. `run` and `read` belong to one event loop; everything else may be called in any thread."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        log: Log,
        look_ups: Iterable[LookUp],
        namespaces: Sequence[str] = (),
        *,
        asked_elsewhere: bool = True,
    ) -> None:
        """`namespaces`: those to read; none: all. `asked_elsewhere`: whether reviews may be about others, too."""
        self._client, self._clock, self._log = client, clock, log
        self._namespaces, self._has_all = tuple(namespaces), not asked_elsewhere
        self._wanted = tuple(look_ups)
        self._informers: dict[LookUp, tuple[Informer[ReferenceStore], ...]] = {}
        self._is_changed = anyio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        """The event loop of `run`."""

    async def run(self) -> None:
        """Watch what is looked up, for ever."""
        self._loop = asyncio.get_running_loop()
        scopes: dict[LookUp, anyio.CancelScope] = {}
        async with anyio.create_task_group() as tasks:
            while True:
                self._is_changed = anyio.Event()
                for look_up in scopes.keys() - set(self._wanted):
                    scopes.pop(look_up).cancel()
                for look_up in self._wanted:
                    if look_up not in scopes:
                        scopes[look_up] = anyio.CancelScope()
                        informers = self._informers_of(look_up)
                        self._informers = {**self._informers, look_up: informers}
                        tasks.start_soon(self._watch, informers, scopes[look_up])
                await self._is_changed.wait()

    def use(self, look_ups: Iterable[LookUp]) -> None:
        """Watch these from now on, and no others."""
        self._wanted = tuple(look_ups)
        if self._loop is not None:
            with suppress(RuntimeError):  # The loop has ended: nothing is watched any more.
                self._loop.call_soon_threadsafe(self._note_change)

    def _note_change(self) -> None:
        self._is_changed.set()

    def _informers_of(self, look_up: LookUp) -> tuple[Informer[ReferenceStore], ...]:
        namespaces = (self._namespaces if look_up.kind.namespaced else ()) or ("",)
        stores = (ReferenceStore(look_up, namespace) for namespace in namespaces)
        return tuple(Informer(store, self._client, self._clock, on_internal_error=self._log_internal_error) for store in stores)

    async def _watch(self, informers: Sequence[Informer[ReferenceStore]], scope: anyio.CancelScope) -> None:
        with scope:
            async with anyio.create_task_group() as tasks:
                for informer in informers:
                    tasks.start_soon(informer.run)
        self._informers = {known: each for known, each in self._informers.items() if each is not informers}

    def _log_internal_error(self, error: Exception) -> None:
        self._log.error("internal error", error=error, exc_info=error)

    def find(self, id: ResourceId) -> Live | None:
        """The object with this id, if it is in a cache."""
        held = (informer.store.lives.get(id) for informers in self._informers.values() for informer in informers)
        return next((object for object in held if object is not None), None)

    def knows(self, kind: str) -> bool:
        """Whether that kind is looked up, wherever webhooks are asked, and its cache is complete and up to date."""
        informers = next((informers for look_up, informers in self._informers.items() if look_up.kind.key == kind), ())
        current = map(_is_current, informers)
        return bool(informers) and all(current) and all(informer.store.namespace == "" or self._has_all for informer in informers)

    def sizes(self, namespace: str) -> SetSizes | None:
        """The PodCliqueSets and graphs of a namespace; None unless the cache of sets is complete and up to date."""
        sizes = self._sizes(SETS, namespace)
        return SetSizes(sizes, self._sizes(GRAPHS, namespace) or {}) if sizes is not None else None

    def _sizes(self, look_up: LookUp, namespace: str) -> Mapping[str, Any] | None:
        """Name -> size, of the objects of a namespace; None unless their cache is complete and up to date."""
        for informer in self._informers.get(look_up, ()):
            if _is_current(informer) and informer.store.namespace in ("", namespace):
                return informer.store.sizes(namespace)
        return None

    def is_filled(self) -> bool:
        """Whether everything that is looked up has been listed, or cannot be."""
        informers = self._informers
        return all(look_up in informers and all(informer.synced.is_set() for informer in informers[look_up]) for look_up in self._wanted)

    def caches(self) -> Sequence[CacheState]:
        """The state of every cache now."""
        return [
            CacheState(
                informer.store.look_up.kind,
                informer.store.namespace,
                informer.confirmed_at,
                informer.is_filled,
                informer.last_error,
                len(informer.store.lives),
            )
            for informers in self._informers.values()
            for informer in informers
        ]

    async def read(self, ids: Iterable[ResourceId]) -> Reads:
        """These objects as the server has them now. What cannot be read in time is among the failed."""
        wanted = sorted(set(ids))
        objects: dict[ResourceId, Live | None] = {}

        async def read_one(id: ResourceId, look_up: LookUp) -> None:
            try:
                body = await self._client.get(look_up.kind, id.namespace, id.name)
                objects[id] = live(look_up.kept(body))
            except NotFound:
                objects[id] = None
            except ClusterError:
                pass

        with anyio.move_on_after(LONGEST_READ):
            async with anyio.create_task_group() as tasks:
                for id in wanted[:MOST_READ]:
                    if (look_up := self._look_up_of(id)) is not None:
                        tasks.start_soon(read_one, id, look_up)
        return Reads(objects, frozenset(id for id in wanted if id not in objects))

    def _look_up_of(self, id: ResourceId) -> LookUp | None:
        return next((each for each in self._informers if (each.kind.group, each.kind.name) == (id.group, id.kind)), None)


def _is_current(informer: "Informer[ReferenceStore]") -> bool:
    """Whether what it holds is complete and up to date."""
    return informer.synced.is_set() and informer.served and informer.error is None
