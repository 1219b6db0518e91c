"""Metadata rules: an API server's rules for `metadata`, which a preview without a server must apply as well."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

from resources.admission.cel import for_each_clique, for_each_group, matches
from resources.ports.fabric import PolicyRule
from resources.schema.formats import (
    LONGEST_LABEL,
    LONGEST_SUBDOMAIN,
    QUALIFIED,
    SUBDOMAIN,
    VALUE,
    label_faults,
    qualified_faults,
    subdomain_faults,
    value_faults,
)
from resources.schema.issues import ErrorType, Issue, Path
from resources.schema.meta import ObjectMeta

METADATA: Final[Path] = ("metadata",)
MAX_ANNOTATION_BYTES: Final = 256 * 1024
"""The largest total size of the annotations of an object."""
INVALID_LABEL_KEY: Final = "a key is no valid label key"
INVALID_LABEL: Final = "a value is no valid label value"
INVALID_ANNOTATION_KEY: Final = "a key is no valid annotation key"
"""The reasons of policies, for every fault of a key or a value."""
GENERATED_BASE: Final = 58
"""The largest number of characters of `generateName` that an API server keeps in a generated name."""
GENERATED_SUFFIX: Final = 5
"""The number of characters that an API server adds."""


def issues(metadata: ObjectMeta, *, namespaced: bool) -> Iterator[Issue]:
    """The issues of an object's metadata."""
    yield from _names(metadata)
    yield from _namespace(metadata.namespace or "", namespaced=namespaced)
    yield from labels(metadata.labels or {}, (*METADATA, "labels"))
    yield from annotations(metadata.annotations or {}, (*METADATA, "annotations"))
    yield from _finalizers(metadata.finalizers or ())
    times = {"creationTimestamp": metadata.creation_timestamp, "deletionTimestamp": metadata.deletion_timestamp}
    yield from (Issue((*METADATA, key), ErrorType.INVALID, "must be a time", value) for key, value in times.items() if not _is_time(value))


def name_length(metadata: ObjectMeta) -> int:
    """The length of the object's name; if it is to be generated, the length of the generated name."""
    return len(metadata.name) if metadata.name else min(len(metadata.generate_name or ""), GENERATED_BASE) + GENERATED_SUFFIX


def labels(labels: Mapping[str, str], path: Path) -> Iterator[Issue]:
    """The issues of labels. An invalid key is reported at `path`, an invalid value at its key."""
    for key, value in labels.items():
        yield from _invalid_issues(path, key, qualified_faults(key))
        yield from _invalid_issues((*path, key), value, value_faults(value))


def annotations(annotations: Mapping[str, str], path: Path) -> Iterator[Issue]:
    """The issues of annotations: invalid keys, and too many bytes in total. They are reported at `path`."""
    for key in annotations:
        yield from _invalid_issues(path, key, qualified_faults(key.lower()))
    if sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items()) > MAX_ANNOTATION_BYTES:
        yield Issue(path, ErrorType.TOO_LONG, f"may not be more than {MAX_ANNOTATION_BYTES} bytes")


def _names(metadata: ObjectMeta) -> Iterator[Issue]:
    base = metadata.generate_name or ""
    if base:
        yield from _invalid_issues((*METADATA, "generateName"), base, subdomain_faults(base.rstrip("-.") or base))
    if metadata.name:
        yield from _invalid_issues((*METADATA, "name"), metadata.name, subdomain_faults(metadata.name))
    elif not base:
        yield Issue((*METADATA, "name"), ErrorType.REQUIRED, "name or generateName is required")


def _namespace(namespace: str, *, namespaced: bool) -> Iterator[Issue]:
    path = (*METADATA, "namespace")
    if namespace and not namespaced:
        yield Issue(path, ErrorType.FORBIDDEN, "not allowed on this type")
    elif namespace:
        yield from _invalid_issues(path, namespace, label_faults(namespace))


def _finalizers(finalizers: Sequence[str]) -> Iterator[Issue]:
    for number, finalizer in enumerate(finalizers):
        yield from _invalid_issues((*METADATA, "finalizers", number), finalizer, qualified_faults(finalizer))


def _is_time(value: str | None) -> bool:
    try:
        return not value or datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        return False


def _invalid_issues(path: Path, value: str, faults: Sequence[str]) -> Iterator[Issue]:
    return (Issue(path, ErrorType.INVALID, fault, value) for fault in faults)


def policy_rules() -> Iterator[PolicyRule]:
    """The rules for labels and annotations of cliques and scaling groups as CEL; those of objects are an API server's own."""
    keys = "{}.?{}.orValue({{}}).exists(k, {})"
    yield for_each_clique(keys.format("c", "labels", _is_unqualified("k")), "labels", INVALID_LABEL_KEY)
    is_invalid = f"c.labels[k].size() > {LONGEST_LABEL} || !{matches('c.labels[k]', VALUE)}"
    yield for_each_clique(keys.format("c", "labels", is_invalid), "labels", INVALID_LABEL)
    for item, each in (("c", for_each_clique), ("g", for_each_group)):
        yield each(keys.format(item, "annotations", _is_unqualified("k.lowerAscii()")), "annotations", INVALID_ANNOTATION_KEY)


def _is_unqualified(key: str) -> str:
    """CEL: whether a string is no key of a label."""
    prefix, name = f"{key}.indexOf('/') > {LONGEST_SUBDOMAIN}", f"{key}.size() - {key}.indexOf('/') - 1 > {LONGEST_LABEL}"
    return f"{prefix} || {name} || !{matches(key, f'({SUBDOMAIN}/)?{QUALIFIED}')}"
