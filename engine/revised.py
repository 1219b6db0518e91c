"""Revised: a tuple that knows where it differs from the one it was made from, so that nobody has to look at the items that stayed."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

T = TypeVar("T")


class Revised(tuple[T, ...]):
    """An immutable sequence. Two revisions have equal lengths, and items that stayed are the same objects.

    What it knows besides its items makes answers cheaper, never different. It keeps no other revision alive.
    """

    def __init__(self, items: Iterable[T] = ()) -> None:
        self._token: object = object()
        """Stands for this revision."""
        self._after: object = None
        """The token of the revision that this one was made from; None: it was made from none."""
        self._replaced: Sequence[int] = ()
        """The positions in which it may differ from that one, sorted."""
        self._selections: dict[Callable[[T], bool], tuple[int, ...]] = {}

    def revised(self, items: Mapping[int, T]) -> "Revised[T]":
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

    def positions_from(self, old: Sequence[T]) -> Sequence[int] | None:
        """The positions in which it may differ from the old revision, sorted; None if it was not made from that."""
        return self._replaced if isinstance(old, Revised) and self._after is old._token else None

    def where(self, holds: Callable[[T], bool]) -> tuple[int, ...]:
        """The positions of the items for which `holds` returns true, sorted. Remembered, also for later revisions.

        `holds` depends on nothing but the item, and is one of a few functions that are the same in all passes.
        """
        if (known := self._selections.get(holds)) is None:
            known = self._selections[holds] = tuple(position for position, item in enumerate(self) if holds(item))
        return known


def _selected(new: Revised[T], holds: Callable[[T], bool], before: tuple[int, ...]) -> tuple[int, ...]:
    """The positions of the items for which `holds` returns true, from those of the revision before."""
    replaced = frozenset(new._replaced)
    kept = before if replaced.isdisjoint(before) else tuple(position for position in before if position not in replaced)
    added = [position for position in new._replaced if holds(new[position])]
    return tuple(sorted((*kept, *added))) if added else kept


def revised(old: Sequence[T], items: Mapping[int, T]) -> Revised[T]:
    """The sequence with other items at these positions."""
    return (old if isinstance(old, Revised) else Revised(old)).revised(items)


def as_tuple(items: Sequence[T]) -> tuple[T, ...]:
    """The items as a tuple; the same object if they are in one, also in a `Revised`."""
    return items if isinstance(items, tuple) else tuple(items)


def differences(old: Sequence[T], new: Sequence[T]) -> Sequence[int] | None:
    """The positions of the items that are not the same objects, sorted; None if the lengths differ."""
    if old is new:
        return ()
    if isinstance(new, Revised) and (known := new.positions_from(old)) is not None:
        return known
    if len(old) != len(new):
        return None
    return [position for position, (before, after) in enumerate(zip(old, new, strict=True)) if before is not after]


def selected(items: Sequence[T], holds: Callable[[T], bool]) -> Sequence[T]:
    """The items for which `holds` returns true, in their order. Of a `Revised` only those that have changed are asked."""
    if isinstance(items, Revised):
        return [items[position] for position in items.where(holds)]
    return [item for item in items if holds(item)]
