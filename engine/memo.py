"""Memo: results of earlier computations, reused while their facts are equal; and sequences that know what differs from before.

A memo changes nothing but speed: with and without it every result is the same. The caller owns it and passes it to every tick.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from datetime import datetime
from operator import is_
from typing import Any, Final, TypeVar, cast

T = TypeVar("T")

PARTS: Final = "parts"
"""The key of the blueprint's memo in that of a root."""


class Memo:
    """Results by key, each with the facts that it was computed from."""

    __slots__ = ("_earlier", "_results", "_scopes", "_used")

    def __init__(self, earlier: "Memo | None" = None) -> None:
        """`earlier`: the memo of something before, e.g. of admission before a pass. What it remembers counts until this one does."""
        self._earlier = earlier
        self._results: dict[Hashable, tuple[tuple[Any, ...], Any]] = {}
        self._scopes: dict[Hashable, Memo] = {}
        self._used: set[Hashable] = set()

    def scope(self, key: Hashable) -> "Memo":
        """The memo of that key within this one; its results are dropped by its own `forget_unused` only."""
        self._used.add(key)
        scope = self._scopes.get(key)
        if scope is None:
            scope = self._scopes[key] = Memo(self._earlier._scopes.get(key) if self._earlier is not None else None)
        return scope

    def recall(self, key: Hashable, facts: tuple[Any, ...], make: Callable[[], T]) -> T:
        """The stored result if it was computed from equal facts; otherwise a new one from `make`.

        Facts are equal if they are the same object, or of the same type and equal by `==`; classes with `eq=False` by identity only.
        """
        stored = self._results.get(key)
        self._used.add(key)
        if stored is not None and (_are_identical(stored[0], facts) or is_equal(stored[0], facts)):
            return cast(T, stored[1])
        result = make()
        self._results[key] = (facts, result)
        return result

    def recall_until(
        self, key: Hashable, facts: tuple[Any, ...], now: datetime, make: Callable[[], T], until: Callable[[T], datetime | None]
    ) -> T:
        """Like `recall`, for a result that also expires: from the time that `until` returns for it, a new one is computed."""
        stored = self._results.get(key)
        if stored is not None and (expiry := until(stored[1])) is not None and now >= expiry:
            del self._results[key]
        return self.recall(key, facts, make)

    def last(self, key: Hashable) -> Any:
        """What was last stored under the key with `remember`; None if nothing was."""
        stored = self._results.get(key)
        if stored is not None:
            return stored[1]
        return self._earlier.last(key) if self._earlier is not None else None

    def remember(self, key: Hashable, value: Any) -> None:
        """Store a value under a key of its own. Whoever reads it finds out whether it still applies."""
        self._used.add(key)
        self._results[key] = ((), value)

    def keep_unused(self) -> None:
        """In place of `forget_unused`: drop nothing, because what was not used has not changed."""
        self._used = set()

    def forget_unused(self) -> None:
        """Drop the results and scopes that were not used since the last call."""
        for stored in (self._results, self._scopes):
            for key in stored.keys() - self._used:
                del stored[key]
        self._used = set()


def blueprint_memo(memo: Memo, root: Hashable) -> Memo:
    """The memo that the blueprint of this root is given, within that of all roots."""
    return memo.scope(root).scope(PARTS)


def _are_identical(old: tuple[Any, ...], new: tuple[Any, ...]) -> bool:
    """Whether the facts are the same objects, as they are nearly always: found out without a call for each."""
    return len(old) == len(new) and all(map(is_, old, new))


def is_equal(old: Any, new: Any) -> bool:
    """Equality that, unlike Python's, distinguishes `1` from `True` and from `1.0`, in containers as well."""
    if old is new:
        return True
    if type(old) is not type(new):
        return False
    if isinstance(old, tuple | list):
        return len(old) == len(new) and all(map(is_equal, old, new))
    if isinstance(old, dict):
        return old.keys() == new.keys() and all(is_equal(value, new[key]) for key, value in old.items())
    return bool(old == new)


Item = TypeVar("Item")


class Revised(tuple[Item, ...]):
    """An immutable sequence. Two revisions have equal lengths, and items that stayed are the same objects.

    What it knows besides its items makes answers cheaper, never different. It keeps no other revision alive.
    """

    def __init__(self, items: Iterable[Item] = ()) -> None:
        self._token: object = object()
        """Stands for this revision."""
        self._after: object = None
        """The token of the revision that this one was made from; None: it was made from none."""
        self._replaced: Sequence[int] = ()
        """The positions in which it may differ from that one, sorted."""
        self._selections: dict[Callable[[Item], bool], tuple[int, ...]] = {}

    def revised(self, items: Mapping[int, Item]) -> "Revised[Item]":
        """The sequence with other items at these positions; the same object if they are the same items."""
        different = {position: item for position, item in items.items() if item is not self[position]}
        if not different:
            return self
        listed = list(self)
        for position, item in different.items():
            listed[position] = item
        result = Revised(listed)
        result._after, result._replaced = self._token, sorted(different)
        result._selections = {holds: _selected(result, holds, chosen) for holds, chosen in self._selections.items()}
        return result

    def positions_from(self, old: Sequence[Item]) -> Sequence[int] | None:
        """The positions in which it may differ from the old revision, sorted; None if it was not made from that."""
        return self._replaced if isinstance(old, Revised) and self._after is old._token else None

    def where(self, holds: Callable[[Item], bool]) -> tuple[int, ...]:
        """The positions of the items for which `holds` returns true, sorted. Remembered, also for later revisions.

        `holds` depends on nothing but the item, and is one of a few functions that are the same in all passes.
        """
        if (known := self._selections.get(holds)) is None:
            known = self._selections[holds] = tuple(position for position, item in enumerate(self) if holds(item))
        return known


def _selected(new: Revised[Item], holds: Callable[[Item], bool], before: tuple[int, ...]) -> tuple[int, ...]:
    """The positions of the items for which `holds` returns true, from those of the revision before."""
    replaced = frozenset(new._replaced)
    kept = before if replaced.isdisjoint(before) else tuple(position for position in before if position not in replaced)
    added = [position for position in new._replaced if holds(new[position])]
    return tuple(sorted((*kept, *added))) if added else kept


def revised(old: Sequence[Item], items: Mapping[int, Item]) -> Revised[Item]:
    """The sequence with other items at these positions."""
    return (old if isinstance(old, Revised) else Revised(old)).revised(items)


def as_tuple(items: Sequence[Item]) -> tuple[Item, ...]:
    """The items as a tuple; the same object if they are in one, also in a `Revised`."""
    return items if isinstance(items, tuple) else tuple(items)


def differences(old: Sequence[Item], new: Sequence[Item]) -> Sequence[int] | None:
    """The positions of the items that are not the same objects, sorted; None if the lengths differ."""
    if old is new:
        return ()
    if isinstance(new, Revised) and (known := new.positions_from(old)) is not None:
        return known
    if len(old) != len(new):
        return None
    return [position for position, (before, after) in enumerate(zip(old, new, strict=True)) if before is not after]


def selected(items: Sequence[Item], holds: Callable[[Item], bool]) -> Sequence[Item]:
    """The items for which `holds` returns true, in their order. Of a `Revised` only those that have changed are asked."""
    if isinstance(items, Revised):
        return [items[position] for position in items.where(holds)]
    return [item for item in items if holds(item)]
