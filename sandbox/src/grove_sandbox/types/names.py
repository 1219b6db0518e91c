"""Names: the validation of names, label keys and label values, with the messages of the server."""

from collections.abc import Sequence
from random import Random

_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_LONGEST_BASE = 58


def generated(base: str, random: Random) -> str:
    """A name of `base` and five random letters and digits, as `generateName` makes it."""
    return base[:_LONGEST_BASE] + "".join(random.choice(_SUFFIX_LETTERS) for _ in range(5))


def path_faults(name: str) -> list[str]:
    """The faults of a name that only has to fit into a URL (roles and their bindings)."""
    if name in (".", ".."):
        return [f"may not be '{name}'"]
    return [f"may not contain '{sign}'" for sign in "/%" if sign in name]


def first(faults: Sequence[str]) -> str | None:
    """The first fault, if there is one."""
    return faults[0] if faults else None
