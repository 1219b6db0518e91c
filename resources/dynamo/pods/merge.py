"""Merge: what a user set over what is set by default.

Maps are merged field by field, lists are replaced as a whole. An empty value (nothing, an empty text, list or map, zero, false) does
not replace a default.
"""

from collections.abc import Mapping
from typing import Any

from engine.resource import Body


def merged(defaults: Body, override: Body) -> dict[str, Any]:
    """The override merged over the defaults, in a new map."""
    result = dict(defaults)
    for field, value in override.items():
        default = result.get(field)
        if isinstance(default, Mapping) and isinstance(value, Mapping):
            result[field] = merged(default, value)
        elif value or not default:
            result[field] = value
    return {field: value for field, value in result.items() if value is not None}
