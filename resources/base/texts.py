"""Texts: lists of names in messages."""

from collections.abc import Iterable
from typing import Any, Final

MAX_NAMES: Final = 5
"""The largest number of names in one message."""


def some(names: Iterable[Any]) -> str:
    """The names in one line: the first `MAX_NAMES`, and how many more there are, for example `a, b and 3 more`."""
    listed = [str(name) for name in names]
    rest = len(listed) - MAX_NAMES
    return ", ".join(listed[:MAX_NAMES]) + (f" and {rest} more" if rest > 0 else "")
