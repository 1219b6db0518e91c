"""Withdrawn annotations: those that steer the engine and that a manifest no longer has, although an earlier one had them."""

from collections.abc import Iterator
from typing import Final

from engine import ownership
from engine.paths import overlay
from engine.resource import Body, Path
from resources.base import labels
from resources.base.fields import annotations_of, mapping

Prefixes = tuple[str, ...]
"""The beginnings of annotations that steer a kind of root."""
ANNOTATIONS: Final[Path] = ("metadata", "annotations")
RECORDS: Final = frozenset((
    *(labels.POD_FORM, labels.GRAPH_SCHEDULER, labels.VLLM_EXECUTORS, labels.WRITTEN_AS, labels.COPIED_CLAIMS),
    labels.OTHER_VERSION,
))  # fmt: skip
"""Annotations that the engine writes by itself: no manifest has to have them."""


def withdrawn(stored: Body, manifest: Body, prefixes: Prefixes = labels.STEERING_SETS) -> tuple[str, ...]:
    """The annotations of a stored root that its manifest has dropped and that we wrote; sorted. Those of other writers stay."""
    owned = ownership.below(ownership.below(ownership.owned(stored), "metadata"), "annotations")
    return tuple(key for key in _dropped(stored, manifest, prefixes) if ownership.owns(owned, key))


def foreign(stored: Body, manifest: Body, prefixes: Prefixes = labels.STEERING_SETS) -> tuple[str, ...]:
    """The annotations that steer a stored root, that its manifest does not have, and that another writer has set; sorted."""
    ours = withdrawn(stored, manifest, prefixes)
    return tuple(key for key in _dropped(stored, manifest, prefixes) if key not in ours)


def proposed_metadata(stored: Body, manifest: Body, prefixes: Prefixes = labels.STEERING_SETS) -> Body:
    """The metadata of a manifest laid on those of the stored root, without the annotations that are withdrawn."""
    metadata = overlay(stored["metadata"], manifest.get("metadata") or {})
    if not (keys := withdrawn(stored, manifest, prefixes)):
        return metadata
    annotations = {key: value for key, value in mapping(metadata.get("annotations")).items() if key not in keys}
    return {**metadata, "annotations": annotations}


def paths(stored: Body, manifest: Body, prefixes: Prefixes = labels.STEERING_SETS) -> tuple[Path, ...]:
    """The paths of the annotations that are withdrawn."""
    return tuple((*ANNOTATIONS, key) for key in withdrawn(stored, manifest, prefixes))


def _dropped(stored: Body, manifest: Body, prefixes: Prefixes) -> Iterator[str]:
    kept = annotations_of(manifest)
    return (key for key in sorted(annotations_of(stored)) if key.startswith(prefixes) and key not in kept and key not in RECORDS)
