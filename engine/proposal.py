"""Proposal: the world as if root manifests were applied to it."""

from collections.abc import Iterable, Set

from msgspec.structs import replace

from engine.ids import Kind
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
