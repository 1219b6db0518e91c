"""Names: the validation of names, label keys and label values, with the messages of the server."""

import re
from collections.abc import Sequence
from random import Random

from grove_sandbox.product import example

SERVICE = r"[a-z]([-a-z0-9]*[a-z0-9])?"

_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_LONGEST_BASE = 58


def generated(base: str, random: Random) -> str:
    """A name of `base` and five random letters and digits, as `generateName` makes it."""
    return base[:_LONGEST_BASE] + "".join(random.choice(_SUFFIX_LETTERS) for _ in range(5))


def service_faults(name: str) -> list[str]:
    """The faults of the name of a Service."""
    faults = []
    if len(name) > 63:
        faults.append("must be no more than 63 characters")
    if not re.fullmatch(SERVICE, name):
        faults.append(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end "
            "with an alphanumeric character " + example(SERVICE, "my-name", "abc-123")
        )
    return faults


def path_faults(name: str) -> list[str]:
    """The faults of a name that only has to fit into a URL (roles and their bindings)."""
    if name in (".", ".."):
        return [f"may not be '{name}'"]
    return [f"may not contain '{sign}'" for sign in "/%" if sign in name]


def first(faults: Sequence[str]) -> str | None:
    """The first fault, if there is one."""
    return faults[0] if faults else None
