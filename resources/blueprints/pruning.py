"""Pruning: which roots of an ApplySet are removed because no manifest names them any more, and the objections to that."""

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from engine.ids import ResourceId
from engine.intent import Removal, RootRemovals
from engine.observed import Live
from engine.plan import Objection
from engine.report.printable import clipped
from engine.resource import Body
from resources.base import applyset, labels
from resources.base.fields import annotations_of, mapping


class Pruning(Struct, frozen=True, eq=False):
    """What is judged: an ApplySet, the manifests that are applied as its members, and the roots that exist where its members may be."""

    parent: ResourceId
    existing_parent: Live | None
    manifests: Sequence[tuple[ResourceId, Body]]
    """As the user wrote them, without our label."""
    roots: Sequence[Live]
    allow_empty: bool = False

    @property
    def set_id(self) -> str:
        """The id of the ApplySet."""
        return applyset.applyset_id(self.parent)


def pruned(pruning: Pruning) -> RootRemovals:
    """The members that are removed: those without a manifest, except those that are kept by their annotation."""
    leaving = _leaving(pruning)
    kept = [root for root in leaving if is_kept(root)]
    removed = [root for root in leaving if not is_kept(root)]
    why = f"no manifest of ApplySet {pruning.parent.name} names it any more"
    return RootRemovals(
        {root.id: Removal(root.uid, why, after_manifests=True) for root in removed},
        tuple(_objections(pruning, removed)),
        tuple(map(_kept_note, kept)),
    )


def left_out_of_base(roots: Sequence[Live]) -> RootRemovals:
    """The removal of roots that a change leaves out. No ApplySet is concerned; a root may be protected nevertheless."""
    removed = [root for root in roots if not is_kept(root)]
    why = "the change has no manifest of it any more"
    return RootRemovals(
        {root.id: Removal(root.uid, why, after_manifests=True) for root in removed},
        tuple(removal_objections(removed)),
        tuple(_kept_note(root) for root in roots if is_kept(root)),
    )


def _kept_note(root: Live) -> str:
    return f"{root.id} is kept although no manifest names it: its annotation {labels.PRUNE} says so"


def remaining_extent(pruning: Pruning) -> applyset.Extent:
    """Where the members of the ApplySet are when the others are removed."""
    kept = (root.id for root in _leaving(pruning) if is_kept(root))
    return applyset.extent_of_roots((*(id for id, _ in pruning.manifests), *kept), pruning.parent)


def _leaving(pruning: Pruning) -> list[Live]:
    """The members of the ApplySet that no manifest names."""
    named = {id for id, _ in pruning.manifests}
    return [root for root in pruning.roots if root.labels.get(applyset.PART_OF) == pruning.set_id and root.id not in named]


def is_kept(root: Live) -> bool:
    """Whether the root stays when no manifest names it. Every value but `enabled` keeps it: one that is mistyped must not remove it."""
    value = annotations_of(root.body).get(labels.PRUNE)
    return value is not None and str(value).strip().lower() != labels.ENABLED


def _objections(pruning: Pruning, removed: Sequence[Live]) -> Iterator[Objection]:
    if pruning.existing_parent is not None and (fault := applyset.parent_fault(pruning.existing_parent.body, pruning.parent)):
        yield Objection("applyset-parent", fault)
        return
    if not pruning.manifests and not pruning.allow_empty:
        workloads = f"{len(removed)} workload{'' if len(removed) == 1 else 's'}"
        yield Objection(
            "prune-empty",
            f"there is no workload in the files, and {workloads} of ApplySet {pruning.parent.name} would be removed: "
            "check the files; if that is what you want, allow it with --allow-empty",
        )
    yield from _foreign_members(pruning)
    yield from removal_objections(removed)


def _foreign_members(pruning: Pruning) -> Iterator[Objection]:
    """An objection for each manifest whose root is a member of another ApplySet, or says so itself."""
    live = {root.id: root for root in pruning.roots}
    for id, manifest in pruning.manifests:
        stored = live[id].labels.get(applyset.PART_OF) if id in live else None
        written = mapping(mapping(manifest.get("metadata")).get("labels")).get(applyset.PART_OF)
        for other in dict.fromkeys((stored, written)):
            if other and other != pruning.set_id:
                where = "belongs" if other == stored else "belongs, as its manifest says,"
                yield Objection(
                    "applyset-member",
                    f"{id} {where} to another ApplySet ({clipped(str(other), 80)}): "
                    f"to take it over, remove its label {applyset.PART_OF} first",
                )


def removal_objections(roots: Iterable[Live]) -> Iterator[Objection]:
    """The objections to removing these roots: they are protected, or another object owns them. Those that are being deleted pass."""
    for root in roots:
        if root.deleting_since is not None:
            continue
        if is_protected(root):
            yield Objection("protected", f"{root.id} is protected: remove its annotation {labels.PROTECT} first")
        if root.owners:
            owner = root.controller or root.owners[0]
            yield Objection("owned", f"{root.id} belongs to {owner.kind} {owner.name}: remove that instead")


def is_protected(root: Live) -> bool:
    """Whether the root has the annotation that protects it. Every value but `false` does: one that is mistyped must not remove it."""
    value = annotations_of(root.body).get(labels.PROTECT)
    return value is not None and str(value).strip().lower() != "false"
