"""World: all observed objects grouped by root. What has not changed since the previous world is the same Python object as in it."""

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from functools import partial
from types import MappingProxyType

from msgspec import Struct, field
from msgspec.structs import replace

from engine.answer import NOT_MADE, FailedCall, Trials
from engine.blueprint import Blueprint, C, root_of
from engine.ids import ResourceId
from engine.memo import Memo, Revised
from engine.observed import EMPTY, NONE_MISLABELLED, Live, Observed, Slice, Unlisted, World, by_root, slice_of

FailedCalls = Mapping[ResourceId, tuple[FailedCall, ...]]
"""Root -> its failed calls."""

TrialsOf = Callable[[ResourceId], Trials]
"""Returns what is known of the trials for a root."""


def not_made(root: ResourceId) -> Trials:
    """What is known of the trials for a root where none are made."""
    return NOT_MADE


def empty() -> World:
    """A world without objects."""
    return World(())


def assemble(
    blueprints: Sequence[Blueprint[C]],
    roots: Iterable[Live],
    children: Iterable[Live],
    incomplete: Mapping[str, Unlisted],
    previous: World | None = None,
    *,
    references: Iterable[Live] = (),
    unserved: frozenset[str] = frozenset(),
    failed_calls: FailedCalls = MappingProxyType({}),
    trials_of: TrialsOf = not_made,
) -> World:
    """Each root with its own objects, the foreign ones and the references.

    A root owns the children whose chain of controllers leads to it by uid, whatever their labels. A child whose labels name a root
    that does not own it is foreign to that root: its name is taken, and it is never written. A child that no root owns and whose
    labels name no existing root is an orphan. A child that roots own together and none controls is left out: they find it among
    the references.

    Objects and slices of `previous` that have not changed are kept, so that what was computed from them stays valid.
    `failed_calls` are the failed calls by root; a root that is absent from it has not been written by this process: nothing fails
    unless its objects say so.
    `trials_of` returns the same object while nothing new is known.
    """
    known = _Known(previous)
    shared = _Shared(_references(references, previous), unserved, _kinds(incomplete, previous), failed_calls, trials_of)
    roots = sorted((_known_or_new(root, known.lives) for root in roots), key=lambda root: root.id)
    groups, orphans, sharing = _grouped(blueprints, roots, children, known)
    by_kind = {blueprint.kind.name: blueprint for blueprint in blueprints}
    observed = (_observed(by_kind[group.root.id.kind], group, shared, known.observed.get(group.root.id)) for group in groups)
    by_id = Revised([root.id for root in roots], observed)
    return World(by_id, tuple(sorted(orphans, key=lambda live: live.id)), incomplete, shared.references, unserved, sharing=sharing)


def as_listed(world: World) -> World:
    """The world with what was listed of each root alone, as `assemble` returns it: the rest is found out anew."""
    return replace(world, roots=Revised((each.root.id for each in world.roots), map(_as_listed, world.roots)))


def _as_listed(observed: Observed) -> Observed:
    """The same object if nothing but what was listed is known of it."""
    others = (observed.proposal, observed.proposer, observed.namespace_phase, observed.allowance)
    if all(each is None for each in others) and not (observed.looked_up or observed.nested):
        return observed
    return Observed(
        observed.root,
        observed.slices,
        foreign=observed.foreign,
        mislabelled=observed.mislabelled,
        incomplete=observed.incomplete,
        references=observed.references,
        unserved=observed.unserved,
        failed_calls=observed.failed_calls,
        trials=observed.trials,
    )


class _Known:
    """The objects of the previous world."""

    def __init__(self, previous: World | None) -> None:
        self.observed = {root.root.id: root for root in previous.roots} if previous else {}
        self.lives: dict[ResourceId, Live] = {}
        self._roots: dict[ResourceId, ResourceId] = {}
        """The objects whose labels name the root that owns them -> that root."""
        for id, observed in self.observed.items():
            self.lives[id] = observed.root
            for slice in observed.slices.values():
                self.lives.update(slice.objects)
                self._roots.update(dict.fromkeys(slice.objects, id))
            self.lives.update(observed.foreign)
            for mislabelled in observed.mislabelled:
                self._roots.pop(mislabelled, None)

    def root_of(self, live: Live) -> ResourceId | None:
        """The root that owned exactly this version and that its labels name; None if there was none."""
        return self._roots.get(live.id) if self.lives.get(live.id) is live else None


class _Shared(Struct, frozen=True):
    """What is the same for all roots of a world."""

    references: Slice
    unserved: frozenset[str]
    incomplete: frozenset[str]
    failed_calls: FailedCalls
    trials_of: TrialsOf


def _kinds(incomplete: Mapping[str, Unlisted], previous: World | None) -> frozenset[str]:
    """The kinds that could not be listed completely: those of the previous world if they are the same."""
    before = previous.roots[0].incomplete if previous is not None and previous.roots else frozenset[str]()
    return before if before == incomplete.keys() else frozenset(incomplete)


