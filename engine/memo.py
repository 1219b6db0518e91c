"""Memo: results of earlier computations, reused while their facts are equal; Revised: one item for each root, and which ones are new;
Steps: how much has been computed.

A memo changes nothing but speed: with and without it every result is the same. The caller owns it and passes it to every tick.
"""

from bisect import bisect_left
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from itertools import compress, count, repeat
from operator import is_, is_not
from typing import Any, Final, NamedTuple, TypeVar

from engine.ids import ResourceId

Source = TypeVar("Source")
T = TypeVar("T")
Item = TypeVar("Item")

ABSENT: Final = object()
"""In place of the value of a key that a dictionary does not have."""
PARTS: Final = "parts"
"""The key of the blueprint's memo in that of a root."""
KNOWN: Final = 4
"""From how many earlier revisions a sequence knows its differences: a pass makes a few of one sequence."""
FEW: Final = 10
"""Items are searched one by one if they are fewer than this fraction of all."""


class Revised(tuple[Item, ...]):
    """One item for each root, in the order of the roots. Immutable: a change makes another revision, which shares what stays the same.

    What it knows besides its roots and items makes answers cheaper, never different. It keeps no other revision alive.
    """

    roots: tuple[ResourceId, ...]

    def __new__(cls, roots: Iterable[ResourceId] = (), items: Iterable[Item] = ()) -> "Revised[Item]":
        """`roots` are sorted, and each has the item at its position."""
        result = super().__new__(cls, items)
        result.roots = tuple(roots)
        result._token = object()
        result._changes = {}
        result._selections = {}
        return result

    _token: object
    """Stands for this revision."""
    _changes: dict[object, tuple[ResourceId, ...]]
    """Token of an earlier revision -> the roots in which this one may differ from it, sorted."""
    _selections: dict[Callable[[Item], bool], tuple[ResourceId, ...]]

    def get(self, root: ResourceId) -> Item | None:
        """The item of a root; None if there is none."""
        index = bisect_left(self.roots, root)
        return self[index] if index < len(self) and self.roots[index] == root else None

    def revised(self, items: Mapping[ResourceId, Item | None]) -> "Revised[Item]":
        """The sequence with these items, without the roots of which the item is None; the same object if nothing differs."""
        different = {root: item for root, item in items.items() if item is not self.get(root)}
        if not different:
            return self
        roots, listed, has_others = list(self.roots), list(self), False
        for root, item in different.items():
            index = bisect_left(roots, root)
            if item is None:
                has_others = True
                del roots[index], listed[index]
            elif index == len(roots) or roots[index] != root:
                has_others = True
                roots.insert(index, root)
                listed.insert(index, item)
            else:
                listed[index] = item
        result = Revised(roots if has_others else self.roots, listed)
        changed = tuple(sorted(different))
        kept = list(self._changes.items())[: KNOWN - 1]
        result._changes = {self._token: changed, **{token: tuple(sorted({*before, *changed})) for token, before in kept}}
        result._selections = {holds: result._selected(holds, chosen, changed) for holds, chosen in self._selections.items()}
        return result

    def changed_since(self, old: "Revised[Item]") -> tuple[ResourceId, ...] | None:
        """The roots in which it may differ from an earlier revision, sorted; None if it was not made from that, or long ago."""
        return self._changes.get(old._token)

    def where(self, holds: Callable[[Item], bool]) -> list[Item]:
        """The items for which `holds` returns true, in their order. Of a later revision only those that have changed are asked.

        `holds` depends on nothing but the item, and is one of a few functions that are the same in all passes.
        """
        if (known := self._selections.get(holds)) is None:
            known = self._selections[holds] = tuple(root for root, item in zip(self.roots, self, strict=True) if holds(item))
        if len(known) * FEW > len(self):
            chosen = frozenset(known)
            return [item for root, item in zip(self.roots, self, strict=True) if root in chosen]
        return [self[bisect_left(self.roots, root)] for root in known]

    def _selected(
        self, holds: Callable[[Item], bool], before: tuple[ResourceId, ...], changed: tuple[ResourceId, ...]
    ) -> tuple[ResourceId, ...]:
        """The roots for whose items `holds` returns true, from those of the revision before."""
        kept = before if frozenset(changed).isdisjoint(before) else tuple(root for root in before if root not in changed)
        added = [root for root in changed if (item := self.get(root)) is not None and holds(item)]
        return tuple(sorted((*kept, *added))) if added else kept


