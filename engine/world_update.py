"""WorldUpdate: the world after a few objects have changed, made from the one before without looking at the others."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from msgspec.structs import replace

from engine.blueprint import Blueprint, C, root_of
from engine.ids import OwnerRef, ResourceId
from engine.memo import revised, selected
from engine.observed import Live, Observed, World, has_strays, slice_of
from engine.world import FailedCalls, TrialsOf


class LiveChange(NamedTuple):
    """One change of a listed object."""

    old: Live | None
    """None: it was not there."""
    new: Live | None
    """None: it is gone."""

    @property
    def id(self) -> ResourceId:
        """Of the object."""
        live = self.new or self.old
        assert live is not None
        return live.id


def updated(
    blueprints: Sequence[Blueprint[C]],
    world: World,
    changes: Iterable[LiveChange],
    failed_calls: FailedCalls,
    failed_lately: Iterable[ResourceId] | None = None,
) -> World | None:
    """The world that `assemble` makes after these changes of roots and children, in their order.

    None if that takes a look at all objects: roots that come or go, objects that change their owner or their labels, and any that
    come or go while there are orphans or foreign objects, which they may own. `failed_calls` are those of now, and `failed_lately` the
    roots for which they may be others than the world has; None: that is not known.
    """
    update = _Update(blueprints, world)
    if not update.take(list(joined(changes).values())):
        return None
    replaced = update.replaced()
    for index in _positions(world, failed_calls, failed_lately):
        observed = replaced.get(index, world.roots[index])
        if (now := failed_calls.get(observed.root.id)) is not observed.failed_calls:
            replaced[index] = replace(observed, failed_calls=now)
    roots = revised(world.roots, replaced)
    return world if roots is world.roots else replace(world, roots=roots)


def with_trials(world: World, trials_of: TrialsOf, changed: Iterable[ResourceId]) -> World:
    """The world with what is known now of the trials for the changed roots; those that do not exist are left out."""
    positions = [position for id in changed if (position := position_of(world, id)) is not None]
    observed = {position: world.roots[position] for position in positions}
    replaced = {
        position: replace(each, trials=trials)
        for position, each in observed.items()
        if (trials := trials_of(each.root.id)) is not each.trials
    }
    return replace(world, roots=revised(world.roots, replaced)) if replaced else world


def _positions(world: World, failed_calls: FailedCalls, failed_lately: Iterable[ResourceId] | None) -> Iterable[int]:
    """The positions of the roots whose failed calls may be others than the world has."""
    if failed_lately is None:
        return range(len(world.roots))
    return [position for id in failed_lately if (position := position_of(world, id)) is not None]


def position_of(world: World, id: ResourceId) -> int | None:
    """The position of a root; None if there is none of that identity."""
    roots = world.roots
    index = bisect_left(roots, id, key=lambda observed: observed.root.id)
    return index if index < len(roots) and roots[index].root.id == id else None


def joined(changes: Iterable[LiveChange]) -> dict[ResourceId, LiveChange]:
    """One change for each object: from its first version to its last. None for an object that came and went."""
    by_id: dict[ResourceId, LiveChange] = {}
    for change in changes:
        before = by_id.pop(change.id, None)
        last = change if before is None else LiveChange(before.old, change.new)
        if last.old is not None or last.new is not None:
            by_id[change.id] = last
    return by_id


class _Root:
    """A root that changes: its objects by part."""

    def __init__(self, observed: Observed) -> None:
        self.observed = observed
        self.root = observed.root
        self._changed: dict[str, dict[ResourceId, Live]] = {}

    def part(self, key: str) -> Mapping[ResourceId, Live]:
        """The objects of a part as they are now."""
        return self._changed[key] if key in self._changed else self.observed.slice(key).objects

    @cached_property
    def uids(self) -> set[str]:
        """The uids of the root and its objects as they are now."""
        return {live.uid for live in self.lives()}

    @cached_property
    def controllers(self) -> Counter[str]:
        """Uid -> how many of the objects it controls."""
        return Counter(owner.uid for live in self.lives() if (owner := live.controller))

    def add(self, key: str, live: Live, owner: OwnerRef) -> None:
        """Add an object that this owner controls."""
        self.uids.add(live.uid)
        self.controllers[owner.uid] += 1
        self.put(key, live)

    def put(self, key: str, live: Live) -> None:
        """Replace an object by a later version of it."""
        self._writable(key)[live.id] = live

    def remove(self, key: str, live: Live) -> None:
        """Remove an object."""
        self.uids.discard(live.uid)
        if live.controller:
            self.controllers[live.controller.uid] -= 1
        del self._writable(key)[live.id]

    def _writable(self, key: str) -> dict[ResourceId, Live]:
        if key not in self._changed:
            self._changed[key] = dict(self.observed.slice(key).objects)
        return self._changed[key]

    def lives(self) -> Iterator[Live]:
        """The root and its objects as they are now."""
        yield self.root
        for key in self.observed.slices.keys() | self._changed.keys():
            yield from self.part(key).values()

    def result(self) -> Observed:
        """The observation of the root; the same object if nothing has changed."""
        if not self._changed and self.root is self.observed.root:
            return self.observed
        slices = {**self.observed.slices, **{key: slice_of(lives.values()) for key, lives in self._changed.items()}}
        return replace(self.observed, root=self.root, slices={key: slices[key] for key in sorted(slices) if slices[key].objects})


class _Update:
    """Takes changes, and finds the root that each one is about."""

    def __init__(self, blueprints: Sequence[Blueprint[C]], world: World) -> None:
        self._blueprints, self._world = blueprints, world
        self._by_kind = {blueprint.kind.name: blueprint for blueprint in blueprints}
        self._changed: dict[int, _Root] = {}

    def replaced(self) -> dict[int, Observed]:
        """The roots that changes are about, by their positions."""
        return {index: changed.result() for index, changed in self._changed.items()}

    @cached_property
    def _has_strays(self) -> bool:
        """Whether there are objects that no root owns, or whose labels name another one than their owner."""
        return bool(self._world.orphans) or bool(selected(self._world.roots, has_strays))

    def take(self, changes: Sequence[LiveChange]) -> bool:
        """Take the changes; false if that is not possible without looking at all objects."""
        while changes:
            # An object may come before its owner, and its owner go before it.
            later = [change for change in changes if not self._take(change)]
            if len(later) == len(changes):
                return False
            changes = later
        return True

    def _take(self, change: LiveChange) -> bool:
        live = change.new or change.old
        if live is None:
            return True
        blueprint = self._by_kind.get(live.id.kind)
        if blueprint is not None and blueprint.kind.group == live.id.group:
            root = self._root(live.id)
            return root is not None and self._take_root(root, change.new)
        id = root_of(self._blueprints, live)
        root = self._root(id) if id is not None else None
        if root is None or id is None:
            return False
        key = self._by_kind[id.kind].part_of(id, live.id)
        known = root.part(key).get(live.id)
        if known is None:
            return self._add(root, key, change.new)
        return self._replace(root, key, known, change.new) if change.new is not None else self._remove(root, key, known)

    def _root(self, id: ResourceId) -> _Root | None:
        index = position_of(self._world, id)
        if index is None:
            return None
        if index not in self._changed:
            self._changed[index] = _Root(self._world.roots[index])
        return self._changed[index]

    def _take_root(self, root: _Root, new: Live | None) -> bool:
        if new is None or new.uid != root.root.uid:
            return False
        root.root = new if new.revision != root.root.revision else root.root
        return True

    def _add(self, root: _Root, key: str, new: Live | None) -> bool:
        """Add an object that the root or one of its objects controls."""
        if new is None or self._has_strays or (owner := new.controller) is None:
            return False
        if owner.uid not in root.uids:
            return False
        root.add(key, new, owner)
        return True

    def _replace(self, root: _Root, key: str, known: Live, new: Live) -> bool:
        if (known.uid, known.owners, known.labels) != (new.uid, new.owners, new.labels):
            return False
        if known.revision != new.revision:
            root.put(key, new)
        return True

    def _remove(self, root: _Root, key: str, known: Live) -> bool:
        """Remove an object that controls no other one."""
        if self._has_strays or root.controllers[known.uid]:
            return False
        root.remove(key, known)
        return True
