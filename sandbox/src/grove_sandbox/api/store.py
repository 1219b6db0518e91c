"""Store: every object as an immutable body with its JSON, one growing revision, and a bounded log of changes for each collection."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import anyio
import orjson
from msgspec import Struct, field

from grove_sandbox.product import Body

ChangeType = Literal["ADDED", "MODIFIED", "DELETED"]
FIRST_REVISION = 100
"""Higher than the small numbers that callers invent, so that these are forgotten revisions."""


class Stored(Struct, frozen=True):
    """A stored object. Answers share it; it is never changed."""

    body: Body
    encoded: bytes
    revision: int

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The object's `metadata`."""
        metadata: Mapping[str, Any] = self.body["metadata"]
        return metadata


class Change(Struct, frozen=True):
    """An entry of the log. For a deletion, `now` is the last state with the revision of the deletion."""

    type: ChangeType
    key: str
    now: Stored
    before: Stored | None


def key_of(namespace: str, name: str) -> str:
    """The key of an object in its collection. Lists are in the order of keys."""
    return f"{namespace}/{name}"


class Collection(Struct, eq=False):
    """All objects of one resource, in all versions and namespaces."""

    objects: dict[str, Stored] = field(default_factory=dict)
    log: list[Change] = field(default_factory=list)
    dropped: int = 0
    """The number of changes that the log has dropped. Positions count from the first change ever."""
    forgotten: int = FIRST_REVISION
    """The newest revision whose changes the log does not have."""
    closed: bool = False
    _sorted: list[str] | None = None
    _news: anyio.Event | None = None

    def keys(self, namespace: str = "") -> list[str]:
        """The sorted keys of one namespace, or of all."""
        if self._sorted is None:
            self._sorted = sorted(self.objects)
        if not namespace:
            return self._sorted
        return self._sorted[bisect_left(self._sorted, f"{namespace}/") : bisect_left(self._sorted, f"{namespace}0")]

    def put(self, type_: ChangeType, key: str, now: Stored, history: int) -> None:
        """Make one change, wake the watchers, and drop old changes once the log is twice as long as `history`."""
        before = self.objects.get(key)
        if type_ == "DELETED":
            del self.objects[key]
            self._sorted = None
        else:
            self.objects[key] = now
            if before is None:
                self._sorted = None
        self.log.append(Change(type_, key, now, before))
        if len(self.log) > 2 * history:
            self._forget(len(self.log) - history)
        self._wake()

    def copy(self) -> "Collection":
        """A second collection with the same objects and changes. It has no watchers."""
        return Collection(dict(self.objects), list(self.log), self.dropped, self.forgotten)

    def close(self) -> None:
        """End all watches, because the resource is no longer served."""
        self.closed = True
        self._wake()

    def position(self, revision: int) -> int:
        """The position of the first change after a revision."""
        return self.dropped + bisect_right(self.log, revision, key=lambda change: change.now.revision)

    def since(self, position: int) -> list[Change]:
        """The changes from a position on, none of which may be dropped yet."""
        return self.log[position - self.dropped :]

    def as_of(self, revision: int) -> dict[str, Stored]:
        """The objects at an earlier revision that is not forgotten."""
        objects = dict(self.objects)
        for change in reversed(self.since(self.position(revision))):
            if change.before is None:
                objects.pop(change.key, None)
            else:
                objects[change.key] = change.before
        return objects

    async def news(self) -> None:
        """Wait for the next change."""
        if self._news is None:
            self._news = anyio.Event()
        await self._news.wait()

    def _forget(self, count: int) -> None:
        if count:
            self.forgotten = self.log[count - 1].now.revision
            del self.log[:count]
            self.dropped += count

    def _wake(self) -> None:
        if self._news is not None:
            self._news.set()
            self._news = None


class Store:
    """All collections, with one revision."""

    def __init__(self, history: int) -> None:
        self.history = history
        self.revision = FIRST_REVISION
        self._collections: dict[tuple[str, str], Collection] = {}

    def copy(self) -> "Store":
        """A second store with the same content, which changes independently of this one."""
        copied = Store(self.history)
        copied.revision = self.revision
        copied._collections = {resource: collection.copy() for resource, collection in self._collections.items()}
        return copied

    def collection(self, resource: tuple[str, str]) -> Collection:
        """The collection of a resource, which may be empty."""
        return self._collections.setdefault(resource, Collection(forgotten=self.revision))

    def collections(self) -> Iterator[tuple[tuple[str, str], Collection]]:
        """Every collection and its resource."""
        return iter(list(self._collections.items()))

    def write(self, resource: tuple[str, str], type_: ChangeType, body: Body) -> Stored:
        """Store or remove one object at the next revision. Returns the object with that revision."""
        self.revision += 1
        metadata = {**body["metadata"], "resourceVersion": str(self.revision)}
        stamped = {**body, "metadata": metadata}
        stored = Stored(stamped, orjson.dumps(stamped), self.revision)
        self.collection(resource).put(type_, key_of(metadata.get("namespace", ""), metadata["name"]), stored, self.history)
        return stored

    def drop(self, resource: tuple[str, str]) -> None:
        """Remove the collection of a resource that is no longer served, and end its watches."""
        if (collection := self._collections.pop(resource, None)) is not None:
            collection.close()
