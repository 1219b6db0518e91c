"""ObservedChanges: observations that say what has changed since the one before, so that a pass need not look at all objects."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import overload

from engine.observed import Live, Unlisted
from engine.runtime.provider import Observation, Scope
from engine.world_update import Changes, LiveChange
from providers.live_store import LiveStore
from providers.snapshot import children_among, is_left_to_others

MOST = 1000
"""How many changes are kept beside a list before it is copied."""


class ChangedLives(Sequence[Live]):
    """The objects of `base` with some of them changed; nothing is copied until they are read."""

    def __init__(self, base: Sequence[Live], changes: tuple[LiveChange, ...], count: int) -> None:
        """`changes` are in their order, `count` objects are there after them."""
        self._base, self._changes, self._count = base, changes, count

    def changed(self, changes: Sequence[LiveChange]) -> "ChangedLives":
        """The same with more changes."""
        count = self._count + sum((change.new is not None) - (change.old is not None) for change in changes)
        more = ChangedLives(self._base, (*self._changes, *changes), count)
        return more if len(more._changes) <= MOST else ChangedLives(more._lives, (), count)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Live]:
        return iter(self._lives)

    @overload
    def __getitem__(self, index: int) -> Live: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Live]: ...
    def __getitem__(self, index: int | slice) -> Live | Sequence[Live]:
        return self._lives[index]

    @cached_property
    def _lives(self) -> Sequence[Live]:
        if not self._changes:
            return self._base
        changes = {change.id: change.new for change in self._changes}
        kept = [live for live in self._base if live.id not in changes]
        return [*kept, *(new for new in changes.values() if new is not None)]


class ObservedChanges:
    """The last observation of some stores, and what it was made from."""

    def __init__(self) -> None:
        self._last: Observation | None = None
        self._versions: list[tuple[LiveStore, int]] = []

    def begin(self, whole: Observation, stores: Sequence[LiveStore]) -> None:
        """Begin anew with an observation of everything."""
        self._last, self._versions = whole, [(store, store.version) for store in stores]

    def later(
        self, scope: Scope, stores: Sequence[LiveStore], incomplete: Mapping[str, Unlisted], unserved: Collection[str]
    ) -> Observation | None:
        """The next observation, with what has changed since the last one.

        None if that is not known: after another list, after many changes, and while a kind could not be listed.
        """
        last = self._last
        if last is None or last.incomplete or incomplete or last.unserved != unserved or stores != [store for store, _ in self._versions]:
            return None
        of_roots: list[LiveChange] = []
        of_children: list[LiveChange] = []
        of_references: list[LiveChange] = []
        for store, version in self._versions:
            if store.version == version:
                continue
            changes, kind = store.changes_since(version), store.target.kind
            if changes is None:
                return None
            if kind in scope.references:
                of_references.extend(changes)
            if is_left_to_others(kind, scope):
                continue
            if kind in scope.roots:
                of_roots.extend(changes)
            if kind in scope.children:
                of_children.extend(changes if kind not in scope.references else _among_children(changes, scope))
        self.begin(
            Observation(
                _changed(last.roots, of_roots),
                _changed(last.children, of_children),
                references=_changed(last.references, of_references),
                unserved=last.unserved,
                after=last.token,
                changes=Changes((*of_roots, *of_children), of_references),
            ),
            stores,
        )
        return self._last


def _among_children(changes: Iterable[LiveChange], scope: Scope) -> Iterator[LiveChange]:
    """The same changes of objects that count as children before or after them."""
    for change in changes:
        old, new = (live if live is not None and children_among((live,), scope) else None for live in change)
        if old is not None or new is not None:
            yield LiveChange(old, new)


def _changed(lives: Sequence[Live], changes: Sequence[LiveChange]) -> Sequence[Live]:
    if not changes:
        return lives
    return (lives if isinstance(lives, ChangedLives) else ChangedLives(lives, (), len(lives))).changed(changes)
