"""Texts: lists of names in messages."""

from collections.abc import Iterable
from typing import Any, Final

MAX_NAMES: Final = 5
"""The largest number of names in one message."""


def some(names: Iterable[Any], at_most: int = MAX_NAMES) -> str:
    """The names in one line, each once: the first `at_most`, and how many more there are, for example `a, b and 3 more`."""
    listed = list(dict.fromkeys(map(str, names)))
    rest = len(listed) - at_most
    return ", ".join(listed[:at_most]) + (f" and {rest} more" if rest > 0 else "")
