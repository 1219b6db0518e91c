"""World: a sighting sorted by roots, sharing with the sighting before it whatever has not changed."""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from types import MappingProxyType

from engine.blueprint import Blueprint, root_of
from engine.failure import FailedCall
from engine.ids import Kind, ResourceId
from engine.observed import EMPTY, Live, Observed, Slice, World, live, slice_of
from engine.paths import overlay
from engine.resource import Body

Claims = Mapping[ResourceId, Sequence[Live]]
FailedCalls = Mapping[ResourceId, tuple[FailedCall, ...]]


def empty() -> World:
    """A world in which there is nothing."""
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
    """Each root with what is its own.

    A child belongs to the root that its labels name, if the chain of its controllers leads there by uid. One that only bears the
    labels is a neighbour: its name is taken, and it is never touched. One that roots own together, and none controls, is nobody's
    own: they find it among the references. Objects of `previous` that have not changed are kept, and so
    are slices in which nothing has changed: what was computed from them need not be computed again. `failed_calls` is what is remembered
    of each root; one that is absent from it has not been dealt with.
    """
    before = {observed.root.id: observed for observed in previous.roots} if previous else {}
    known = {old.id: old for observed in before.values() for old in observed.lives()}
    around = _Around(_around(references, previous), unserved, frozenset(incomplete), failed_calls)
    familiar = sorted((_familiar(root, known) for root in roots), key=lambda root: root.id)
    uids = {root.uid for root in familiar}
    claims, orphans = _by_root(blueprints, (_familiar(child, known) for child in children if not _is_shared(child, uids)))
    by_kind = {blueprint.kind.name: blueprint for blueprint in blueprints}
    found = []
    for root in familiar:
        found.append(_observe(by_kind[root.id.kind], root, claims.pop(root.id, []), around, before.get(root.id)))
    orphans.extend(child for abandoned in claims.values() for child in abandoned)
    return World(tuple(found), tuple(sorted(orphans, key=lambda child: child.id)), incomplete, around.references, unserved)


@dataclass(frozen=True, slots=True)
class _Around:
    """What all roots of a world share."""

    references: Slice
    unserved: frozenset[str]
    incomplete: frozenset[str]
    failed_calls: FailedCalls


def _around(references: Iterable[Live], previous: World | None) -> Slice:
    before = previous.references if previous else EMPTY
    return _familiar_slice([_familiar(one, before.objects) for one in references], before)


def _is_shared(child: Live, roots: Set[str]) -> bool:
    return child.controller is None and any(owner.uid in roots for owner in child.owners)


def _familiar(seen: Live, known: Mapping[ResourceId, Live]) -> Live:
    """The object that we already know, if this is still that one."""
    old = known.get(seen.id)
    return old if old is not None and (old.uid, old.revision) == (seen.uid, seen.revision) else seen


def _by_root(blueprints: Sequence[Blueprint], children: Iterable[Live]) -> tuple[dict[ResourceId, list[Live]], list[Live]]:
    claims: dict[ResourceId, list[Live]] = {}
    orphans: list[Live] = []
    for child in children:
        root = root_of(blueprints, child)
        if root is None:
            orphans.append(child)
        else:
            claims.setdefault(root, []).append(child)
    return claims, orphans


def _observe(blueprint: Blueprint, root: Live, claimed: Sequence[Live], around: _Around, before: Observed | None) -> Observed:
    ours, others = _by_descent(root, claimed)
    parts: dict[str, list[Live]] = {}
    for child in ours:
        parts.setdefault(blueprint.part_of(root.id, child.id), []).append(child)
    slices = {key: _familiar_slice(parts[key], before.slice(key) if before else EMPTY) for key in sorted(parts)}
    foreign = _familiar_slice(others, Slice(before.foreign) if before else EMPTY).objects
    now = Observed(
        root,
        slices,
        foreign=foreign,
        incomplete=around.incomplete,
        references=around.references,
        unserved=around.unserved,
        failed_calls=around.failed_calls.get(root.id),
    )
    return before if before is not None and _is_unchanged(before, now) else now


def _is_unchanged(before: Observed, now: Observed) -> bool:
    return (
        before.root is now.root
        and before.foreign is now.foreign
        and before.references is now.references
        and before.unserved == now.unserved
        and before.failed_calls is now.failed_calls
        and before.proposal is None
        and before.incomplete == now.incomplete
        and before.slices.keys() == now.slices.keys()
        and all(before.slices[key] is part for key, part in now.slices.items())
    )


