"""Field paths: reading, merging and formatting bodies, none of which is changed in place."""

from collections.abc import Mapping
from typing import Any

from engine.resource import NOW, Body, Path


def get(body: Body, path: Path, default: Any = None) -> Any:
    """The value at a path, or the default if there is none."""
    value: Any = body
    for key in path:
        if not isinstance(value, Mapping) or key not in value:
            return default
        value = value[key]
    return value


def overlay(body: Body, over: Body) -> dict[str, Any]:
    """A new body with `over` laid on `body`: maps are merged, everything else is replaced, None included."""
    merged = dict(body)
    for key, value in over.items():
        below = merged.get(key)
        merged[key] = overlay(below, value) if isinstance(value, Mapping) and isinstance(below, Mapping) else value
    return merged


def merge_patch(body: Body, patch: Body) -> dict[str, Any]:
    """A new body after a JSON merge patch (RFC 7386): maps are merged, None removes a field."""
    merged = dict(body)
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, Mapping):
            below = merged.get(key)
            merged[key] = merge_patch(below if isinstance(below, Mapping) else {}, value)
        else:
            merged[key] = value
    return merged


def stamp(value: Any, moment: str) -> Any:
    """The value with every `NOW` in it replaced by `moment`; a value without any is returned as the same object."""
    if value is NOW:
        return moment
    if isinstance(value, Mapping):
        stamped = {key: stamp(below, moment) for key, below in value.items()}
        return stamped if any(stamped[key] is not value[key] for key in stamped) else value
    if isinstance(value, list | tuple):
        items = [stamp(below, moment) for below in value]
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    return value


def spell(path: Path) -> str:
    """A path as text: `spec.containers[main].image`; keys with dots or slashes are put in brackets."""
    text = ""
    for key in path:
        if key.startswith("["):
            text += key
        elif "." in key or "/" in key:
            text += f"[{key}]"
        else:
            text += f".{key}" if text else key
    return text
