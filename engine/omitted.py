"""Omitted fields: those that an API server leaves out where they are zero (`omitempty` in Go), so that absent and zero are the same."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field


class Omitted(Struct, frozen=True, eq=False):
    """The omitted fields of an object, or of each entry of a list of objects. Compared by identity."""

    fields: frozenset[str] = frozenset()
    """The scalar fields that are left out where they are `""`, `0` or `false`. Values of maps never are."""
    below: Mapping[str, "Omitted"] = field(default_factory=dict)
    """Field -> the omitted fields in its value; without fields in which nothing is omitted."""

    def at(self, path: tuple[str, ...]) -> "Omitted":
        """The omitted fields of the object at a path."""
        node = self
        for key in path:
            node = node.below.get(key, NOTHING_OMITTED)
        return node

    def is_absent(self, key: str, value: Any) -> bool:
        """Whether a server leaves out this value of a field."""
        return key in self.fields and is_zero(value)


NOTHING_OMITTED = Omitted()
"""The server keeps what it is sent, as it does for custom resources."""


def is_zero(value: Any) -> bool:
    """Whether a value is `""`, `0` or `false`."""
    return value == "" or (isinstance(value, int | float) and not value)


def without_omitted(value: Any, omitted: Omitted) -> Any:
    """The value as the server returns it."""
    if omitted is NOTHING_OMITTED:
        return value
    if isinstance(value, list | tuple):
        return [without_omitted(item, omitted) for item in value]
    if not isinstance(value, Mapping):
        return value
    return {key: without_omitted(inner, omitted.at((key,))) for key, inner in value.items() if not omitted.is_absent(key, inner)}
