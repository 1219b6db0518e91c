"""Body: reads fields of objects as the API sends them. Bodies are shared and never changed; absent and null fields read the same."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from grove_sandbox.product import conditions

Body = Mapping[str, Any]
Key = tuple[str, str]
"""Namespace (empty for cluster-scoped kinds) and name."""
LONG_AGO: Final = datetime(1970, 1, 1, tzinfo=UTC)


def key_of(body: Body) -> Key:
    """Namespace and name."""
    return body["metadata"].get("namespace", ""), body["metadata"]["name"]


def uid_of(body: Body) -> str:
    """The uid: a successor of the same name has another."""
    return str(body["metadata"].get("uid", ""))


def revision_of(body: Body) -> int:
    """The resourceVersion, which the API promises to be a number that grows."""
    return int(body["metadata"]["resourceVersion"])


def by_age(body: Body) -> tuple[str, str, str]:
    """A sort key: creation time, then namespace and name."""
    return body["metadata"].get("creationTimestamp") or "", *key_of(body)


def is_deleting(body: Body) -> bool:
    """Whether it has a deletionTimestamp."""
    return body["metadata"].get("deletionTimestamp") is not None


def labels_of(body: Body) -> Mapping[str, str]:
    """Its labels."""
    return body["metadata"].get("labels") or {}


def annotations_of(body: Body) -> Mapping[str, str]:
    """Its annotations."""
    return body["metadata"].get("annotations") or {}


def finalizers_of(body: Body) -> tuple[str, ...]:
    """Its finalizers."""
    return tuple(body["metadata"].get("finalizers") or ())


def owners_of(body: Body | None) -> tuple[Mapping[str, Any], ...]:
    """Its owner references; none for no object."""
    return tuple(body["metadata"].get("ownerReferences") or ()) if body else ()


def status_of(body: Body) -> Mapping[str, Any]:
    """Its status."""
    return body.get("status") or {}


def conditions_of(body: Body) -> Sequence[Mapping[str, Any]]:
    """The conditions in its status."""
    return status_of(body).get("conditions") or ()


def is_finished(pod: Body) -> bool:
    """Whether a pod is in a terminal phase: its containers never run again."""
    return status_of(pod).get("phase") in ("Succeeded", "Failed")


def condition(body: Body, type: str, is_true: bool, reason: str, message: str, now: datetime) -> dict[str, Any]:
    """A condition to write; the transition time of the live one is kept unless the status flips."""
    live = [entry for entry in conditions_of(body) if entry.get("type") == type]
    new = conditions.condition(type, is_true, reason, message, at=timestamp(now))
    return dict(conditions.merge(live[:1], [new], owned=())[0])


def timestamp(time: datetime) -> str:
    """A time as the API writes it: whole seconds of UTC."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_time(text: str | None) -> datetime | None:
    """The time that a timestamp means; None if it is absent or malformed."""
    try:
        return datetime.fromisoformat(text).astimezone(UTC) if text else None
    except (ValueError, OverflowError):
        return None