def differences(old: Revised[Item], new: Revised[Item]) -> tuple[ResourceId, ...]:
    """The roots of which the items may not be the same object, or of which only one of both has an item, sorted."""
    if old is new:
        return ()
    if (known := new.changed_since(old)) is not None:
        return known
    if old.roots is new.roots or old.roots == new.roots:
        return tuple(compress(new.roots, map(is_not, old, new)))
    before = dict(zip(old.roots, old, strict=True))
    different = [root for root, item in zip(new.roots, new, strict=True) if before.pop(root, None) is not item]
    return tuple(sorted((*different, *before)))


def as_tuple(items: Sequence[Item]) -> tuple[Item, ...]:
    """The items as a tuple; the same object if they are in one, also in a `Revised`."""
    return items if isinstance(items, tuple) else tuple(items)


def selected(items: Sequence[Item], holds: Callable[[Item], bool]) -> Sequence[Item]:
    """The items for which `holds` returns true, in their order. Of a `Revised` only those that have changed are asked."""
    return items.where(holds) if isinstance(items, Revised) else [item for item in items if holds(item)]


class Preempted(BaseException):
    """Something more urgent is to be computed first. What has been computed is remembered; it is no error of what was interrupted."""


class Steps:
    """How much has been done. Made by the caller of passes and read in any thread; between two readings only a difference counts."""

    __slots__ = ("_least", "count", "is_preempted", "is_waiting", "taken")

    def __init__(self) -> None:
        self.count = 0
        """Results computed, objects compared, calls answered."""
        self.taken = 0
        """How many of them are results that are remembered."""
        self.is_preempted = False
        """Whether something more urgent is to be computed; set in any thread."""
        self._least = 0
        self.is_waiting = False
        """Whether nothing is to be done now: the process waits for changes, or for what it reads, which has its own time limits."""

    def begin(self, least: int) -> None:
        """Begin something that is not interrupted before it has so many results."""
        self._least = self.taken + least

    def take(self) -> None:
        """Count a result that is remembered. Raises `Preempted` if something is more urgent, and there are enough of them."""
        self.count += 1
        self.taken += 1
        if self.is_preempted and self.taken >= self._least:
            raise Preempted

    def counted(self, items: Iterable[T]) -> Iterator[T]:
        """The items, each counted when it is taken."""
        for item in items:
            self.count += 1
            yield item

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """While the block runs nothing is to be done."""
        before, self.is_waiting = self.is_waiting, True
        try:
            yield
        finally:
            self.is_waiting = before
            self.count += 1


class _Each(NamedTuple):
    """The results of all roots, and the items that they were computed from."""

    source: Revised[Any]
    results: Revised[Any]


class _All(NamedTuple):
    """Results by name, and what they were computed from: of each column the item at the position of the name."""

    names: tuple[Hashable, ...] = ()
    columns: tuple[tuple[Any, ...], ...] = ()
    results: tuple[Any, ...] = ()

    def of(self, names: tuple[Hashable, ...], columns: int) -> "_All":
        """The same for these names in their order. A new one has the result None, and items that equal nothing."""
        if names == self.names:
            return self
        old = {name: position for position, name in enumerate(self.names)}
        positions = [old.get(name) for name in names]
        aligned = [[ABSENT if position is None else column[position] for position in positions] for column in self.columns]
        results = tuple(None if position is None else self.results[position] for position in positions)
        return _All(names, tuple(map(tuple, aligned)) if aligned else ((ABSENT,) * len(names),) * columns, results)


