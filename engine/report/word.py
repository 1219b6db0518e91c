"""Word: numbers with their nouns, and the verbs of totals."""

from collections.abc import Mapping
from typing import Final

from engine.verb import Verb

TO_DO: Final[Mapping[Verb, str]] = {
    Verb.CREATE: "to create",
    Verb.PATCH: "to patch",
    Verb.SCALE: "to scale",
    Verb.REPLACE: "to replace",
    Verb.RELEASE: "to release",
    Verb.DELETE: "to delete",
}
"""What is planned; statuses are reported apart."""
DONE: Final[Mapping[Verb, str]] = {
    Verb.CREATE: "created",
    Verb.PATCH: "patched",
    Verb.SCALE: "scaled",
    Verb.REPLACE: "replaced",
    Verb.RELEASE: "released",
    Verb.DELETE: "deleted",
}
"""What has been done."""


def counted(count: int, noun: str) -> str:
    """A number and its noun: `2 operations`, `1 Pod`, `3 ResourceQuotas`."""
    return f"{count} {noun if count == 1 else plural(noun)}"


def plural(noun: str) -> str:
    """The plural of a noun or kind."""
    if noun.endswith("s"):
        return f"{noun}es"
    return f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"


def totals(counts: Mapping[Verb, int], words: Mapping[Verb, str]) -> str:
    """The number of operations of each verb: `12 created, 4 patched`; empty if there are none. Statuses are left out."""
    return ", ".join(f"{counts[verb]} {word}" for verb, word in words.items() if counts.get(verb))
