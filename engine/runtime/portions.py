"""Portions: which of the roots that are to be planned anew wait for a later pass, so that one does not wait for all the others."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from typing import Final

from engine.ids import ResourceId

LARGE: Final = 2_000
"""Objects from which on a root is large: planning it takes a few tenths of a second."""


MOST: Final = 4 * LARGE
"""Objects of roots that are not large from which on a pass plans no further one: they take it a second, and their plans little memory."""


INTERRUPTIONS: Final = 10
"""How often the planning of a large root is interrupted at most, until it ends."""


class Portions:
    """Roots with more than `large` objects (default: there are none) are planned one in a pass, which has waited longest.

    They wait until the pause after the last one is over, and let a pass with small ones go first; with a large one it plans no other. Of
    small ones a pass plans the one that has waited longest, then those of each namespace in turn, small ones first, as long as they have
    no more than `most` objects together. Times are of a monotonic clock.
    """

    def __init__(self, large: float = math.inf, most: float = math.inf) -> None:
        self._large, self._most = large, most
        self._waiting: dict[ResourceId, None] = {}
        """As they were put off."""
        self.begun: Set[ResourceId] = frozenset()
        """The roots that the pass is to plan anew, until it has ended: also those of one that was interrupted or has failed."""
        self.awaited: Set[ResourceId] = frozenset()
        """Those that wait and are not large, and that users have created or edited since they were planned."""
        self._interruptions = Counter[ResourceId]()
        """How often the planning of a large root was interrupted since it has ended, of those that are still to be planned."""
        self._planned: ResourceId | None = None
        """The large root that this pass plans."""
        self._gave_way = False
        """Whether it plans none because it plans small ones."""
        self._held: frozenset[ResourceId] = frozenset()
        """Those that wait and are not large."""
        self._not_before = -math.inf
        """When the next large root may be planned."""

    @property
    def are_limited(self) -> bool:
        """Whether there are large roots, or too many for one pass."""
        return min(self._large, self._most) < math.inf

    @property
    def waiting(self) -> Set[ResourceId]:
        """The roots that are not planned in this pass, although they are to be."""
        return self._waiting.keys()

    def begin(self, sizes: Mapping[ResourceId, int], at: float) -> None:
        """Begin a pass at this time. `sizes`: the roots that are to be planned anew, and for how many objects each."""
        self.begun = frozenset(sizes)
        self._interruptions = Counter({root: count for root, count in self._interruptions.items() if root in sizes})
        large = dict.fromkeys(root for root, size in sizes.items() if size > self._large)
        queue = [*(root for root in self._waiting if root in large), *(root for root in large if root not in self._waiting)]
        may_plan = bool(queue) and at >= self._not_before
        self._gave_way = may_plan and len(sizes) > len(large) and not self._gave_way
        self._planned = queue.pop(0) if may_plan and not self._gave_way else None
        small = {root: size for root, size in sizes.items() if root not in large}
        held = self._beyond(small) if self._planned is None else self._in_order(small)
        self._held = frozenset(held)
        self._waiting = dict.fromkeys((*queue, *held))

    @property
    def held(self) -> Set[ResourceId]:
        """Those of them that are not large."""
        return self._held

    @property
    def has_backlog(self) -> bool:
        """Whether roots that are not large wait."""
        return bool(self._held)

    @property
    def plans_large(self) -> bool:
        """Whether this pass plans a large root."""
        return self._planned is not None

    @property
    def may_be_interrupted(self) -> bool:
        """Whether this pass plans a large root whose planning was not interrupted often."""
        return self._planned is not None and self._interruptions[self._planned] < INTERRUPTIONS

    def interrupt(self) -> None:
        """Let this pass begin again because of something more urgent: the large root that it plans is the next one."""
        if self._planned is not None:
            self._interruptions[self._planned] += 1
            self._waiting = {self._planned: None, **self._waiting}
            self._planned = None

    def end(self) -> None:
        """End a pass: what it was to plan is planned, or waits."""
        self.begun = frozenset()
        if self._planned is not None:
            del self._interruptions[self._planned]

    def _beyond(self, sizes: Mapping[ResourceId, int]) -> Sequence[ResourceId]:
        """The roots of these sizes that this pass does not plan, the longest waiting first."""
        if sum(sizes.values()) <= self._most:
            return ()
        queue = self._in_order(sizes)
        turns, ranks = Counter[str](), dict[ResourceId, tuple[int, int]]()
        for root in sorted(queue, key=lambda root: sizes[root]):
            ranks[root] = (turns[root.namespace], sizes[root])
            turns[root.namespace] += 1
        planned, total = {queue[0]}, sizes[queue[0]]
        for root in sorted(queue[1:], key=lambda root: ranks[root]):
            total += sizes[root]
            if total > self._most:
                break
            planned.add(root)
        return [root for root in queue if root not in planned]

    def _in_order(self, sizes: Mapping[ResourceId, int]) -> Sequence[ResourceId]:
        """These roots, the longest waiting first."""
        return [*(root for root in self._waiting if root in sizes), *(root for root in sizes if root not in self._waiting)]

    def rest(self, seconds: float, at: float) -> bool:
        """Plan no large root for so long after this pass, if it has planned one. Returns whether only large ones rest so long."""
        if self._planned is not None:
            self._not_before = at + seconds
        return self._planned is not None or len(self._waiting) > len(self._held)

    def next_due(self, at: float) -> float | None:
        """When the next root that waits may be planned, not before `at`; None if none waits."""
        if self._held:
            return at
        return max(self._not_before, at) if self._waiting else None
