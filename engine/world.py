"""World: all observed objects sorted by root; what has not changed since the previous world is the same object as in it."""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from engine.blueprint import Blueprint, root_of
from engine.failure import FailedCall
from engine.ids import ResourceId
from engine.observed import EMPTY, Live, Observed, Slice, World, slice_of

FailedCalls = Mapping[ResourceId, tuple[FailedCall, ...]]


def empty() -> World:
    """A world without objects."""
    return World(())


def assemble(
    blueprints: Sequence[Blueprint],
    roots: Iterable[Live],
    children: Iterable[Live],
    incomplete: Mapping[str, str],
    previous: World | None = None,
    *,
    references: Iterable[Live] = (),
    unserved: frozenset[str] = frozenset(),
    failed_calls: FailedCalls = MappingProxyType({}),
) -> World:
    """Each root with its own objects, the foreign ones and the references.

    A root owns the children whose chain of controllers leads to it by uid, whatever their labels. A child whose labels name a root
    that does not own it is foreign to that root: its name is taken, and it is never written. A child that no root owns and whose
    labels name no existing root is an orphan. A child that roots own together and none controls is left out: they find it among
    the references.

    Objects and slices of `previous` that have not changed are kept, so that what was computed from them stays valid.
    `failed_calls` are the failed calls by root; a root that is absent from it has not been written by this process.
    """
    before = {observed.root.id: observed for observed in previous.roots} if previous else {}
    known = {live.id: live for observed in before.values() for live in observed.lives()}
    shared = _Shared(_references(references, previous), unserved, frozenset(incomplete), failed_calls)
    roots = sorted((_known_or_new(root, known) for root in roots), key=lambda root: root.id)
    root_uids = {root.uid for root in roots}
    listed = (_known_or_new(child, known) for child in children if not _is_shared(child, root_uids))
    families, orphans = _families(blueprints, roots, listed)
    by_kind = {blueprint.kind.name: blueprint for blueprint in blueprints}
    observed = tuple(_observed(by_kind[family.root.id.kind], family, shared, before.get(family.root.id)) for family in families)
    return World(observed, tuple(sorted(orphans, key=lambda live: live.id)), incomplete, shared.references, unserved)


@dataclass(frozen=True, slots=True)
class _Shared:
    """What is the same for all roots of a world."""

    references: Slice
    unserved: frozenset[str]
    incomplete: frozenset[str]
    failed_calls: FailedCalls


def _references(references: Iterable[Live], previous: World | None) -> Slice:
    before = previous.references if previous else EMPTY
    return _known_or_new_slice([_known_or_new(live, before.objects) for live in references], before)


def _is_shared(child: Live, root_uids: Set[str]) -> bool:
    return child.controller is None and any(owner.uid in root_uids for owner in child.owners)


def _known_or_new(live: Live, known: Mapping[ResourceId, Live]) -> Live:
    """The known object if uid and revision agree, otherwise the new one."""
    old = known.get(live.id)
    return old if old is not None and (old.uid, old.revision) == (live.uid, live.revision) else live


def _known_or_new_slice(lives: Sequence[Live], before: Slice) -> Slice:
    """The slice before if it holds the same objects, otherwise a new one."""
    if len(lives) == len(before.objects) and all(before.objects.get(live.id) is live for live in lives):
        return before
    return slice_of(lives)


@dataclass(slots=True, eq=False)
class _Family:
    """A root with the children it owns, and those that only have its labels."""

    root: Live
    own: list[Live]
    foreign: list[Live]
    mislabelled: list[Live] = field(default_factory=list)


def _families(blueprints: Sequence[Blueprint], roots: Sequence[Live], children: Iterable[Live]) -> tuple[list[_Family], list[Live]]:
    """The roots with their children, and the orphans."""
    claimed, orphans = _by_label(blueprints, children)
    families = [_Family(root, *_by_descent(root, (), claimed.pop(root.id, ()))) for root in roots]
    orphans.extend(live for lives in claimed.values() for live in lives)
    return families, _reunited(blueprints, families, orphans)


