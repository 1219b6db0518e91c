"""CacheState: how fresh the cache of one list is, and the observer of its lists and watches."""

from collections.abc import Sequence
from typing import Final, Protocol

from msgspec import Struct

from engine.errors import ClusterError, Forbidden
from engine.ids import Kind
from engine.runtime.provider import Provider

FRESH_FOR: Final = 85.0
"""Seconds without a confirmation after which a cache is stale.

An idle watch is confirmed by a bookmark once a minute, and a connection that is silent for longer than `RequestLimits.silence` is dead;
what is left is the time for a new attempt. So a dead watch is noticed within 90 seconds.
"""


class CacheState(Struct, frozen=True):
    """The state of one cache at one moment."""

    kind: Kind
    namespace: str
    """The namespace that it covers; empty: all."""
    confirmed_at: float
    """When the server last confirmed it, on the monotonic clock: by a list, an accepted watch, an event or a bookmark. Before the first
    confirmation: when it began to be filled."""
    is_filled: bool
    """Whether it has been listed completely, or its kind is not served."""
    error: ClusterError | None
    """Why the last attempt failed; None if it did not."""
    objects: int
    """The number of objects in it."""

    def is_stale(self, now: float) -> bool:
        """Whether it has not been confirmed for `FRESH_FOR` seconds; `now` is a time of the monotonic clock."""
        return now - self.confirmed_at > FRESH_FOR

    @property
    def is_refused(self) -> bool:
        """Whether the server does not permit us to list or watch the kind."""
        return isinstance(self.error, Forbidden)


class CachingProvider(Provider, Protocol):
    """A `Provider` whose observations come from caches while it watches."""

    def caches(self) -> Sequence[CacheState]:
        """The state of every cache now; empty while nothing is watched. May be called in any thread."""
        ...


class InformerObserver(Protocol):
    """Told of lists and watches. A call must return at once and raise nothing."""

    def listed(self, kind: Kind) -> None:
        """A complete list has been answered."""
        return

    def watched(self, kind: Kind) -> None:
        """The server has accepted a watch."""
        return

    def failed(self, kind: Kind, error: ClusterError) -> None:
        """A list or a watch has ended with an error."""
        return


class NoInformerObserver(InformerObserver):
    """An `InformerObserver` that does nothing."""
