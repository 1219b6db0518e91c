"""Portions: which of the large roots that are to be planned anew wait for a later pass, so that small ones do not wait for all of them."""

import math
from collections.abc import Mapping, Set
from typing import Final

from engine.ids import ResourceId

LARGE: Final = 2_000
"""Objects from which on a root is large: planning it takes a few tenths of a second."""


class Portions:
    """Roots with more than `large` objects (default: there are none) are planned one in a pass, which has waited longest.

    They wait until the pause after the last one is over, and let a pass with small ones go first. Times are of a monotonic clock.
    """

    def __init__(self, large: float = math.inf) -> None:
        self._large = large
        self._waiting: dict[ResourceId, None] = {}
        """As they were put off."""
        self._has_planned = False
        """Whether this pass plans a large root."""
        self._gave_way = False
        """Whether it plans none because it plans small ones."""
        self._not_before = -math.inf
        """When the next large root may be planned."""

    @property
    def waiting(self) -> Set[ResourceId]:
        """The roots that are not planned in this pass, although they are to be."""
        return self._waiting.keys()

    def begin(self, sizes: Mapping[ResourceId, int], at: float) -> None:
        """Begin a pass at this time. `sizes`: the roots that are to be planned anew, and for how many objects each."""
        large = dict.fromkeys(root for root, size in sizes.items() if size > self._large)
        queue = [*(root for root in self._waiting if root in large), *(root for root in large if root not in self._waiting)]
        may_plan = bool(queue) and at >= self._not_before
        self._gave_way = may_plan and len(sizes) > len(large) and not self._gave_way
        self._has_planned = may_plan and not self._gave_way
        self._waiting = dict.fromkeys(queue[1:] if self._has_planned else queue)

    def rest(self, seconds: float, at: float) -> bool:
        """Plan no large root for so long after this pass, if it has planned one. Returns whether only large ones rest so long."""
        if self._has_planned:
            self._not_before = at + seconds
        return self._has_planned or bool(self._waiting)

    def next_due(self, at: float) -> float | None:
        """When the next root that waits may be planned, not before `at`; None if none waits."""
        return max(self._not_before, at) if self._waiting else None
