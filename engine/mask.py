"""Mask: hides the secret values of objects before they are shown, logged or stored in a snapshot."""

from collections.abc import Mapping
from typing import Any

from engine.resource import Body

MASKED = "(masked)"
OTHER = "(masked, another value)"
SECRET_KEYS = frozenset({"data", "stringData"})
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""The annotation in which kubectl keeps the whole manifest, secret data included."""


def masked(body: Body) -> Body:
    """The object with the values of a Secret replaced by a mask; keys stay. Objects of other kinds are returned unchanged."""
    if body.get("kind") != "Secret" or "/" in body.get("apiVersion", ""):
        return body
    hidden = {key: hide(value) for key, value in body.items() if key in SECRET_KEYS and value is not None}
    return {**body, **hidden, **masked_metadata(body)}


def masked_metadata(body: Body) -> dict[str, Any]:
    """`{"metadata": …}` with kubectl's copy of the manifest masked; empty if there is no such copy."""
    metadata = body.get("metadata")
    annotations = (metadata or {}).get("annotations") or {}
    if LAST_APPLIED not in annotations:
        return {}
    return {"metadata": {**(metadata or {}), "annotations": {**annotations, LAST_APPLIED: MASKED}}}


def masked_change(kind: str, path: tuple[str, ...], old: Any, new: Any) -> tuple[Any, Any]:
    """The old and new value of a changed field as they may be shown; that they differ stays visible."""
    if not is_secret_field(kind, path):
        return old, new
    return hide(old), OTHER if old is not None and new is not None and not isinstance(new, Mapping) else hide(new)


def is_secret_field(kind: str, path: tuple[str, ...]) -> bool:
    """Whether the field at that path of an object of that kind holds secret data."""
    return kind == "Secret" and (path[:1] == () or path[0] in SECRET_KEYS or LAST_APPLIED in path)


def hide(value: Any) -> Any:
    """The value with its content masked: the keys of mappings and empty values stay."""
    if isinstance(value, Mapping):
        return {key: hide(inner) for key, inner in value.items()}
    return MASKED if value else value
