"""Orphans: what a preview says about objects of a set or graph that does not exist any more."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from engine.blueprint import root_of
from engine.ids import Kind, ResourceId
from engine.observed import Live, World
from engine.report.printable import counted, printable
from resources.base import kinds, labels
from resources.registry import BLUEPRINTS

PLURALS: Final[Mapping[tuple[str, str], Kind]] = {(kind.group, kind.name): kind for kind in kinds.KINDS}
MOST: Final = 3
"""How many roots are named, each with its orphans; of others the number is given."""


def orphan_notices(world: World) -> tuple[str, ...]:
    """For each root that does not exist any more: what it has left behind, that it is left alone, and how it can be deleted.

    Objects that are being deleted, or whose owner is gone, are not among them: the garbage collector deletes these.
    """
    left = left_behind(world.orphans)
    by_root: dict[ResourceId, list[Live]] = {}
    for live in left:
        if (root := root_of(BLUEPRINTS, live)) is not None:
            by_root.setdefault(root, []).append(live)
    listed = sorted(by_root.items())
    more = (f"{len(listed) - MOST} more sets or graphs that do not exist any more have left objects behind",) if len(listed) > MOST else ()
    return (*(_notice(root, lives) for root, lives in listed[:MOST]), *more)


def left_behind(orphans: Iterable[Live]) -> list[Live]:
    """The orphans that stay: they are not being deleted, and neither is an owner, nor is it gone."""
    remaining = [live for live in orphans if live.deleting_since is None]
    while True:
        uids = {live.uid for live in remaining}
        kept = [live for live in remaining if not live.owners or any(owner.uid in uids for owner in live.owners)]
        if len(kept) == len(remaining):
            return kept
        remaining = kept


def _notice(root: ResourceId, lives: Iterable[Live]) -> str:
    """What one root has left behind, and the command that deletes it."""
    listed = list(lives)
    counts = Counter(live.id.kind for live in listed)
    what = ", ".join(counted(counts[kind], kind) for kind in sorted(counts))
    names = sorted({_resource(live.id) for live in listed})
    place = f" -n {root.namespace}" if root.namespace else ""
    command = f"kubectl delete {','.join(names)}{place} -l {labels.PART_OF}={root.name}"
    return printable(
        f"{root} does not exist any more, and {what} of it are left: no set owns them, and they are left alone; to delete them: {command}"
    )


def _resource(id: ResourceId) -> str:
    """The kind of an object as kubectl takes it."""
    kind = PLURALS.get((id.group, id.kind))
    plural = kind.plural if kind is not None else id.kind.lower()
    return f"{plural}.{id.group}" if id.group else plural