def _by_descent(root: Live, claimed: Sequence[Live]) -> tuple[list[Live], list[Live]]:
    """Those whose chain of controllers leads to the root, and the others."""
    family = {root.uid}
    ours: list[Live] = []
    pending = list(claimed)
    while pending:
        born = [child for child in pending if (owner := child.controller) and owner.uid in family]
        if not born:
            break
        ours.extend(born)
        family.update(child.uid for child in born)
        settled = {child.id for child in born}
        pending = [child for child in pending if child.id not in settled]
    return ours, pending


def _familiar_slice(lives: Sequence[Live], before: Slice) -> Slice:
    """The slice that we already know, if all in it is still the same."""
    if len(lives) == len(before.objects) and all(before.objects.get(one.id) is one for one in lives):
        return before
    return slice_of(lives)


def renew(world: World, blueprint: Blueprint, root: ResourceId, changed: Iterable[Live], gone: Iterable[ResourceId] = ()) -> World:
    """The world with some objects of one root changed, made or gone: only their slices are new."""
    return replace(
        world,
        roots=tuple(_renewed(observed, blueprint, changed, gone) if observed.root.id == root else observed for observed in world.roots),
    )


def _renewed(observed: Observed, blueprint: Blueprint, changed: Iterable[Live], gone: Iterable[ResourceId]) -> Observed:
    root = observed.root
    edits: dict[str, dict[ResourceId, Live]] = {}

    def objects(id: ResourceId) -> dict[ResourceId, Live]:
        key = blueprint.part_of(root.id, id)
        return edits.setdefault(key, dict(observed.slice(key).objects))

    strange: dict[ResourceId, Live] = {}
    for one in changed:
        if one.id == root.id:
            root = one
            continue
        siblings = objects(one.id)
        owner = one.controller
        if owner and (owner.uid == root.uid or any(owner.uid == sibling.uid for sibling in siblings.values())):
            siblings[one.id] = one
        else:
            strange[one.id] = one
    left = set(gone)
    for id in left:
        objects(id).pop(id, None)
    foreign = observed.foreign
    if strange or not left.isdisjoint(foreign):
        foreign = {id: one for id, one in {**foreign, **strange}.items() if id not in left}
    slices = {**observed.slices, **{key: slice_of(lives.values()) for key, lives in edits.items()}}
    return replace(observed, root=root, slices=slices, foreign=foreign)


def with_foreign(world: World, root: ResourceId, references: Iterable[Live]) -> World:
    """The world with objects put with_foreign a root: not its own, but in the way of a name."""
    extra = {one.id: one for one in references}
    return replace(
        world,
        roots=tuple(
            replace(observed, foreign={**extra, **observed.foreign}) if observed.root.id == root else observed for observed in world.roots
        ),
    )


def propose(world: World, manifests: Iterable[Body], referred: Iterable[Kind] = ()) -> World:
    """The world as if these root manifests were applied: roots that exist get a proposal, new ones are there without a uid.

    Roots of kinds that others may refer to are their references as they will be.
    """
    wanted = {root.id: (root, manifest) for manifest in manifests for root in (imagined(manifest),)}
    world = _among(world, wanted.values(), {kind.name for kind in referred})
    changed = tuple(
        replace(observed, proposal=wanted.pop(observed.root.id)[1]) if observed.root.id in wanted else observed for observed in world.roots
    )
    made = tuple(_imaginary(world, root, manifest) for root, manifest in wanted.values())
    return replace(world, roots=tuple(sorted(changed + made, key=lambda observed: observed.root.id)))


def _among(world: World, proposed: Iterable[tuple[Live, Body]], referred: Set[str]) -> World:
    """The world with what is proposed among the references; the same where that says nothing new."""
    there = world.references.objects
    news = {root.id: root for root, manifest in proposed if root.id.kind in referred and _is_news(there.get(root.id), manifest)}
    if not news:
        return world
    around = slice_of({**there, **news}.values())
    return replace(world, roots=tuple(replace(observed, references=around) for observed in world.roots), references=around)


def _is_news(there: Live | None, manifest: Body) -> bool:
    return there is None or there.body.get("spec") != manifest.get("spec")


def _imaginary(world: World, root: Live, manifest: Body) -> Observed:
    """A root that a manifest asks for, in its template_references."""
    return Observed(root, {}, manifest, incomplete=frozenset(world.incomplete), references=world.references, unserved=world.unserved)


def imagined(manifest: Body) -> Live:
    """A root that exists only as a manifest: no uid, no revision."""
    return live(overlay(manifest, {"metadata": {"uid": "", "resourceVersion": ""}}))
