"""Replaced: the fields that change in objects which an update deletes and creates again, e.g. the PodCliques of a scaling group."""

from collections.abc import Iterator, Mapping
from typing import Final

from engine.diff import same
from engine.ids import ResourceId
from engine.observed import Live
from engine.operation import Cause, Change, Create, Patch
from engine.paths import get
from engine.report.meaning import listed, with_equal_changes
from engine.report.model import Step
from engine.report.shareable import published_fields
from engine.resource import Path
from resources.model.pod_match import spelled_as

MOST: Final = 8
"""The most notes about one set."""
POD_SPEC: Path = ("spec", "podSpec")
COMPARED: tuple[Path, ...] = (POD_SPEC, ("metadata", "labels"), ("metadata", "annotations"))


def replacement_notes(replaced: Mapping[Live, Create]) -> Iterator[str]:
    """A note for each field that differs between live PodCliques and those that are created under their names, `MOST` at most.

    Values of environment variables are masked: notes are in documents that are passed on.
    """
    steps = [Step(patch, "") for live, create in replaced.items() if (patch := _as_patch(create, live)) is not None]
    fields: dict[str, list[ResourceId]] = {}
    for alike in with_equal_changes(steps):
        for line in published_fields(alike[:1]):
            text = f"{line.path}:{' order' if line.order else ''} {line.old} → {line.new}"
            fields.setdefault(text, []).extend(patch.id for patch in alike)
    for text, ids in list(fields.items())[:MOST]:
        yield f"changes with what is created again: {text} in {listed(ids)}"
    if len(fields) > MOST:
        yield f"{len(fields) - MOST} more fields change with what is created again"


def _as_patch(create: Create, live: Live) -> Patch | None:
    """The patch that a create amounts to, for people to read; None without a difference."""
    changes = []
    for path in COMPARED:
        old, new = get(live.body, path), get(create.manifest, path)
        if path == POD_SPEC and old is not None and new is not None:
            new = spelled_as(old, new, "")
        if not same(old, new):
            changes.append(Change(path, old, new, Cause.INTENT))
    if not changes:
        return None
    return Patch(create.id, create.why, Cause.INTENT, patch={}, changes=tuple(changes), reason=create.reason, seal=create.seal)
