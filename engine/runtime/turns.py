"""Turns: what waits to be sent, by namespace and by root; each gets its turn, whatever the others ask for."""

from collections import deque
from collections.abc import Callable, Iterator
from heapq import heappop, heappush, heapreplace
from typing import Final, Generic, TypeVar

from engine.ids import ResourceId

T = TypeVar("T")

BURST: Final = 64
"""How many steps a namespace, and in it a root, takes in one turn. Most sets are created within one turn, each before the next is begun."""

MANY_FLOWS: Final = 1000
"""With more namespaces, or roots of one, those are forgotten that are no better off than new ones."""


class _Flow(Generic[T]):
    """What waits of one namespace or root."""

    __slots__ = ("is_listed", "order", "queue", "taken")

    def __init__(self, queue: "_Queue[T]", order: int) -> None:
        self.queue = queue
        self.order = order
        """The place among those that are in the same turn."""
        self.taken = 0
        """How many steps it has taken, counted from where the others were when it came."""
        self.is_listed = False
        """Whether it is in the heap of its level."""

    @property
    def turn(self) -> int:
        return self.taken // BURST


class _Queue(Generic[T]):
    """What waits on one level: of a root in order, else by namespace or root."""

    def __init__(self, levels: int) -> None:
        self._levels = levels
        self.count = 0
        self._items: deque[T] = deque()
        self._flows: dict[str | ResourceId, _Flow[T]] = {}
        self._heap: list[tuple[int, int, _Flow[T]]] = []
        """Turn and order of each flow that may have something; the turn may have been an earlier one."""
        self._turn = 0
        """The turn of the flow that has taken something last."""
        self._order = 0

    def add(self, path: tuple[str | ResourceId, ...], item: T, *, first: bool) -> None:
        self.count += 1
        if not self._levels:
            (self._items.appendleft if first else self._items.append)(item)
            return
        flow = self._flow(path[0])
        if not flow.queue.count:
            flow.taken = max(flow.taken, (self._turn - 1) * BURST)
        flow.queue.add(path[1:], item, first=first)
        if not flow.is_listed:
            flow.is_listed = True
            heappush(self._heap, (flow.turn, flow.order, flow))

    def _flow(self, key: str | ResourceId) -> _Flow[T]:
        if (flow := self._flows.get(key)) is None:
            if len(self._flows) >= MANY_FLOWS:
                self._forget_rested()
            flow = self._flows[key] = _Flow(_Queue[T](self._levels - 1), self._order)
            flow.taken = (self._turn - 1) * BURST
            self._order += 1
        return flow

    def _forget_rested(self) -> None:
        """Forget the flows that would be treated like new ones."""
        new = (self._turn - 1) * BURST
        self._flows = {key: flow for key, flow in self._flows.items() if flow.queue.count or flow.is_listed or flow.taken > new}

    def take(self) -> T:
        """Remove what comes next. There is something."""
        self.count -= 1
        if not self._levels:
            return self._items.popleft()
        flow = self._next_flow()
        assert flow is not None
        self._turn = max(self._turn, flow.turn)
        flow.taken += 1
        return flow.queue.take()

    def _next_flow(self) -> _Flow[T] | None:
        """The flow that has had the fewest turns of those that have something; in one turn, the one that came first."""
        while self._heap:
            turn, order, flow = self._heap[0]
            if not flow.queue.count:
                heappop(self._heap)
                flow.is_listed = False
            elif turn != flow.turn:
                heapreplace(self._heap, (flow.turn, order, flow))
            else:
                return flow
        return None

    def keep(self, holds: Callable[[T], bool]) -> None:
        self._items = deque(item for item in self._items if holds(item))
        for flow in self._flows.values():
            flow.queue.keep(holds)
        self.count = len(self._items) + sum(flow.queue.count for flow in self._flows.values())

    def __iter__(self) -> Iterator[T]:
        yield from self._items
        for flow in self._flows.values():
            yield from flow.queue


class Turns(Generic[T]):
    """Steps by namespace and root. The namespace that has had the fewest turns is next, and in it the root that has.

    What comes after a while without anything to send has had one turn fewer than the others: it need not wait for them. None waits while
    a namespace that has more to send could be served.
    """

    def __init__(self) -> None:
        self._queue = _Queue[T](2)

    def __len__(self) -> int:
        return self._queue.count

    def __iter__(self) -> Iterator[T]:
        return iter(self._queue)

    def add(self, root: ResourceId, step: T, *, first: bool = False) -> None:
        """Add a step of a root, behind its others or, with `first`, in front of them."""
        self._queue.add((root.namespace, root), step, first=first)

    def take(self) -> T:
        """Remove the step that comes next, and return it. There must be one."""
        return self._queue.take()

    def keep(self, holds: Callable[[T], bool]) -> None:
        """Remove the steps for which `holds` returns false."""
        self._queue.keep(holds)
