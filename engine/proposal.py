"""Proposal: the world as if root manifests were applied to it, and as if the roots that other roots propose were."""

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from engine.blueprint import Blueprint, C, NestedRoot
from engine.ids import Kind, ResourceId
from engine.memo import PARTS, Memo, Revised, blueprint_memo, differences, is_equal
from engine.observed import NO_REPLICAS, Live, Observed, World, by_root, live, slice_of
from engine.paths import overlay
from engine.resource import Body

COMPOSITION: Final = "composition"
"""The key of what was composed last."""
NO_ROOTS: Final = frozenset[ResourceId]()
NONE_ASKED: Final[Mapping[ResourceId, Mapping[str, int]]] = MappingProxyType({})
Key = TypeVar("Key")


def propose(
    world: World, manifests: Iterable[Body], referred: Iterable[Kind] = (), replicas: Mapping[ResourceId, Mapping[str, int]] = NONE_ASKED
) -> World:
    """The world as if these root manifests were applied: existing roots get a proposal, new ones are added without a uid.

    Roots of the kinds in `referred` replace the references of the same name, because other roots may refer to them.
    `replicas`: see `Intent`.
    """
    manifests = tuple(manifests)
    if not manifests:
        return world
    proposals = {root.id: (root, manifest) for manifest in manifests for root in (proposed_root(manifest),)}
    world = _with_references(world, proposals.values(), {kind.name for kind in referred})
    existing = tuple(
        replace(observed, proposal=proposals.pop(id)[1], replicas=replicas.get(id, NO_REPLICAS)) if id in proposals else observed
        for observed in world.roots
        for id in (observed.root.id,)
    )
    new = tuple(_new_root(world, root, manifest, replicas.get(root.id, NO_REPLICAS)) for root, manifest in proposals.values())
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


def _new_root(world: World, root: Live, manifest: Body, replicas: Mapping[str, int]) -> Observed:
    """The observation of a root that does not exist yet: it has no objects."""
    incomplete, references = frozenset(world.incomplete), world.references
    return Observed(root, {}, manifest, incomplete=incomplete, references=references, unserved=world.unserved, replicas=replicas)


def proposed_root(manifest: Body) -> Live:
    """A root that exists only as a manifest: its uid and revision are empty, and times that the manifest has are ignored."""
    metadata = manifest["metadata"]
    times = {key: None for key in ("creationTimestamp", "deletionTimestamp") if key in metadata}
    return live(overlay(manifest, {"metadata": {"uid": "", "resourceVersion": "", **times}}))


def compose(world: World, blueprints: Sequence[Blueprint[C]], configuration: C, memo: Memo) -> World:
    """The world as if every composing root had applied the manifests of its nested roots.

    A nested root that exists gets the manifest as its proposal, a missing one is added without a uid. One that the composing root does
    not control is foreign to it and stays as it is. What has not changed since the last call is the same object as then: only composing
    roots that have changed themselves or in their nested roots are composed anew. While two of them propose the same root, all are.
    """
    composing = {blueprint.kind.name: blueprint for blueprint in blueprints if blueprint.nested_kinds()}
    roots = by_root(world.roots)
    if not roots.where(_is_of_kind(frozenset(composing))):
        return world
    facts = (configuration, world.references, world.incomplete, world.unserved)
    last: _Composition | None = memo.last(COMPOSITION)
    current = _Composition(facts, last if last is not None and is_equal(last.facts, facts) else None)
    current.take(world, roots, composing, memo)
    if current.is_contended:
        current = _Composition(facts)
        current.take(world, roots, composing, memo)
    memo.remember(COMPOSITION, None if current.is_contended else current)
    return replace(world, roots=current.result)


@lru_cache(maxsize=4)
def _is_of_kind(kinds: frozenset[str]) -> Callable[[Observed], bool]:
    """Whether a root is of one of these kinds; the same function for the same kinds."""
    return lambda observed: observed.root.id.kind in kinds


