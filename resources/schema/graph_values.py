"""Graph values: numbers in quotes and amounts without quotes, as what they mean. Without the models, which only graphs need."""

import re
from math import isfinite
from typing import Any, Final

NODE_COUNT: Final = 2
"""The default of multinode.nodeCount, and its minimum."""
QUOTED: Final = re.compile(r"-?[0-9]{1,18}")
"""A number as text that is read as that number."""
LARGEST: Final = 2**63


def unquoted(value: Any) -> Any:
    """The whole number that a text consists of; any other value itself."""
    return int(value) if isinstance(value, str) and QUOTED.fullmatch(value) else value


def quoted(value: Any) -> Any:
    """A number as text; any other value itself, and numbers that no JSON document of an API has."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    return str(value) if isfinite(value) and abs(value) < LARGEST else value
