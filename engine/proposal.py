"""Proposal: the world as if root manifests were applied to it, and as if the roots that other roots propose were."""

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from functools import lru_cache

from msgspec.structs import replace

from engine.blueprint import Blueprint, C, NestedRoot
from engine.ids import Kind, ResourceId
from engine.memo import PARTS, Memo, blueprint_memo, selected
from engine.observed import Live, Observed, World, live, slice_of
from engine.paths import overlay
from engine.resource import Body


def propose(world: World, manifests: Iterable[Body], referred: Iterable[Kind] = ()) -> World:
    """The world as if these root manifests were applied: existing roots get a proposal, new ones are added without a uid.

    Roots of the kinds in `referred` replace the references of the same name, because other roots may refer to them.
    """
    manifests = tuple(manifests)
    if not manifests:
        return world
    proposals = {root.id: (root, manifest) for manifest in manifests for root in (proposed_root(manifest),)}
    world = _with_references(world, proposals.values(), {kind.name for kind in referred})
    existing = tuple(
        replace(observed, proposal=proposals.pop(observed.root.id)[1]) if observed.root.id in proposals else observed
        for observed in world.roots
    )
    new = tuple(_new_root(world, root, manifest) for root, manifest in proposals.values())
    return replace(world, roots=tuple(sorted(existing + new, key=lambda observed: observed.root.id)))


def _with_references(world: World, proposals: Iterable[tuple[Live, Body]], referred: Set[str]) -> World:
    """The world with the proposals that change a reference; the same object if none does."""
    existing = world.references.objects
    changed = {root.id: root for root, manifest in proposals if root.id.kind in referred and _is_changed(existing.get(root.id), manifest)}
    if not changed:
        return world
    references = slice_of({**existing, **changed}.values())
    return replace(world, roots=tuple(replace(observed, references=references) for observed in world.roots), references=references)


def _is_changed(existing: Live | None, manifest: Body) -> bool:
    """Whether the manifest has another spec than the existing object, if there is one."""
    return existing is None or existing.body.get("spec") != manifest.get("spec")


def _new_root(world: World, root: Live, manifest: Body) -> Observed:
    """The observation of a root that does not exist yet: it has no objects."""
    return Observed(root, {}, manifest, incomplete=frozenset(world.incomplete), references=world.references, unserved=world.unserved)


def proposed_root(manifest: Body) -> Live:
    """A root that exists only as a manifest: its uid and revision are empty, and times that the manifest has are ignored."""
    metadata = manifest["metadata"]
    times = {key: None for key in ("creationTimestamp", "deletionTimestamp") if key in metadata}
    return live(overlay(manifest, {"metadata": {"uid": "", "resourceVersion": "", **times}}))


def compose(world: World, blueprints: Sequence[Blueprint[C]], configuration: C, memo: Memo) -> World:
    """The world as if every composing root had applied the manifests of its nested roots.

    A nested root that exists gets the manifest as its proposal, a missing one is added without a uid. One that the composing root does
    not control is foreign to it and stays as it is. What has not changed since the last call is the same object as then.
    """
    composing = {blueprint.kind.name: blueprint for blueprint in blueprints if blueprint.nested_kinds()}
    if not selected(world.roots, _is_of_kind(frozenset(composing))):
        return world
    roots = {observed.root.id: observed for observed in world.roots}
    controlled = _by_controller(world)
    for id, observed in list(roots.items()):
        blueprint = composing.get(id.kind)
        if blueprint is None:
            continue
        scope = memo.scope(id)
        outer = _with_nested(observed, controlled.get(observed.root.uid, ()), scope)
        nested_roots = blueprint.nested_roots(outer, configuration, scope.scope(PARTS))
        proposed = [_proposed(world, outer, roots, nested, memo) for nested in nested_roots]
        roots[id] = _with_foreign(outer, [other.root for other in proposed if not _is_of(other, outer)], scope)
        roots.update((inner.root.id, inner) for inner in proposed if _is_of(inner, outer))
    return replace(world, roots=tuple(roots[id] for id in sorted(roots)))


@lru_cache(maxsize=4)
def _is_of_kind(kinds: frozenset[str]) -> Callable[[Observed], bool]:
    """Whether a root is of one of these kinds; the same function for the same kinds."""
    return lambda observed: observed.root.id.kind in kinds


def _by_controller(world: World) -> Mapping[str, list[Observed]]:
    """Uid of a controller -> the roots that it controls."""
    controlled: dict[str, list[Observed]] = {}
    for observed in world.roots:
        if controller := observed.root.controller:
            controlled.setdefault(controller.uid, []).append(observed)
    return controlled


def _with_nested(observed: Observed, nested: Sequence[Observed], memo: Memo) -> Observed:
    """The observation with the roots that the root controls."""
    if not nested:
        return observed
    facts = (observed, *nested)
    return memo.recall("nested", facts, lambda: replace(observed, nested={inner.root.id: inner for inner in nested}))


def _with_foreign(observed: Observed, foreign: Sequence[Live], memo: Memo) -> Observed:
    """The observation with roots that have the names of nested ones and that the root does not control."""
    if not foreign:
        return observed
    added = {live.id: live for live in foreign}
    return memo.recall("foreign roots", (observed, *foreign), lambda: replace(observed, foreign={**observed.foreign, **added}))


def _proposed(world: World, outer: Observed, roots: Mapping[ResourceId, Observed], nested: NestedRoot, memo: Memo) -> Observed:
    """The observation of a nested root with its manifest; an existing root that is foreign is returned unchanged."""
    root = proposed_root(nested.body)
    existing = roots.get(root.id)
    if existing is not None and (existing.root.controller is None or existing.root.controller.uid != outer.root.uid):
        return existing

    def make() -> Observed:
        observed = existing or Observed(
            root, {}, incomplete=frozenset(world.incomplete), references=world.references, unserved=world.unserved
        )
        of_root = blueprint_memo(memo, root.id)
        for key, value in nested.remembered.items():
            of_root.remember(key, value)
        return replace(observed, proposal=nested.body, proposer=outer.root, holds=nested.holds)

    facts = (existing, nested, outer.root, world.references, world.incomplete, world.unserved)
    return memo.scope(outer.root.id).recall(("nested root", root.id), facts, make)


def _is_of(inner: Observed, outer: Observed) -> bool:
    """Whether the root is nested in the other one."""
    return inner.proposer is outer.root
