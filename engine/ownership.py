"""Ownership: which fields of a live object this engine set, so that a field dropped from a manifest is removed and no other field is."""

from collections.abc import Iterator, Mapping
from typing import Any

from engine.resource import Body

MANAGER = "engine"
"""The field manager of our writes."""

Fields = Mapping[str, Any]
"""A tree of owned fields in the API's format: `f:name` for a key, `k:{…}` and `v:…` for list entries."""

NOTHING: Fields = {}
NOT_OWNED = frozenset({"apiVersion", "kind", "status"})
"""Fields that no write of the main body sets."""


def is_recorded(live: Body) -> bool:
    """Whether the server has recorded who has set which fields of the object. A forecast records that of patches only."""
    return bool(live["metadata"].get("managedFields"))


def written_at(live: Body) -> str:
    """When we wrote the main body last, as RFC 3339 text; empty if that is not recorded."""
    return max((_time(entry) for entry in _entries(live) if entry.get("manager") == MANAGER), default="")


def labelled_at(live: Body) -> str:
    """When the labels or annotations of the object were set last, as RFC 3339 text, or something else by the same manager; empty if that
    is not recorded."""
    return max((_time(entry) for entry in _entries(live) if _sets_labels(entry.get("fieldsV1") or NOTHING)), default="")


def _sets_labels(fields: Fields) -> bool:
    metadata = below(fields, "metadata")
    return owns(metadata, "labels") or owns(metadata, "annotations")


def _entries(live: Body) -> Iterator[Mapping[str, Any]]:
    """What the server has recorded about writes of the main body."""
    return (entry for entry in live["metadata"].get("managedFields") or () if not entry.get("subresource"))


def _time(entry: Mapping[str, Any]) -> str:
    time = entry.get("time")
    return time if isinstance(time, str) else ""


def owned(live: Body) -> Fields:
    """The fields of the main body that our writes set and that no other manager has taken over since.

    The server has several records of one manager where it has written in several versions of the API, or `/scale`.
    """
    fields = NOTHING
    for entry in live["metadata"].get("managedFields") or ():
        if entry.get("manager") == MANAGER and not entry.get("subresource"):
            recorded: Fields = entry.get("fieldsV1") or NOTHING
            fields = _joined(fields, recorded) if fields else recorded
    return fields


def scaled_by(live: Body) -> str:
    """The other manager that set `spec.replicas` last, through the subresource `scale`; empty if there is none."""
    for entry in live["metadata"].get("managedFields") or ():
        if entry.get("subresource") == "scale" and entry.get("manager") != MANAGER:
            if owns(below(entry.get("fieldsV1") or NOTHING, "spec"), "replicas"):
                return str(entry.get("manager"))
    return ""


def scaled_by_us(live: Body) -> bool:
    """Whether we have set `spec.replicas` last, with the object or through the subresource `scale`."""
    entries = (entry for entry in live["metadata"].get("managedFields") or () if entry.get("manager") == MANAGER)
    return any(owns(below(entry.get("fieldsV1") or NOTHING, "spec"), "replicas") for entry in entries)


def with_owned(live: Body, written: Body, at: str = "") -> dict[str, Any]:
    """The live object as the server returns it after we have written these fields: they are ours, besides those that were.

    `at` is the time of the write.
    """
    metadata = live["metadata"]
    others = [entry for entry in metadata.get("managedFields") or () if entry.get("manager") != MANAGER or entry.get("subresource")]
    fields = _joined(owned(live), _fields_of({key: value for key, value in written.items() if key not in NOT_OWNED}))
    return {**live, "metadata": {**metadata, "managedFields": [*others, {"manager": MANAGER, "time": at, "fieldsV1": fields}]}}


def _fields_of(value: Any) -> Fields:
    """The tree of everything in a value; lists count as atomic."""
    return {".": {}, **{f"f:{key}": _fields_of(inner) for key, inner in value.items()}} if isinstance(value, Mapping) else NOTHING


def _joined(left: Fields, right: Fields) -> Fields:
    return {**left, **{key: _joined(left[key], inner) if left.get(key) else inner for key, inner in right.items()}}


def below(fields: Fields, key: str) -> Fields:
    """The owned fields beneath a key."""
    inner: Fields = fields.get(f"f:{key}") or NOTHING
    return inner


def owns(fields: Fields, key: str) -> bool:
    """Whether the key, or anything beneath it, is owned."""
    return f"f:{key}" in fields


def keys(fields: Fields) -> tuple[str, ...]:
    """The keys that are owned, or beneath which something is."""
    return tuple(name[2:] for name in fields if name.startswith("f:"))


def is_atomic(fields: Fields) -> bool:
    """Whether the value is owned as a whole: the server tracks no fields or entries in it."""
    return not any(name != "." for name in fields)


def owns_all(fields: Fields, value: Any) -> bool:
    """Whether the value is ours with everything in it: `fields` are those that we own in it."""
    if not isinstance(value, Mapping) or is_atomic(fields):
        return True
    return "." in fields and all(owns(fields, key) and owns_all(below(fields, key), inner) for key, inner in value.items())
