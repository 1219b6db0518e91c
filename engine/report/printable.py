"""Printable: what is safe for terminals and logs: texts of others, lines with a tone, numbers with their nouns, lists of names."""

import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Self

from engine.verb import Verb

UNSAFE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"})
"""Unicode categories of characters that control a terminal, reorder text, or are invisible."""
MAX_NAMES: Final = 5
"""The largest number of names in one message."""
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


def printable(text: str) -> str:
    """The text with control, format and bidirectional characters escaped, so that a name cannot control the terminal."""
    return text if text.isascii() and text.isprintable() else "".join(map(escaped, text))


@lru_cache(maxsize=4096)
def escaped(character: str) -> str:
    """The character, or its code if it is unsafe."""
    if character == " " or unicodedata.category(character) not in UNSAFE:
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def clipped(text: str, width: int) -> str:
    """The text made printable, cut to at most `width` characters."""
    safe = printable(text[: width * 2])
    return safe if len(safe) <= width and len(text) <= width * 2 else f"{safe[: width - 1]}…"


def clipped_within(text: str, width: int) -> str:
    """The text made printable, at most `width` characters: names of one set differ at their end, so what is left out is in the middle."""
    safe = printable(text)
    head = width // 2
    return safe if len(safe) <= width else f"{safe[:head]}…{safe[head + 1 - width :]}"


@dataclass(frozen=True, slots=True)
class Line:
    """A line and its tone: a verb, `later`, `blocked`, `bad`, `good`, `head`, `faint`, or empty for plain text."""

    text: str
    tone: str = ""


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


class PatternName(str):
    """A name as it is shown, e.g. `web-0-front-?????`. Two of them are equal if they stand for the same object, whatever they look like."""

    __slots__ = ("number", "owner", "stands_for")
    owner: str
    """The object that it is a numbered part of: the PodClique of a pod."""
    number: str
    """Its number; empty if that is not known."""
    stands_for: str
    """The name with which it was planned."""

    def __new__(cls, shown: str, stands_for: str, owner: str, number: str) -> Self:
        """The name as it is shown, and what it stands for."""
        self = super().__new__(cls, shown)
        self.stands_for, self.owner, self.number = stands_for, owner, number
        return self

    def __eq__(self, other: object) -> bool:
        """Whether the other name stands for the same object."""
        return isinstance(other, PatternName) and self.stands_for == other.stands_for

    def __hash__(self) -> int:
        """The hash of the planned name."""
        return hash(self.stands_for)


def some(names: Iterable[Any], at_most: int = MAX_NAMES) -> str:
    """The names in one line, each once: the first `at_most`, and how many more there are, for example `a, b and 3 more`."""
    listed = list(dict.fromkeys(map(str, names)))
    rest = len(listed) - at_most
    return ", ".join(listed[:at_most]) + (f" and {rest} more" if rest > 0 else "")
