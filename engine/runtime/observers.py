"""Observers: what the loop tells those who show its work: probes, metrics, the page of plans; passes over several shards as one."""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Generic, Protocol, runtime_checkable

from msgspec.structs import replace

from engine.blueprint import C, C_contra
from engine.observed import World
from engine.operation import Result
from engine.plan import Plan
from engine.runtime.passes import Pass
from engine.shards import Shard
from engine.tick import Plans


class LoopObserver(Protocol[C_contra]):
    """Called by the loop, in its own thread; a call must return at once and raise nothing."""

    def leading(self, leads: bool) -> None:
        """This process has acquired the lease, or has lost or released it. Without leader election: called once, with true.

        With shards: it has acquired its first shard, or has lost or released its last one.
        """
        return

    def planned(self, current: Pass[C_contra], chosen: Sequence[Plan]) -> None:
        """A pass has observed and planned; the operations of `chosen` are executed now.

        With shards each has passes of its own. `current` then joins this one and the last ones of the other shards of this process.
        """
        return

    def passed(self, current: Pass[C_contra], results: Sequence[Result]) -> None:
        """The pass has ended, with these results of its operations."""
        return

    def failed(self, error: Exception) -> None:
        """A pass has ended with an error. Results of what it has sent may follow."""
        return


@runtime_checkable
class LeaseObserver(Protocol):
    """An optional capability of a `LoopObserver`: it is notified of each Lease. With shards there are several."""

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


class JoinedPasses(Generic[C]):
    """The last pass over each shard that this process holds, for an observer that wants to know of all of them."""

    def __init__(self, observer: LoopObserver[C]) -> None:
        self._observer = observer
        self._last: dict[Shard, Pass[C]] = {}

    def observer(self, shard: Shard) -> LoopObserver[C]:
        """The observer of the loop of that shard."""
        return _ShardObserver(self, shard)

    def forget(self, shard: Shard) -> None:
        """Leave out the shard from now on: another replica holds it."""
        self._last.pop(shard, None)

    def planned(self, shard: Shard, current: Pass[C], chosen: Sequence[Plan]) -> None:
        """Tell the observer of a pass over one shard, joined with the last passes over the others."""
        self._last[shard] = current
        self._observer.planned(self._joined(current), chosen)

    def passed(self, current: Pass[C], results: Sequence[Result]) -> None:
        """Tell the observer that a pass has ended."""
        self._observer.passed(self._joined(current), results)

    def failed(self, error: Exception) -> None:
        """Tell the observer that a pass has ended with an error."""
        self._observer.failed(error)

    def _joined(self, current: Pass[C]) -> Pass[C]:
        return current if len(self._last) < 2 else joined(current, self._last.values())


def joined(current: Pass[C], passes: Iterable[Pass[C]]) -> Pass[C]:
    """All these passes as one, with the time, the duration and the references of `current`."""
    every = list(passes)
    worlds = [each.world for each in every]
    world = World(
        tuple(sorted(chain.from_iterable(world.roots for world in worlds), key=lambda observed: observed.root.id)),
        tuple(sorted(chain.from_iterable(world.orphans for world in worlds), key=lambda live: live.id)),
        {kind: why for world in worlds for kind, why in world.incomplete.items()},
        current.world.references,
        current.world.unserved,
        {name: phase for world in worlds for name, phase in world.closed_namespaces.items()},
        unlisted={kind: why for world in worlds for kind, why in world.unlisted.items()},
    )
    plans = tuple(sorted(chain.from_iterable(each.planned.plans for each in every), key=lambda plan: plan.root))
    objections = tuple(chain.from_iterable(each.planned.objections for each in every))
    return replace(current, world=world, planned=Plans(plans, objections), changed=frozenset().union(*(each.changed for each in every)))


class _ShardObserver(Generic[C]):
    """The `LoopObserver` of one shard's loop. Leadership is reported for the process as a whole, by the holder of its leases."""

    def __init__(self, passes: JoinedPasses[C], shard: Shard) -> None:
        self._passes, self._shard = passes, shard

    def leading(self, leads: bool) -> None:
        """Not called by the loop of a shard."""

    def planned(self, current: Pass[C], chosen: Sequence[Plan]) -> None:
        """Pass it on, joined with those of the other shards."""
        self._passes.planned(self._shard, current, chosen)

    def passed(self, current: Pass[C], results: Sequence[Result]) -> None:
        """Pass it on, joined with those of the other shards."""
        self._passes.passed(current, results)

    def failed(self, error: Exception) -> None:
        """Pass it on."""
        self._passes.failed(error)
