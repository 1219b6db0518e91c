"""Event budget: how many Events a process writes. Namespaces take turns, and each has a few that no other one can use up."""

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from msgspec import Struct, field

from engine.event import Event

BURST: Final = 100
"""How many Events may be written at once, and as many of those that are counted apart; warnings come first."""

RATE: Final = 10.0
"""How many more may be written after each second, up to `BURST`: while a fleet is deleted, its pods need the server more."""

OWN: Final = 10
"""How many Events a namespace may write at once although others have used up the burst; `BURST` in all namespaces together.

It has as many of the burst before it uses up its own.
"""

OWN_RATE: Final = 0.1
"""How many more it may write after each second, up to `OWN` of each."""

MAX_NAMESPACES: Final = 1024
"""How many namespaces are remembered, those used longest ago are forgotten first: then one has all of its own again."""

Item = TypeVar("Item")


class _Own(Struct):
    """How many Events a namespace may write of its own, and of the burst without using up its own, and when that was counted."""

    left: float
    of_burst: float
    at: float


def _full() -> dict[bool, float]:
    return dict.fromkeys((True, False), BURST)


class EventBudget(Struct, eq=False):
    """What is left of the budget; Events that are counted apart have one of their own. Times are of a monotonic clock."""

    _left: dict[bool, float] = field(default_factory=_full)
    """Whether Events are counted apart -> how many may be written; below 0 by what namespaces have written of their own."""
    _left_at: float = 0.0
    _own: OrderedDict[tuple[bool, str], _Own] = field(default_factory=OrderedDict)

    def first(self, items: Sequence[Item], event: Callable[[Item], Event], at: float) -> list[Item]:
        """The items whose Events may be written now, counted as written: warnings first, and of these namespaces in turn."""
        refilled = RATE * (at - self._left_at)
        self._left, self._left_at = {apart: min(BURST, left + refilled) for apart, left in self._left.items()}, at
        return [item for item in _in_turns(items, event) if self._take(event(item), at)]

    def _take(self, event: Event, at: float) -> bool:
        is_apart, left = event.counted_apart, self._left[event.counted_apart]
        own = self._own_of(is_apart, event.about.namespace, at)
        if left < 1 and (own.left < 1 or left < 1 - BURST):
            return False
        self._left[is_apart] = left - 1
        if left >= 1 and own.of_burst >= 1:
            own.of_burst -= 1
        else:
            own.left = max(own.left - 1, 0)
        return True

    def _own_of(self, is_apart: bool, namespace: str, at: float) -> _Own:
        key = (is_apart, namespace)
        own = self._own.setdefault(key, _Own(OWN, OWN, at))
        refilled = OWN_RATE * (at - own.at)
        own.left, own.of_burst, own.at = min(OWN, own.left + refilled), min(OWN, own.of_burst + refilled), at
        self._own.move_to_end(key)
        if len(self._own) > MAX_NAMESPACES:
            self._own.popitem(last=False)
        return own


def _in_turns(items: Sequence[Item], event: Callable[[Item], Event]) -> list[Item]:
    turns: defaultdict[tuple[bool, bool, str], int] = defaultdict(int)
    ranked: list[tuple[bool, bool, int, int]] = []
    for number, item in enumerate(items):
        of = event(item)
        sort = (not of.warning, not of.counted_apart)
        turns[*sort, of.about.namespace] += 1
        ranked.append((*sort, turns[*sort, of.about.namespace], number))
    return [items[number] for *_, number in sorted(ranked)]
