"""Metadata rules: what an API server would say of `metadata`, for those who ask before they have one."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

from resources.schema.formats import label_faults, qualified_faults, subdomain_faults, value_faults
from resources.schema.issues import Fault, Issue, Path
from resources.schema.meta import ObjectMeta

METADATA: Final[Path] = ("metadata",)
MOST_BYTES: Final = 256 * 1024
"""How much all annotations of an object may weigh."""
GENERATED_BASE: Final = 58
GENERATED: Final = 5
"""Of a generated name: how much of its base is kept, and how many letters are added."""


def issues(metadata: ObjectMeta, *, namespaced: bool) -> Iterator[Issue]:
    """What is wrong with the metadata of an object."""
    yield from _names(metadata)
    yield from _namespace(metadata.namespace or "", namespaced=namespaced)
    yield from labels(metadata.labels or {}, (*METADATA, "labels"))
    yield from annotations(metadata.annotations or {}, (*METADATA, "annotations"))
    yield from _finalizers(metadata.finalizers or ())
    moments = {"creationTimestamp": metadata.creation_timestamp, "deletionTimestamp": metadata.deletion_timestamp}
    yield from (Issue((*METADATA, key), Fault.INVALID, "must be a time", said) for key, said in moments.items() if not _is_moment(said))


def name_length(metadata: ObjectMeta) -> int:
    """How long the object's name is, or will be."""
    return len(metadata.name) if metadata.name else min(len(metadata.generate_name or ""), GENERATED_BASE) + GENERATED


def labels(labels: Mapping[str, str], path: Path) -> Iterator[Issue]:
    """What is wrong with labels: a key is told where the labels are, a value under its key."""
    for key, value in labels.items():
        yield from _told(path, key, qualified_faults(key))
        yield from _told((*path, key), value, value_faults(value))


def annotations(annotations: Mapping[str, str], path: Path) -> Iterator[Issue]:
    """What is wrong with annotations."""
    for key in annotations:
        yield from _told(path, key, qualified_faults(key.lower()))
    if sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items()) > MOST_BYTES:
        yield Issue(path, Fault.TOO_LONG, f"may not be more than {MOST_BYTES} bytes")


def _names(metadata: ObjectMeta) -> Iterator[Issue]:
    base = metadata.generate_name or ""
    if base:
        yield from _told((*METADATA, "generateName"), base, subdomain_faults(base.rstrip("-.") or base))
    if metadata.name:
        yield from _told((*METADATA, "name"), metadata.name, subdomain_faults(metadata.name))
    elif not base:
        yield Issue((*METADATA, "name"), Fault.REQUIRED, "name or generateName is required")


def _namespace(namespace: str, *, namespaced: bool) -> Iterator[Issue]:
    path = (*METADATA, "namespace")
    if namespace and not namespaced:
        yield Issue(path, Fault.FORBIDDEN, "not allowed on this type")
    elif namespace:
        yield from _told(path, namespace, label_faults(namespace))


def _finalizers(finalizers: Sequence[str]) -> Iterator[Issue]:
    for number, finalizer in enumerate(finalizers):
        yield from _told((*METADATA, "finalizers", number), finalizer, qualified_faults(finalizer))


def _is_moment(said: str | None) -> bool:
    try:
        return not said or datetime.fromisoformat(said).tzinfo is not None
    except ValueError:
        return False


def _told(path: Path, value: str, faults: Sequence[str]) -> Iterator[Issue]:
    return (Issue(path, Fault.INVALID, fault, value) for fault in faults)