class Memo:
    """Results by key, each with the facts that it was computed from."""

    __slots__ = ("_earlier", "_results", "_scopes", "_used", "steps")

    def __init__(self, earlier: "Memo | None" = None, steps: Steps | None = None) -> None:
        """`earlier`: the memo of something before, e.g. of admission before a pass. What it remembers counts until this one does.

        `steps`: where every result that is computed is counted.
        """
        self._earlier = earlier
        self.steps = steps or Steps()
        self._results: dict[Hashable, tuple[tuple[Any, ...], Any]] = {}
        self._scopes: dict[Hashable, Memo] = {}
        self._used: set[Hashable] = set()

    def scope(self, key: Hashable) -> "Memo":
        """The memo of that key within this one; its results are dropped by its own `forget_unused` only."""
        self._used.add(key)
        scope = self._scopes.get(key)
        if scope is None:
            scope = self._scopes[key] = Memo(self._earlier._scopes.get(key) if self._earlier is not None else None, self.steps)
        return scope

    def with_only(self, key: Hashable) -> "Memo":
        """A memo that remembers the result of that key alone, and counts where this one does."""
        memo = Memo(steps=self.steps)
        memo._results = {each: stored for each, stored in self._results.items() if each == key}
        return memo

    def recall(self, key: Hashable, facts: tuple[Any, ...], make: Callable[[], T]) -> T:
        """The stored result if it was computed from equal facts; otherwise a new one from `make`.

        Facts are equal if they are the same object, or of the same type and equal by `==`; classes with `eq=False` by identity only.
        """
        stored = self._stored(key)
        self._used.add(key)
        if stored is not None and (_are_identical(stored[0], facts) or is_equal(stored[0], facts)):
            self._results[key] = stored
            known: T = stored[1]
            return known
        return self._made(key, facts, make)

    def _made(self, key: Hashable, facts: tuple[Any, ...], make: Callable[[], T]) -> T:
        """A new result, which is stored and counted."""
        result = make()
        self._results[key] = (facts, result)
        self.steps.take()
        return result

    def _stored(self, key: Hashable) -> tuple[tuple[Any, ...], Any] | None:
        """The facts and the result that were stored under the key last, here or in the earlier memo."""
        stored = self._results.get(key)
        return stored if stored is not None or self._earlier is None else self._earlier._stored(key)

    def recall_until(
        self, key: Hashable, facts: tuple[Any, ...], now: datetime, make: Callable[[], T], until: Callable[[T], datetime | None]
    ) -> T:
        """Like `recall`, for a result that also expires: from the time that `until` returns for it, a new one is computed."""
        stored = self._stored(key)
        if stored is not None and (expiry := until(stored[1])) is not None and now >= expiry:
            self._used.add(key)
            return self._made(key, facts, make)
        return self.recall(key, facts, make)

    def recall_all(
        self,
        key: Hashable,
        names: tuple[Hashable, ...],
        facts: tuple[Any, ...],
        columns: tuple[tuple[Any, ...], ...],
        make: Callable[[int, T | None], T],
        has_expired: Callable[[T], bool] | None = None,
    ) -> tuple[T, ...]:
        """Like `recall` for each of these names: its facts are `facts` and, of each column, the item at the position of the name.

        `make` gets the position, and the last result for the name if there is one. What is unchanged takes no call for each name.
        `has_expired`: whether a result is computed anew although its facts are equal.
        """
        stored = self._stored(key)
        self._used.add(key)
        before = (stored[1] if stored is not None else _All()).of(names, len(columns))
        changed: Sequence[int] = range(len(names))
        if stored is not None and (_are_identical(stored[0], facts) or is_equal(stored[0], facts)):
            pairs = tuple(zip(before.columns, columns, strict=True))
            others = {index for old, new in pairs for index in compress(count(), map(is_not, old, new))}
            different = {index for index in others if not all(is_equal(old[index], new[index]) for old, new in pairs)}
            if has_expired is not None:
                different.update(index for index, known in enumerate(before.results) if known is not None and has_expired(known))
            changed = sorted(different)
        results, made = list(before.results), 0
        try:
            for index in changed:
                results[index] = make(index, results[index])
                made += 1
                self.steps.take()
        except Preempted:
            self._results[key] = (facts, _All(names, _without_items(columns, changed[made:]), tuple(results)))
            raise
        result = tuple(results) if changed else before.results
        self._results[key] = (facts, _All(names, columns, result))
        return result

    def each(
        self,
        key: Hashable,
        source: Revised[Source],
        facts: tuple[Any, ...],
        make: Callable[[Source], T],
        also: Iterable[ResourceId] = (),
    ) -> Revised[T]:
        """The result of `make` for the item of each root, computed anew only for roots whose item is another object than in the last call,
        and for the roots in `also`; for all if the facts are not equal. The items and the results of the last call are kept alive.
        """
        stored = self._results.get(key)
        self._used.add(key)
        if stored is not None and (_are_identical(stored[0], facts) or is_equal(stored[0], facts)):
            before: _Each = stored[1]
            roots = dict.fromkeys((*differences(before.source, source), *also))
            made = {root: make(item) if (item := source.get(root)) is not None else None for root in roots}
            results = before.results.revised(made)
        else:
            results = Revised(source.roots, map(make, source))
        self._results[key] = (facts, _Each(source, results))
        return results

    def last_each(self, key: Hashable) -> Revised[Any] | None:
        """What `each` returned last for the key; None if it was not called."""
        stored = self._results.get(key)
        return stored[1].results if stored is not None else None

    def last(self, key: Hashable) -> Any:
        """What was last stored under the key with `remember`; None if nothing was."""
        stored = self._stored(key)
        return stored[1] if stored is not None else None

    def remember(self, key: Hashable, value: Any) -> None:
        """Store a value under a key of its own. Its reader finds out whether it still applies."""
        self._used.add(key)
        self._results[key] = ((), value)

    def forget_unused_results(self) -> None:
        """In place of `forget_unused`: drop the results alone. The scopes that were not used are those of what has not changed."""
        for key in self._results.keys() - self._used:
            del self._results[key]
        self._used = set()

    def forget_unused(self, scopes: Iterable[Hashable] = ()) -> None:
        """Drop the results and scopes that were not used since the last call, but not these scopes."""
        for key in self._scopes.keys() - self._used.union(scopes):
            del self._scopes[key]
        self.forget_unused_results()


