"""Watch: the events of one collection from a revision on."""

from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Self

import anyio
import orjson

from grove_sandbox.api.request import WatchEvent
from grove_sandbox.api.selectors import Selector
from grove_sandbox.api.store import Change, Collection, Store, Stored
from grove_sandbox.types import status

BOOKMARK_EVERY = 60.0
"""Seconds without an event after which a watch with bookmarks gets one."""


class Watch:
    """An asynchronous iterator of `WatchEvent`. It ends after its timeout, or when its kind is no longer served.

    Timeout and bookmarks are in real seconds, whatever clock the API has, because they serve a network connection.
    """

    def __init__(
        self,
        store: Store,
        collection: Collection,
        selector: Selector,
        namespace: str,
        convert: Callable[[Stored], tuple[Mapping[str, Any], bytes]],
        api_version: str,
        kind: str,
        *,
        since: int,
        timeout: float | None,
        bookmarks: bool,
    ) -> None:
        self._store = store
        self._collection = collection
        self._selector = selector
        self._prefix = f"{namespace}/" if namespace else ""
        self._convert = convert
        self._type = {"kind": kind, "apiVersion": api_version}
        self._ready: deque[WatchEvent] = deque()
        self._position = collection.position(since)
        self._ends = None if timeout is None else anyio.current_time() + timeout
        self._bookmarks = bookmarks
        self._done = False

    def begin_with(self, objects: list[Stored], *, mark: bool) -> None:
        """Begin with an event for each of these objects, and with `mark` a bookmark behind them."""
        self._ready.extend(self._event("ADDED", stored) for stored in objects)
        if mark:
            self._ready.append(self.bookmark(initial=True))

    def fail(self, error: status.StatusError) -> None:
        """End with an `ERROR` event."""
        self._ready.append(WatchEvent("ERROR", error.body, orjson.dumps(error.body)))
        self._done = True

    def __aiter__(self) -> AsyncIterator[WatchEvent]:
        return self

    async def __anext__(self) -> WatchEvent:
        while not self._ready:
            self._collect()
            if self._ready:
                break
            if self._done or self._collection.closed:
                raise StopAsyncIteration
            await self._wait()
        return self._ready.popleft()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._done = True
        self._ready.clear()

    def pending(self) -> list[WatchEvent]:
        """The events that can be had without waiting."""
        self._collect()
        events = list(self._ready)
        self._ready.clear()
        return events

    def bookmark(self, *, initial: bool = False) -> WatchEvent:
        """A bookmark at the current revision."""
        annotations = {"annotations": {"k8s.io/initial-events-end": "true"}} if initial else {}
        body = {**self._type, "metadata": {"resourceVersion": str(self._store.revision), **annotations}}
        return WatchEvent("BOOKMARK", body, orjson.dumps(body))

    async def _wait(self) -> None:
        """Wait for a change, for the next bookmark, or for the timeout."""
        span = BOOKMARK_EVERY if self._bookmarks else None
        left = None if self._ends is None else max(0.0, self._ends - anyio.current_time())
        shortest = min((s for s in (span, left) if s is not None), default=None)
        if shortest is None:
            return await self._collection.news()
        with anyio.move_on_after(shortest) as scope:
            await self._collection.news()
        if not scope.cancelled_caught:
            return
        if self._bookmarks:
            self._ready.append(self.bookmark())
        self._done = left is not None and left == shortest

    def _collect(self) -> None:
        if self._done:
            return
        if self._position < self._collection.dropped:
            self.fail(status.expired(f"too old resource version: {self._collection.forgotten} ({self._store.revision})"))
            return
        changes = self._collection.since(self._position)
        self._position += len(changes)
        for change in changes:
            if change.key.startswith(self._prefix) and (event := self._event_of(change)) is not None:
                self._ready.append(event)

    def _event_of(self, change: Change) -> WatchEvent | None:
        """The event of a change: an object that no longer matches the selector is deleted, one that matches now is added."""
        was = change.before is not None and self._selector.matches(change.before.body)
        if change.type == "DELETED":
            return self._event("DELETED", change.now) if was else None
        if self._selector.matches(change.now.body):
            return self._event("MODIFIED" if was else "ADDED", change.now)
        return self._event("DELETED", _last_match(change)) if was else None

    def _event(self, type_: Any, stored: Stored) -> WatchEvent:
        body, encoded = self._convert(stored)
        return WatchEvent(type_, body, encoded)


def _last_match(change: Change) -> Stored:
    """The object as it last matched, with the revision at which it ceased to."""
    assert change.before is not None
    metadata = {**change.before.metadata, "resourceVersion": str(change.now.revision)}
    body = {**change.before.body, "metadata": metadata}
    return Stored(body, orjson.dumps(body), change.now.revision)
