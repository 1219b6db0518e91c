"""WorldUpdate: the world after a few objects have changed, made from the one before without looking at the others."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Generic, NamedTuple

from msgspec.structs import replace

from engine.blueprint import Blueprint, C, root_of
from engine.ids import OwnerRef, ResourceId
from engine.memo import Revised, selected
from engine.observed import Live, Observed, Slice, World, by_root, has_strays, slice_of
from engine.world import FailedCalls, TrialsOf, not_made


class LiveChange(NamedTuple):
    """One change of a listed object."""

    old: Live | None
    """None: it was not there."""
    new: Live | None
    """None: it is gone."""

    @property
    def id(self) -> ResourceId:
        """The identity of the object."""
        live = self.new or self.old
        assert live is not None
        return live.id


class Changes(NamedTuple):
    """What differs between two observations, in the order in which it has changed."""

    lives: Sequence[LiveChange] = ()
    """The changes of roots and children."""
    references: Sequence[LiveChange] = ()


NO_CHANGES = Changes()


def updated(
    blueprints: Sequence[Blueprint[C]],
    world: World,
    changes: Changes,
    failed_calls: FailedCalls,
    failed_lately: Iterable[ResourceId] | None = None,
    trials_of: TrialsOf = not_made,
) -> World | None:
    """The world that `assemble` makes after these changes.

    None if that takes a look at all objects: where an object may change which root others belong to, or where the root of its own is not
    the one that its labels name. `failed_calls` are those of now, and `failed_lately` the roots for which they may be others than the
    world has; None: that is not known.
    """
    update = _Update(blueprints, world, failed_calls, trials_of)
    if not update.take(_steps(blueprints, changes.lives)):
        return None
    roots = by_root(world.roots).revised(update.items())
    references = _references(world.references, changes.references)
    if references is not world.references:
        roots = Revised(roots.roots, [replace(observed, references=references) for observed in roots])
    failed = {id: observed for id in (roots.roots if failed_lately is None else failed_lately) if (observed := roots.get(id)) is not None}
    roots = roots.revised(
        {
            id: replace(observed, failed_calls=now)
            for id, observed in failed.items()
            if (now := failed_calls.get(id)) is not None and now is not observed.failed_calls
        }
    )
    orphans, sharing = update.orphans(), update.sharing
    if roots is world.roots and orphans is world.orphans and references is world.references and sharing == world.sharing:
        return world
    return replace(world, roots=roots, orphans=orphans, references=references, sharing=sharing)


def with_trials(world: World, trials_of: TrialsOf, changed: Iterable[ResourceId]) -> World:
    """The world with what is known now of the trials for the changed roots; those that do not exist are left out."""
    roots = by_root(world.roots)
    observed = {id: each for id in changed if (each := roots.get(id)) is not None}
    replaced = {id: replace(each, trials=trials) for id, each in observed.items() if (trials := trials_of(id)) is not each.trials}
    return replace(world, roots=roots.revised(replaced)) if replaced else world


def with_trials_of_new(world: World, trials_of: TrialsOf) -> World:
    """The world with what is known of the trials for roots that are only proposed; the same world if nothing is."""
    new = (each for each in world.roots if not each.root.uid)
    tried = {each.root.id: replace(each, trials=trials) for each in new if (trials := trials_of(each.root.id)) is not each.trials}
    return replace(world, roots=by_root(world.roots).revised(tried)) if tried else world


def joined(changes: Iterable[LiveChange]) -> dict[ResourceId, LiveChange]:
    """One change for each object: from its first version to its last. None for an object that came and went."""
    by_id: dict[ResourceId, LiveChange] = {}
    for change in changes:
        before = by_id.pop(change.id, None)
        last = change if before is None else LiveChange(before.old, change.new)
        if last.old is not None or last.new is not None:
            by_id[change.id] = last
    return by_id


def _references(references: Slice, changes: Sequence[LiveChange]) -> Slice:
    """The references after these changes; the same object if none differs."""
    if not changes:
        return references
    objects, is_changed = dict(references.objects), False
    for id, (_, new) in joined(changes).items():
        known = objects.get(id)
        if new is None:
            is_changed |= objects.pop(id, None) is not None
        elif known is None or (known.uid, known.revision) != (new.uid, new.revision):
            objects[id], is_changed = new, True
    return slice_of(objects.values()) if is_changed else references


def _steps(blueprints: Sequence[Blueprint[C]], changes: Iterable[LiveChange]) -> Iterator[LiveChange]:
    """The changes; an object that may belong elsewhere after its change goes and comes."""
    for change in joined(changes).values():
        old, new = change
        if old is None or new is None or _stays(blueprints, old, new):
            yield change
        else:
            yield from (LiveChange(old, None), LiveChange(None, new))


def _stays(blueprints: Sequence[Blueprint[C]], old: Live, new: Live) -> bool:
    """Whether an object belongs where it belonged before its change, and others belong to it."""
    if old.uid != new.uid:
        return False
    if old.owners != new.owners and (old.controller is None or old.controller != new.controller):
        return False
    return old.labels == new.labels or root_of(blueprints, old) == root_of(blueprints, new)


class _Root:
    """A root that changes: its objects by part, and those that are foreign to it."""

    def __init__(self, observed: Observed) -> None:
        self.observed = observed
        self.root = observed.root
        self.foreign = dict(observed.foreign)
        self._changed: dict[str, dict[ResourceId, Live]] = {}

    def part(self, key: str) -> Mapping[ResourceId, Live]:
        """The objects of a part as they are now."""
        return self._changed[key] if key in self._changed else self.observed.slice(key).objects

    @cached_property
    def uids(self) -> set[str]:
        """The uids of the root and its objects as they are now."""
        return {self.root.uid, *(live.uid for live in self.own())}

    @cached_property
    def controllers(self) -> Counter[str]:
        """Uid -> how many of the objects it controls."""
        return Counter(owner.uid for live in self.own() if (owner := live.controller))

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

    def own(self) -> Iterator[Live]:
        """The objects of the root as they are now."""
        for key in self.observed.slices.keys() | self._changed.keys():
            yield from self.part(key).values()

    def result(self) -> Observed:
        """The observation of the root; the same object if nothing has changed."""
        observed = self.observed
        if self.foreign != observed.foreign:
            observed = replace(observed, foreign=dict(sorted(self.foreign.items())))
        if not self._changed and self.root is observed.root:
            return observed
        slices = {**observed.slices, **{key: slice_of(lives.values()) for key, lives in self._changed.items()}}
        return replace(observed, root=self.root, slices={key: slices[key] for key in sorted(slices) if slices[key].objects})


class _Update(Generic[C]):
    """Takes changes, and finds the root that each one is about."""

    def __init__(self, blueprints: Sequence[Blueprint[C]], world: World, failed_calls: FailedCalls, trials_of: TrialsOf) -> None:
        self._blueprints, self._world, self._failed_calls, self._trials_of = blueprints, world, failed_calls, trials_of
        self._by_kind = {blueprint.kind.name: blueprint for blueprint in blueprints}
        self._known = by_root(world.roots)
        self._roots: dict[ResourceId, _Root | None] = {}
        """The roots that changes are about; None: a root that is gone."""
        self._orphans: dict[ResourceId, Live] | None = None
        """The orphans as they are now; None: as they were."""
        self.sharing = world.sharing
        """As in the world; roots whose last shared object is gone stay in it."""

    def items(self) -> dict[ResourceId, Observed | None]:
        """The roots that changes are about; None for one that is gone."""
        return {id: root.result() if root is not None else None for id, root in self._roots.items()}

    def orphans(self) -> tuple[Live, ...]:
        """The orphans; the same object if they have not changed."""
        before, now = self._world.orphans, self._orphans
        if now is None or (len(now) == len(before) and all(now.get(live.id) is live for live in before)):
            return before
        return tuple(now[id] for id in sorted(now))

    def take(self, changes: Iterable[LiveChange]) -> bool:
        """Take the changes; false if that is not possible without looking at all objects."""
        remaining = list(changes)
        while remaining:
            # An object may come before its owner, and its owner go before it.
            later = [change for change in remaining if not self._take(change)]
            if len(later) == len(remaining):
                return False
            remaining = later
        return True

    def _take(self, change: LiveChange) -> bool:
        blueprint = self._by_kind.get(change.id.kind)
        if blueprint is not None and blueprint.kind.group == change.id.group:
            return self._take_root(change)
        old = change.old if change.old is not None and not self._is_shared(change.old) else None
        if old is None:
            return change.new is None or self._add(change.new)
        return self._replace(old, change.new) if change.new is not None else self._remove(old)

    def _take_root(self, change: LiveChange) -> bool:
        root, new = self._root(change.id), change.new
        if new is None:
            return root is not None and self._remove_root(root)
        if root is None:
            return self._add_root(new)
        if new.uid != root.root.uid:
            return False
        root.root = new if new.revision != root.root.revision else root.root
        return True

    def _root(self, id: ResourceId) -> _Root | None:
        if id not in self._roots:
            if (observed := self._known.get(id)) is None:
                return None
            self._roots[id] = _Root(observed)
        return self._roots[id]

    def _add_root(self, new: Live) -> bool:
        """Add a root, unless objects that exist without it may belong to it."""
        if any(
            root_of(self._blueprints, live) == new.id or any(owner.uid == new.uid for owner in live.owners) for live in self._rootless()
        ):
            return False
        world, failed = self._world, self._failed_calls.get(new.id)
        lists_failures = failed is None and self._by_kind[new.id.kind].lists_failures((new,))
        self._roots[new.id] = _Root(
            Observed(
                new,
                {},
                incomplete=frozenset(world.incomplete),
                references=world.references,
                unserved=world.unserved,
                failed_calls=failed if failed is not None or lists_failures else (),
                trials=self._trials_of(new.id),
            )
        )
        return True

    def _remove_root(self, root: _Root) -> bool:
        """Remove a root; its objects become orphans."""
        if root.foreign or root.observed.mislabelled or root.root.uid in self.sharing:
            return False
        self._orphans_now().update((live.id, live) for live in root.own())
        self._rootless_controllers.update(root.controllers)
        self._roots[root.root.id] = None
        return True

    def _add(self, new: Live) -> bool:
        """Add an object that the root of its labels or one of its objects controls, one that roots share, or one without an owner."""
        if self._is_shared(new):
            self.sharing |= {owner.uid for owner in new.owners}
            return True
        root, key = self._named_root(new)
        if root is not None and new.id in root.part(key):
            return False
        if (owner := new.controller) is None:
            rootless = self._rootless_of(root)
            if new.owners or new.id in rootless:
                return False
            rootless[new.id] = new
            return True
        if root is None or owner.uid not in root.uids or new.uid in self._rootless_controllers:
            return False
        root.add(key, new, owner)
        return True

    def _replace(self, old: Live, new: Live) -> bool:
        """Replace an object by a later version that belongs where it belonged."""
        root, key = self._named_root(old)
        own = root.part(key).get(old.id) if root is not None else None
        rootless = self._rootless_of(root) if own is None else {}
        if (known := own or rootless.get(old.id)) is None:
            return False
        if known.revision == new.revision:
            return True
        if own is None:
            rootless[new.id] = new
        elif root is not None:
            root.put(key, new)
        return True

    def _remove(self, old: Live) -> bool:
        """Remove an object that controls no other one of its root."""
        root, key = self._named_root(old)
        own = root.part(key).get(old.id) if root is not None else None
        if own is None or root is None:
            return self._rootless_of(root).pop(old.id, None) is not None
        if root.controllers[own.uid]:
            return False
        root.remove(key, own)
        return True

    def _named_root(self, live: Live) -> tuple[_Root | None, str]:
        """The root that the labels of an object name, if it exists, and the key of the part that the object is in."""
        id = root_of(self._blueprints, live)
        root = self._root(id) if id is not None else None
        return (root, self._by_kind[id.kind].part_of(id, live.id)) if id is not None and root is not None else (None, "")

    def _is_shared(self, live: Live) -> bool:
        """Whether roots own the object and none controls it: then it is in no list of a world."""
        return live.controller is None and any(self._is_root(owner, live.id.namespace) for owner in live.owners)

    def _is_root(self, owner: OwnerRef, namespace: str) -> bool:
        """Whether the owner of an object in that namespace is a root."""
        blueprint = self._by_kind.get(owner.kind)
        kind = blueprint.kind if blueprint is not None else None
        root = self._root(kind.id(namespace if kind.namespaced else "", owner.name)) if kind is not None else None
        return root is not None and root.root.uid == owner.uid

    def _rootless(self) -> Iterator[Live]:
        """The objects that no root owns: the orphans, and those that are foreign to the root that their labels name."""
        yield from self._world.orphans if self._orphans is None else self._orphans.values()
        for observed in selected(self._known, has_strays):
            if observed.root.id not in self._roots:
                yield from observed.foreign.values()
        for root in self._roots.values():
            yield from root.foreign.values() if root is not None else ()

    @cached_property
    def _rootless_controllers(self) -> set[str]:
        """The uids of the controllers of objects that no root owns; also of those that have gone since."""
        return {owner.uid for live in self._rootless() if (owner := live.controller)}

    def _rootless_of(self, root: _Root | None) -> dict[ResourceId, Live]:
        """The objects that are foreign to a root; None: the orphans."""
        return root.foreign if root is not None else self._orphans_now()

    def _orphans_now(self) -> dict[ResourceId, Live]:
        if self._orphans is None:
            self._orphans = {live.id: live for live in self._world.orphans}
        return self._orphans
