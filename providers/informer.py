"""Informer: keeps a store of the objects of one list up to date, as client-go's does: list once, watch, resume the watch."""

import random
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any, Generic, Protocol, TypeVar

import anyio

from engine.errors import ClusterError, Expired, Forbidden, NotFound, ServerFault
from engine.ids import Kind
from engine.runtime.clock import Clock
from engine.runtime.provider import Client
from providers.cache_state import InformerObserver, NoInformerObserver

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
"""Seconds between attempts without progress. The first retry is immediate; then the pause doubles up to the longest, with jitter."""

STALE_AFTER = 30.0
"""Seconds of failures after which the contents of the store are no longer trusted."""

ABSENT_FOR = 60.0
"""Seconds after which a kind that was not served is listed again."""


class Store(Protocol):
    """The objects of one list, filled by an informer."""

    @property
    def kind(self) -> Kind:
        """The kind to watch, in the version in which it was listed."""
        ...

    @property
    def namespace(self) -> str:
        """The namespace to watch; empty: all of them."""
        ...

    @property
    def labels(self) -> str:
        """The label selector to watch with; empty: all objects."""
        ...

    async def list(self, client: Client) -> str:
        """Replace the contents by a list, and return its revision. Raises `NotFound` if the kind is not served."""
        ...

    def apply(self, event: str, body: dict[str, Any]) -> None:
        """Apply an event of the watch: `ADDED`, `MODIFIED` or `DELETED`."""
        ...

    def clear(self) -> None:
        """Remove everything: the kind is not served."""
        ...


S = TypeVar("S", bound=Store)


def _ignore(*_: Any) -> None:
    """The default of a callback."""


class Informer(Generic[S]):
    """Lists, watches, and after an error resumes the watch at the last revision. Lists again only after `Expired` or a gap.

    `on_status` is called when `error` or `served` may have changed; `on_internal_error` with an exception of our own code;
    `until_served` returns when a kind that is not served should be listed again. `observer` is told of lists, watches and errors.
    """

    def __init__(
        self,
        store: S,
        client: Client,
        clock: Clock,
        *,
        on_status: Callable[[], None] = _ignore,
        on_internal_error: Callable[[Exception], None] = _ignore,
        until_served: Callable[[], Awaitable[None]] | None = None,
        observer: InformerObserver | None = None,
    ) -> None:
        self.store = store
        self.synced = anyio.Event()
        """Set after the first list, successful or not."""
        self.served = True
        self.confirmed_at = clock.monotonic()
        """When the server last confirmed the store (`CacheState.confirmed_at`)."""
        self._client, self._clock = client, clock
        self._observer = observer or NoInformerObserver()
        self._on_status, self._on_internal_error = on_status, on_internal_error
        self._until_served = until_served or self._sleep_while_absent
        self._revision = ""
        """The revision of the last list or event; empty: the next attempt lists."""
        self._has_listed = self._has_progressed = False
        self._is_list_due = False
        """Whether to list although the watch goes on."""
        self._waiting = anyio.CancelScope()
        """The watch, or the wait until the kind is served, that is under way."""
        self._error: ClusterError | None = None
        self._failing_since = 0.0

    @property
    def error(self) -> ClusterError | None:
        """Why the store cannot be trusted; None if it can.

        Failures that began less than `STALE_AFTER` seconds ago are not reported, except for a missing permission: waiting does not help.
        """
        is_stale = not self._has_listed or self._clock.monotonic() - self._failing_since >= STALE_AFTER
        return self._error if is_stale or isinstance(self._error, Forbidden) else None

    @property
    def last_error(self) -> ClusterError | None:
        """Why the last attempt failed, from the first moment on; None if it did not."""
        return self._error

    @property
    def is_filled(self) -> bool:
        """Whether the store has been filled by a list, or the kind is not served."""
        return self._has_listed or not self.served

    def list_again(self) -> None:
        """List everything once more, with a request that is sent after this call."""
        self._is_list_due = True
        self._waiting.cancel()

    async def run(self) -> None:
        """Keep the store up to date until cancelled. No error ends it."""
        pause = 0.0
        while True:
            started, self._has_progressed = self._clock.monotonic(), False
            error = await self._attempt()
            if self._is_list_due:
                pause = 0.0
                continue
            if self._has_progressed or self._clock.monotonic() - started > LONGEST_PAUSE:
                pause = 0.0
            retry_after = error.retry_after if error is not None else None
            await self._clock.sleep(max(pause * random.uniform(0.8, 1.2), retry_after or 0.0))
            pause = min(pause * 2 or FIRST_PAUSE, LONGEST_PAUSE)

    async def _attempt(self) -> ClusterError | None:
        """List if that is due, and watch. Returns the error that ended the watch; None if the server ended it."""
        try:
            if self._is_list_due or not self._revision:
                self._is_list_due, self._revision = False, ""
                self._revision = await self.store.list(self._client)
                self._has_listed = self.served = True
                self._observer.listed(self.store.kind)
                self._succeed(changed=True)
            if not self._is_list_due:
                with anyio.CancelScope() as self._waiting:
                    await self._watch()
        except Expired as error:
            self._revision = ""
            self._observer.failed(self.store.kind, error)
            return error
        except NotFound as error:
            await self._wait_until_served()
            return error
        except ClusterError as error:
            self._fail(error)
            return error
        except Exception as error:
            self._revision = ""  # An event may be missing from the store, so the next attempt lists.
            self._on_internal_error(error)
            fault = ServerFault(f"internal error in the watch of {self.store.kind.plural}: {type(error).__name__}: {error}")
            self._fail(fault)
            return fault
        return None

    async def _watch(self) -> None:
        store = self.store
        watch = self._client.watch(store.kind, store.namespace, since=self._revision, labels=store.labels, on_open=self._note_open)
        async with aclosing(watch) as events:
            async for event, body in events:
                self.confirmed_at = self._clock.monotonic()
                revision: str = body["metadata"]["resourceVersion"]
                if event != "BOOKMARK":
                    store.apply(event, body)
                self._has_progressed = self._has_progressed or revision != self._revision
                self._revision = revision

    def _note_open(self) -> None:
        """The server has accepted the watch."""
        self._observer.watched(self.store.kind)
        self._succeed()

    async def _wait_until_served(self) -> None:
        """A kind that is not served has no objects. When it is served again, everything is listed."""
        was_served, self.served, self._revision = self.served, False, ""
        self.store.clear()
        self._succeed(changed=was_served)
        if not self._is_list_due:
            with anyio.CancelScope() as self._waiting:
                await self._until_served()

    async def _sleep_while_absent(self) -> None:
        await self._clock.sleep(ABSENT_FOR * random.uniform(0.8, 1.2))

    def _succeed(self, *, changed: bool = False) -> None:
        """The server has answered: with a list, or by accepting a watch."""
        changed, self._error = changed or self._error is not None, None
        self.confirmed_at = self._clock.monotonic()
        self.synced.set()
        if changed:
            self._on_status()

    def _fail(self, error: ClusterError) -> None:
        """Note the error. The first one after a success starts the time until the store is stale."""
        if self._error is None:
            self._failing_since = self._clock.monotonic()
        self._error = error
        self._observer.failed(self.store.kind, error)
        self.synced.set()
        self._on_status()
