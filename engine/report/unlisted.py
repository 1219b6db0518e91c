"""Unlisted: the kinds that could not be listed completely, in one text for each cause."""

import re
from collections.abc import Mapping
from typing import Final

RESOURCE: Final = re.compile(r'^\S+ is forbidden: (User "[^"]*" cannot list) resource "[^"]*" in API group "[^"]*"')
"""The part of a refusal that names the kind. What follows is the same for every kind."""


def unlisted_by_cause(incomplete: Mapping[str, str]) -> dict[str, str]:
    """The kinds, such as `Ingress, Pod and Service`, with why they could not be listed. Kinds with the same cause are together."""
    causes: dict[str, list[str]] = {}
    for kind, why in incomplete.items():
        causes.setdefault(RESOURCE.sub(r"\1 them", why), []).append(kind)
    return {_joined(kinds): cause if len(kinds) > 1 else incomplete[kinds[0]] for cause, kinds in causes.items()}


def _joined(names: list[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
