"""Mask: what a report, a snapshot or a log may tell of an object whose contents are secret."""

from collections.abc import Mapping
from typing import Any

from engine.resource import Body

MASKED = "(masked)"
OTHER = "(masked, another value)"
SECRET_PARTS = frozenset({"data", "stringData"})
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""kubectl keeps the whole manifest here, secret data included."""


def masked(body: Body) -> Body:
    """The object with every value hidden that only its readers in the cluster may know; keys stay, everything else is shared."""
    if not is_secret(body.get("apiVersion", ""), body.get("kind", "")):
        return body
    hidden = {part: hide(value) for part, value in body.items() if part in SECRET_PARTS and value is not None}
    return {**body, **hidden, **masked_metadata(body)}


def masked_metadata(body: Body) -> dict[str, Any]:
    """The metadata of a Secret, where kubectl may have left a copy of its contents."""
    metadata = body.get("metadata")
    annotations = (metadata or {}).get("annotations") or {}
    if LAST_APPLIED not in annotations:
        return {}
    return {"metadata": {**(metadata or {}), "annotations": {**annotations, LAST_APPLIED: MASKED}}}


def masked_change(kind: str, path: tuple[str, ...], old: Any, new: Any) -> tuple[Any, Any]:
    """Both sides of a changed field as they may be shown; that they differ stays visible."""
    if not reveals(kind, path):
        return old, new
    return hide(old), OTHER if old is not None and new is not None and not isinstance(new, Mapping) else hide(new)


def reveals(kind: str, path: tuple[str, ...]) -> bool:
    """Whether the field at that path of that kind holds something secret."""
    return kind == "Secret" and (path[:1] == () or path[0] in SECRET_PARTS or LAST_APPLIED in path)


def hide(value: Any) -> Any:
    """The shape of a value without what it says: the keys of a mapping, what is empty, and a mask for the rest."""
    if isinstance(value, Mapping):
        return {key: hide(inner) for key, inner in value.items()}
    return MASKED if value else value


def is_secret(api_version: str, kind: str) -> bool:
    """Whether objects of that kind carry secret data."""
    return kind == "Secret" and "/" not in api_version