def _references(references: Iterable[Live], previous: World | None) -> Slice:
    old = previous.references if previous else EMPTY
    return _known_or_new_slice([_known_or_new(live, old.objects) for live in references], old)


def _is_shared(child: Live, root_uids: Set[str]) -> bool:
    """Whether roots own the child and none controls it."""
    return child.controller is None and any(owner.uid in root_uids for owner in child.owners)


def _known_or_new(live: Live, known: Mapping[ResourceId, Live]) -> Live:
    """The known object if uid and revision agree, otherwise the new one."""
    old = known.get(live.id)
    return old if old is not None and (old is live or (old.uid, old.revision) == (live.uid, live.revision)) else live


def _known_or_new_slice(lives: Sequence[Live], old: Slice) -> Slice:
    """The old slice if it holds exactly these objects, otherwise a new one."""
    if len(lives) == len(old.objects) and all(old.objects.get(live.id) is live for live in lives):
        return old
    return slice_of(lives)


class _Group(Struct, eq=False):
    """A root with the children it owns (`own`), and those that only have its labels (`foreign`)."""

    root: Live
    own: list[Live]
    foreign: list[Live]
    mislabelled: list[Live] = field(default_factory=list)
    """The objects of `own` whose labels do not name the root."""
    are_own_unchanged: bool = False
    """Whether `own`, without the mislabelled ones, are the objects that the root owned in the previous world."""


class _Candidates(Struct, eq=False):
    """The children whose labels name one root."""

    lives: list[Live] = field(default_factory=list)
    were_owned: bool = True
    """Whether the root owned all of them in the previous world, and none has changed."""


def _grouped(
    blueprints: Sequence[Blueprint[C]], roots: Sequence[Live], children: Iterable[Live], known: _Known
) -> tuple[list[_Group], list[Live], frozenset[str]]:
    """The roots with their children, the orphans, and the uids of the owners of shared children."""
    labelled, rootless, sharing = _by_label(blueprints, children, {root.uid for root in roots}, known)
    groups = [_group(root, labelled.pop(root.id, _Candidates()), known.observed.get(root.id)) for root in roots]
    rootless.extend(live for candidates in labelled.values() for live in candidates.lives)
    moved = _move_to_owners(blueprints, groups, rootless)
    return groups, [live for live in rootless if live not in moved], sharing


def _by_label(
    blueprints: Sequence[Blueprint[C]], children: Iterable[Live], root_uids: Set[str], known: _Known
) -> tuple[dict[ResourceId, _Candidates], list[Live], frozenset[str]]:
    """The children by the root that their labels name, and those whose labels name none; of shared ones the uids of their owners."""
    labelled: dict[ResourceId, _Candidates] = {}
    unlabelled: list[Live] = []
    sharing: set[str] = set()
    for child in children:
        live = _known_or_new(child, known.lives)
        root = known.root_of(live)
        is_owned = root is not None
        if not is_owned:
            if _is_shared(live, root_uids):
                sharing.update(owner.uid for owner in live.owners)
                continue
            root = root_of(blueprints, live)
        if root is None:
            unlabelled.append(live)
            continue
        if (candidates := labelled.get(root)) is None:
            candidates = labelled[root] = _Candidates()
        candidates.lives.append(live)
        candidates.were_owned = candidates.were_owned and is_owned
    return labelled, unlabelled, frozenset(sharing)


def _group(root: Live, candidates: _Candidates, previous: Observed | None) -> _Group:
    """The root with those of the candidates that it owns. They are looked at one by one only if any of them has changed."""
    if previous is not None and previous.root.uid == root.uid and candidates.were_owned:
        if len(set(candidates.lives)) == previous.count():
            return _Group(root, candidates.lives, [], are_own_unchanged=True)
    return _Group(root, *_by_descent(root, (), candidates.lives))


def _by_descent(root: Live, own: Iterable[Live], candidates: Iterable[Live]) -> tuple[list[Live], list[Live]]:
    """The candidates whose chain of controllers leads to the root or to an object of its own, and the others."""
    uids = {root.uid, *(live.uid for live in own)}
    descendants: list[Live] = []
    others = list(candidates)
    while others:
        children = [live for live in others if (owner := live.controller) and owner.uid in uids]
        if not children:
            break
        descendants.extend(children)
        uids.update(live.uid for live in children)
        child_ids = {live.id for live in children}
        others = [live for live in others if live.id not in child_ids]
    return descendants, others


def _move_to_owners(blueprints: Sequence[Blueprint[C]], groups: Sequence[_Group], rootless: Sequence[Live]) -> set[Live]:
    """Move to its group every object that a root owns although its labels name another root or none. Returns the moved objects."""
    lives = [*rootless, *(live for group in groups for live in group.foreign)]
    candidates = [(live, owner.uid) for live in lives if (owner := live.controller)]
    if not candidates:
        return set()
    group_of = {uid: group for group in groups for uid in (group.root.uid, *(live.uid for live in group.own))}
    moved: set[Live] = set()
    while owned := [(live, group_of[uid]) for live, uid in candidates if live not in moved and uid in group_of]:
        for live, group in owned:
            group_of[live.uid] = group
            group.own.append(live)
            if root_of(blueprints, live) != group.root.id:
                group.mislabelled.append(live)
            moved.add(live)
    for group in groups:
        group.foreign = [live for live in group.foreign if live not in moved]
    return moved


