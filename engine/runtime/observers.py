"""Observers: what the loop tells whoever shows its work: probes, metrics, the page of plans."""

from collections.abc import Sequence
from typing import Generic, Protocol, runtime_checkable

from engine.blueprint import C, C_contra
from engine.operation import Result
from engine.plan import Plan
from engine.runtime.passes import Pass


class LoopObserver(Protocol[C_contra]):
    """Called by the loop, in its own thread; a call must return at once and raise nothing."""

    def leading(self, leads: bool) -> None:
        """This process has acquired the lease, or has lost or released it. Without leader election: called once, with true.

        With shards: it has acquired its first shard, or has lost or released its last one.
        """
        ...

    def planned(self, current: Pass[C_contra], chosen: Sequence[Plan]) -> None:
        """A pass has observed and planned; the operations of `chosen` are executed now.

        With shards each has passes of its own. `current` then joins this one and the last ones of the other shards of this process.
        """
        ...

    def passed(self, current: Pass[C_contra], results: Sequence[Result]) -> None:
        """The pass has ended, with these results of its operations."""
        ...

    def failed(self, error: Exception) -> None:
        """A pass has ended with an error."""
        ...


@runtime_checkable
class LeaseObserver(Protocol):
    """An optional capability of a `LoopObserver`: it is told of each Lease by itself. With shards there are several."""

    def holds(self, lease: str, holds: bool) -> None:
        """This process has acquired the Lease of that name, or has lost or released it. Not called without leader election."""
        ...


class Observers(Generic[C]):
    """A `LoopObserver` and `LeaseObserver` that tells several others."""

    def __init__(self, *observers: LoopObserver[C]) -> None:
        self._observers = observers

    def leading(self, leads: bool) -> None:
        """Tell all."""
        for observer in self._observers:
            observer.leading(leads)

    def planned(self, current: Pass[C], chosen: Sequence[Plan]) -> None:
        """Tell all."""
        for observer in self._observers:
            observer.planned(current, chosen)

    def passed(self, current: Pass[C], results: Sequence[Result]) -> None:
        """Tell all."""
        for observer in self._observers:
            observer.passed(current, results)

    def failed(self, error: Exception) -> None:
        """Tell all."""
        for observer in self._observers:
            observer.failed(error)

    def holds(self, lease: str, holds: bool) -> None:
        """Tell those that want to know."""
        for observer in self._observers:
            if isinstance(observer, LeaseObserver):
                observer.holds(lease, holds)
