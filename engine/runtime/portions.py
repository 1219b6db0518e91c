"""Portions: which of the large roots that are to be planned anew wait for a later pass, so that small ones do not wait for all of them."""

import math
from collections.abc import Mapping, Set
from typing import Final

from engine.ids import ResourceId

LARGE: Final = 2_000
"""Objects from which on a root is large: planning it takes a few tenths of a second."""


class Portions:
    """Of the roots with more than `large` objects (default: there are none) a pass plans at most one, which has waited longest.

    Times are of a monotonic clock.
    """

    def __init__(self, large: float = math.inf) -> None:
        self._large = large
        self._waiting: dict[ResourceId, None] = {}
        """As they were put off."""
        self._has_planned = False
        """Whether this pass plans a large root."""
        self._not_before = -math.inf
        """When the next one may be planned, if several are to be."""

    @property
    def waiting(self) -> Set[ResourceId]:
        """The roots that are not planned in this pass, although they are to be."""
        return self._waiting.keys()

    def begin(self, sizes: Mapping[ResourceId, int], at: float) -> None:
        """Begin a pass at this time. `sizes`: the roots that are to be planned anew, and for how many objects each."""
        large = dict.fromkeys(root for root, size in sizes.items() if size > self._large)
        queue = [*(root for root in self._waiting if root in large), *(root for root in large if root not in self._waiting)]
        self._has_planned = bool(queue) and (len(queue) == 1 or at >= self._not_before)
        self._waiting = dict.fromkeys(queue[1:] if self._has_planned else queue)

    def rest(self, seconds: float, at: float) -> bool:
        """Plan no other large root for so long after this pass, if it has planned one. Returns whether any wait: then only they rest."""
        if self._waiting and self._has_planned:
            self._not_before = at + seconds
        return bool(self._waiting)

    def next_due(self, at: float) -> float | None:
        """When the next root that waits may be planned, not before `at`; None if none waits."""
        return max(self._not_before, at) if self._waiting else None