def _by_label(blueprints: Sequence[Blueprint], children: Iterable[Live]) -> tuple[dict[ResourceId, list[Live]], list[Live]]:
    """The children by the root that their labels name, and those whose labels name none."""
    claimed: dict[ResourceId, list[Live]] = {}
    nameless: list[Live] = []
    for child in children:
        root = root_of(blueprints, child)
        if root is None:
            nameless.append(child)
        else:
            claimed.setdefault(root, []).append(child)
    return claimed, nameless


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


def _reunited(blueprints: Sequence[Blueprint], families: Sequence[_Family], orphans: Sequence[Live]) -> list[Live]:
    """Moves to its family every object that a root owns although its labels name another root or none; returns the other orphans."""
    lives = [*orphans, *(live for family in families for live in family.foreign)]
    candidates = [(live, owner.uid) for live in lives if (owner := live.controller)]
    if not candidates:
        return list(orphans)
    family_of = {uid: family for family in families for uid in (family.root.uid, *(live.uid for live in family.own))}
    moved: set[Live] = set()
    while owned := [(live, family_of[uid]) for live, uid in candidates if live not in moved and uid in family_of]:
        for live, family in owned:
            family_of[live.uid] = family
            family.own.append(live)
            if root_of(blueprints, live) != family.root.id:
                family.mislabelled.append(live)
            moved.add(live)
    for family in families:
        family.foreign = [live for live in family.foreign if live not in moved]
    return [live for live in orphans if live not in moved]


def _observed(blueprint: Blueprint, family: _Family, shared: _Shared, before: Observed | None) -> Observed:
    root = family.root
    parts: dict[str, list[Live]] = {}
    for child in family.own:
        parts.setdefault(blueprint.part_of(root.id, child.id), []).append(child)
    now = Observed(
        root,
        {key: _known_or_new_slice(parts[key], before.slice(key) if before else EMPTY) for key in sorted(parts)},
        foreign=_known_or_new_slice(family.foreign, Slice(before.foreign) if before else EMPTY).objects,
        mislabelled=frozenset(live.id for live in family.mislabelled),
        incomplete=shared.incomplete,
        references=shared.references,
        unserved=shared.unserved,
        failed_calls=shared.failed_calls.get(root.id),
    )
    return before if before is not None and _is_unchanged(before, now) else now


def _is_unchanged(before: Observed, now: Observed) -> bool:
    return (
        before.root is now.root
        and before.foreign is now.foreign
        and before.mislabelled == now.mislabelled
        and before.references is now.references
        and before.unserved == now.unserved
        and before.failed_calls is now.failed_calls
        and before.proposal is None
        and before.incomplete == now.incomplete
        and before.slices.keys() == now.slices.keys()
        and all(before.slices[key] is part for key, part in now.slices.items())
    )


def with_foreign(world: World, blueprints: Sequence[Blueprint], root: ResourceId, lives: Iterable[Live]) -> World:
    """The world with objects that were looked up because a name that the root needs is taken.

    Those that the root owns by its chain of controllers are its own: a list by label does not find them, because their labels were
    removed or changed. The others are foreign. Objects that were listed as well are taken from the list.
    """
    by_kind = {blueprint.kind.name: blueprint for blueprint in blueprints}
    looked_up = list(lives)
    return replace(
        world,
        roots=tuple(
            _with_foreign(by_kind[root.kind], observed, looked_up) if observed.root.id == root else observed for observed in world.roots
        ),
    )


def _with_foreign(blueprint: Blueprint, observed: Observed, lives: Iterable[Live]) -> Observed:
    unlisted = {live.id: live for live in lives if observed.find(live.id) is None}
    listed = [live for part in observed.slices.values() for live in part.objects.values()]
    # Listed objects that an unlisted one controls counted as foreign until now.
    own, foreign = _by_descent(observed.root, listed, {**unlisted, **observed.foreign}.values())
    added: dict[str, list[Live]] = {}
    for live in own:
        added.setdefault(blueprint.part_of(observed.root.id, live.id), []).append(live)
    slices = {key: slice_of([*observed.slice(key).objects.values(), *lives]) for key, lives in added.items()}
    return replace(
        observed,
        slices=dict(sorted({**observed.slices, **slices}.items())),
        foreign={live.id: live for live in foreign},
        mislabelled=observed.mislabelled.union(live.id for live in own if live.id in unlisted),
    )