def blueprint_memo(memo: Memo, root: Hashable) -> Memo:
    """The memo that the blueprint of this root is given, within that of all roots."""
    return memo.scope(root).scope(PARTS)


def _without_items(columns: tuple[tuple[Any, ...], ...], positions: Collection[int]) -> tuple[tuple[Any, ...], ...]:
    """The columns with items that equal nothing at these positions."""
    left_out = frozenset(positions)
    return tuple(tuple(ABSENT if index in left_out else item for index, item in enumerate(column)) for column in columns)


def _are_identical(old: tuple[Any, ...], new: tuple[Any, ...]) -> bool:
    """Whether the facts are the same objects, as they are nearly always: found out without a call for each."""
    return len(old) == len(new) and all(map(is_, old, new))


def is_equal(old: Any, new: Any) -> bool:
    """Equality that, unlike Python's, distinguishes `1` from `True` and from `1.0`, in containers as well."""
    if old is new:
        return True
    if type(old) is not type(new):
        return False
    if isinstance(old, dict):
        return len(old) == len(new) and _are_equal(zip(old.values(), map(new.get, old, repeat(ABSENT)), strict=True))
    if isinstance(old, tuple | list):
        return len(old) == len(new) and _are_equal(zip(old, new, strict=True))
    return bool(old == new)


def _are_equal(pairs: Iterable[tuple[Any, Any]]) -> bool:
    """Whether the two values of each pair are equal: most are the same object, or texts, which takes no call."""
    for old, new in pairs:
        if old is new:
            continue
        if type(old) is str is type(new):
            if old != new:
                return False
        elif not is_equal(old, new):
            return False
    return True
