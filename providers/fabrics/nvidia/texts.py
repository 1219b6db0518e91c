"""Texts: lists of names in messages."""

from collections.abc import Iterable
from typing import Any, Final

MAX_NAMES: Final = 5


def some(names: Iterable[Any]) -> str:
    """The first five names, and how many more there are."""
    listed = [str(name) for name in names]
    rest = len(listed) - MAX_NAMES
    return ", ".join(listed[:MAX_NAMES]) + (f" and {rest} more" if rest > 0 else "")