def _observed(blueprint: Blueprint[C], group: _Group, shared: _Shared, previous: Observed | None) -> Observed:
    """The observation of one root: `previous` itself if nothing has changed, otherwise a new one with the unchanged slices of it."""
    root = group.root
    current = Observed(
        root,
        _slices(blueprint, group, previous),
        foreign=_known_or_new_slice(group.foreign, Slice(previous.foreign) if previous else EMPTY).objects,
        mislabelled=frozenset(live.id for live in group.mislabelled) if group.mislabelled else NONE_MISLABELLED,
        incomplete=shared.incomplete,
        references=shared.references,
        unserved=shared.unserved,
        failed_calls=_failed_calls(blueprint, group, shared.failed_calls.get(root.id), previous),
        trials=shared.trials_of(root.id),
    )
    return previous if previous is not None and _is_unchanged(previous, current) else current


def _failed_calls(
    blueprint: Blueprint[C], group: _Group, known: tuple[FailedCall, ...] | None, previous: Observed | None
) -> tuple[FailedCall, ...] | None:
    """The failed calls of a root, if they are known. There are none as long as no object lists any."""
    if known is not None:
        return known
    if previous is not None and previous.root.uid == group.root.uid and previous.failed_calls == ():
        return ()
    return None if blueprint.lists_failures((group.root, *group.own)) else ()


def _slices(blueprint: Blueprint[C], group: _Group, previous: Observed | None) -> Mapping[str, Slice]:
    """The objects of a root by the key of their part, in the order of the keys."""
    if previous is not None and group.are_own_unchanged and not group.mislabelled:
        return previous.slices
    parts = _by_part(blueprint, group.root.id, group.own)
    return {key: _known_or_new_slice(parts[key], previous.slice(key) if previous else EMPTY) for key in sorted(parts)}


def _by_part(blueprint: Blueprint[C], root: ResourceId, lives: Iterable[Live]) -> dict[str, list[Live]]:
    """The objects of a root by the key of the part that they belong to."""
    parts: dict[str, list[Live]] = {}
    for live in lives:
        parts.setdefault(blueprint.part_of(root, live.id), []).append(live)
    return parts


def _is_unchanged(previous: Observed, current: Observed) -> bool:
    return (
        previous.root is current.root
        and previous.foreign is current.foreign
        and previous.mislabelled == current.mislabelled
        and previous.references is current.references
        and previous.unserved == current.unserved
        and previous.failed_calls is current.failed_calls
        and previous.trials is current.trials
        and previous.proposal is None
        and previous.incomplete == current.incomplete
        and (
            previous.slices is current.slices
            or previous.slices.keys() == current.slices.keys()
            and all(previous.slices[key] is slice for key, slice in current.slices.items())
        )
    )


def with_foreign(world: World, blueprints: Sequence[Blueprint[C]], foreign: Mapping[ResourceId, Sequence[Live]], memo: Memo) -> World:
    """The world with objects that were looked up by name. `foreign`: root -> the objects that have names which it needs.

    Those that the root owns by its chain of controllers are its own: a list by label does not find them, because their labels were
    removed or changed. The others are foreign. Objects that were listed as well are taken from the list.
    """
    by_kind, roots = {blueprint.kind.name: blueprint for blueprint in blueprints}, by_root(world.roots)
    replaced: dict[ResourceId, Observed | None] = {}
    for id, lives in foreign.items():
        if (observed := roots.get(id)) is not None:
            make = partial(_with_foreign, by_kind[id.kind], observed, lives)
            replaced[id] = memo.scope(id).recall("foreign", (observed, *lives), make)
    return replace(world, roots=roots.revised(replaced)) if replaced else world


def _with_foreign(blueprint: Blueprint[C], observed: Observed, lives: Iterable[Live]) -> Observed:
    unlisted = {live.id: live for live in lives if observed.find(live.id) is None}
    listed = [live for slice in observed.slices.values() for live in slice.objects.values()]
    # Listed objects that an unlisted one controls counted as foreign until now.
    own, foreign = _by_descent(observed.root, listed, {**unlisted, **observed.foreign}.values())
    added = _by_part(blueprint, observed.root.id, own)
    slices = {key: slice_of([*observed.slice(key).objects.values(), *lives]) for key, lives in added.items()}
    return replace(
        observed,
        slices=dict(sorted({**observed.slices, **slices}.items())),
        foreign={live.id: live for live in foreign},
        mislabelled=observed.mislabelled.union(live.id for live in own if live.id in unlisted),
    )
