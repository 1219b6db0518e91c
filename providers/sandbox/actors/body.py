"""Body: an object as the API sends it. Shared, so it is read and never written to; what is absent and what is null read the same."""

from collections.abc import Mapping, Sequence
from typing import Any

Body = Mapping[str, Any]
Key = tuple[str, str]
"""Namespace (empty for cluster-scoped kinds) and name."""


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
    """Whether its deletion has been asked for."""
    return body["metadata"].get("deletionTimestamp") is not None


def labels_of(body: Body) -> Mapping[str, str]:
    """Its labels."""
    return body["metadata"].get("labels") or {}


def annotations_of(body: Body) -> Mapping[str, str]:
    """Its annotations."""
    return body["metadata"].get("annotations") or {}


def status_of(body: Body) -> Mapping[str, Any]:
    """Its status."""
    return body.get("status") or {}


def conditions_of(body: Body) -> Sequence[Mapping[str, Any]]:
    """The conditions in its status."""
    return status_of(body).get("conditions") or ()


def is_finished(pod: Body) -> bool:
    """Whether a pod's containers will never run again."""
    return status_of(pod).get("phase") in ("Succeeded", "Failed")