class _Composition:
    """A composed world, and what it was composed from."""

    def __init__(self, facts: tuple[Any, ...], last: "_Composition | None" = None) -> None:
        """`facts` are the same for all roots; `last`: what was composed before from equal facts. It is not changed."""
        self.facts = facts
        self.source: Revised[Observed] = last.source if last is not None else Revised()
        self.result: Revised[Observed] = last.result if last is not None else Revised()
        self.is_contended = False
        """Whether several composing roots propose the same root: then the order in which they are composed matters."""
        self._controlled: dict[str, frozenset[ResourceId]] = dict(last._controlled) if last is not None else {}
        """Uid of a controller -> the roots that it controls."""
        self._by_uid: dict[str, ResourceId] = dict(last._by_uid) if last is not None else {}
        """Uid of a composing root -> its identity."""
        self._proposers: dict[ResourceId, frozenset[ResourceId]] = dict(last._proposers) if last is not None else {}
        """Root -> the composing roots that propose it; of a composing root: itself."""
        self._parts: dict[ResourceId, Mapping[ResourceId, Observed | None]] = dict(last._parts) if last is not None else {}
        """Composing root -> it and the roots that it proposes, as they are composed; None: a root that is foreign to it."""

    def take(self, world: World, roots: Revised[Observed], composing: Mapping[str, Blueprint[Any]], memo: Memo) -> None:
        """Compose these roots of the world: those composing ones anew that have changed, or of which a nested root has."""
        touched = set(differences(self.source, roots))
        concerned = self._concerned(touched, roots, composing.keys())
        self.source = roots
        for id in sorted(concerned):
            before, observed = self._parts.pop(id, {}), roots.get(id)
            self._note_proposer(id, before, proposes=False)
            if observed is not None:
                self._parts[id] = self._composed(world, observed, composing[id.kind], memo)
                self._note_proposer(id, self._parts[id], proposes=True)
            touched.update(before, self._parts.get(id, ()))
        self.result = self.result.revised({id: self._at(id) for id in sorted(touched)})

    def _concerned(self, changed: Iterable[ResourceId], roots: Revised[Observed], composing: Set[str]) -> set[ResourceId]:
        """The composing roots that have changed themselves, or of which roots have that they control or propose."""
        concerned: set[ResourceId] = set()
        for id in changed:
            before, now = self.source.get(id), roots.get(id)
            if id.kind in composing:
                concerned.add(id)
                if before is not None:
                    self._by_uid.pop(before.root.uid, None)
                if now is not None and now.root.uid:
                    self._by_uid[now.root.uid] = id
            for uid in (self._note_controller(before, exists=False), self._note_controller(now, exists=True)):
                if (owner := self._by_uid.get(uid)) is not None:
                    concerned.add(owner)
            concerned |= self._proposers.get(id, NO_ROOTS)
        return concerned

    def _note_controller(self, observed: Observed | None, *, exists: bool) -> str:
        """Note that a root has, or had, its controller. Returns the uid of the controller; empty if there is none."""
        controller = observed.root.controller if observed is not None else None
        if observed is None or controller is None:
            return ""
        _set_member(self._controlled, controller.uid, observed.root.id, exists)
        return controller.uid

    def _note_proposer(self, proposer: ResourceId, ids: Iterable[ResourceId], *, proposes: bool) -> None:
        """Note that a composing root proposes these roots, or does not any more."""
        for id in ids:
            _set_member(self._proposers, id, proposer, proposes)
            self.is_contended |= len(self._proposers.get(id, ())) > 1

    def _at(self, id: ResourceId) -> Observed | None:
        """The root of that identity as it is composed by now; None if there is none."""
        for proposer in sorted(self._proposers.get(id, ()), reverse=True):
            if (composed := self._parts[proposer][id]) is not None:
                return composed
        return self.source.get(id)

    def _composed(self, world: World, observed: Observed, blueprint: Blueprint[Any], memo: Memo) -> Mapping[ResourceId, Observed | None]:
        """A composing root and the roots that it proposes."""
        scope = memo.scope(observed.root.id)
        nested = [inner for id in sorted(self._controlled.get(observed.root.uid, ())) if (inner := self.source.get(id)) is not None]
        outer = _with_nested(observed, nested, scope)
        proposed = [
            _proposed(world, outer, self._at, nested_root, memo)
            for nested_root in blueprint.nested_roots(outer, self.facts[0], scope.scope(PARTS))
        ]
        foreign = [other.root for other in proposed if not _is_of(other, outer)]
        parts = {inner.root.id: inner if _is_of(inner, outer) else None for inner in proposed}
        return {**parts, outer.root.id: _with_foreign(outer, foreign, scope)}


def _set_member(members: dict[Key, frozenset[ResourceId]], key: Key, root: ResourceId, is_member: bool) -> None:
    """Add a root to the members of a key, or remove it."""
    others = members.pop(key, NO_ROOTS) - {root}
    if others or is_member:
        members[key] = others | {root} if is_member else others


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


def _proposed(
    world: World, outer: Observed, existing_at: Callable[[ResourceId], Observed | None], nested: NestedRoot, memo: Memo
) -> Observed:
    """The observation of a nested root with its manifest; an existing root that is foreign is returned unchanged."""
    root = proposed_root(nested.body)
    existing = existing_at(root.id)
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
