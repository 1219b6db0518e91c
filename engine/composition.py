"""Composition: roots that other roots consist of, such as the workload that carries out a graph."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from msgspec.structs import replace

from engine.blueprint import Blueprint, ComposingBlueprint, NestedRoot
from engine.ids import ResourceId
from engine.memo import Memo
from engine.observed import Live, Observed, World
from engine.proposal import proposed_root
from engine.revised import selected


def compose(world: World, blueprints: Sequence[Blueprint], configuration: Any, memo: Memo) -> World:
    """The world as if every composing root had applied the manifests of its nested roots.

    A nested root that exists gets the manifest as its proposal, a missing one is added without a uid. One that the composing root does
    not control is foreign to it and stays as it is. What has not changed since the last call is the same object as then.
    """
    composing = _composing(tuple(blueprints))
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
        proposed = [_proposed(world, outer, roots, nested, scope) for nested in blueprint.nested_roots(outer, configuration, scope)]
        roots[id] = _with_foreign(outer, [other.root for other in proposed if not _is_of(other, outer)], scope)
        roots.update((inner.root.id, inner) for inner in proposed if _is_of(inner, outer))
    return replace(world, roots=tuple(roots[id] for id in sorted(roots)))


@lru_cache(maxsize=4)
def _composing(blueprints: tuple[Blueprint, ...]) -> Mapping[str, ComposingBlueprint]:
    """Kind of root -> its blueprint, for the kinds whose roots consist of other roots. Remembered: the structural check is slow."""
    return {blueprint.kind.name: blueprint for blueprint in blueprints if isinstance(blueprint, ComposingBlueprint)}


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
        return replace(observed, proposal=nested.body, proposer=outer.root, holds=nested.holds)

    facts = (existing, nested, outer.root, world.references, world.incomplete, world.unserved)
    return memo.recall(("nested root", root.id), facts, make)


def _is_of(inner: Observed, outer: Observed) -> bool:
    """Whether the root is nested in the other one."""
    return inner.proposer is outer.root
