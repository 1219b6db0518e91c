"""Bodies and field paths: reading, merging, formatting. No body is changed in place."""

from collections.abc import Iterator, Mapping
from typing import Any

from engine.resource import NOW, Body, Path

MAPS = (dict, Mapping)
"""What a map may be. A plain dict comes first: it is recognised without a look at the abstract class, which takes ten times as long."""
_SCALARS = (str, bool, int, float, type(None))


def get(body: Body, path: Path, default: Any = None) -> Any:
    """The value at a path, or the default if there is none."""
    value: Any = body
    for key in path:
        if not isinstance(value, MAPS) or key not in value:
            return default
        value = value[key]
    return value


def absent(sent: Body, stored: Body, path: Path = ()) -> Iterator[Path]:
    """The paths of the fields that were sent and are not in the stored object. Values and lists are not compared."""
    for key, value in sent.items():
        if key not in stored:
            yield (*path, key)
        elif isinstance(value, MAPS) and isinstance(inner := stored[key], MAPS):
            yield from absent(value, inner, (*path, key))


def overlay(body: Body, over: Body) -> dict[str, Any]:
    """A new body with `over` laid on `body`: maps are merged, everything else is replaced, None included."""
    merged = dict(body)
    for key, value in over.items():
        old = merged.get(key)
        merged[key] = overlay(old, value) if isinstance(value, Mapping) and isinstance(old, Mapping) else value
    return merged


def merge_patch(body: Body, patch: Body) -> dict[str, Any]:
    """A new body after a JSON merge patch (RFC 7386): maps are merged, None removes a field."""
    merged = dict(body)
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, MAPS):
            old = merged.get(key)
            merged[key] = merge_patch(old if isinstance(old, Mapping) else {}, value)
        else:
            merged[key] = value
    return merged


def stamp(value: Any, moment: str) -> Any:
    """The value with every `NOW` in it replaced by the timestamp `moment`; a value without `NOW` is returned as the same object."""
    if value is NOW:
        return moment
    if isinstance(value, _SCALARS):
        return value
    if isinstance(value, MAPS):
        stamped = {key: stamp(child, moment) for key, child in value.items()}
        return stamped if any(stamped[key] is not value[key] for key in stamped) else value
    if isinstance(value, list | tuple):
        items = [stamp(item, moment) for item in value]
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    return value


def spell(path: Path) -> str:
    """A path as text: `spec.containers[main].image`. Keys with dots or slashes are put in brackets; those in brackets stay as they are."""
    text = ""
    for key in path:
        if key.startswith("["):
            text += key
        elif "." in key or "/" in key:
            text += f"[{key}]"
        else:
            text += f".{key}" if text else key
    return text
