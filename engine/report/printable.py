"""Printable: strings from a cluster or a manifest, made safe for a terminal and a log."""

import unicodedata
from functools import lru_cache

UNSAFE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"})
"""Unicode categories that move the cursor, reorder what is read, or are not seen for what they are."""


def printable(text: str) -> str:
    """The text with control, format and bidirectional characters spelled out; whoever chose a name does not steer our terminal."""
    return text if text.isascii() and text.isprintable() else "".join(map(spelled, text))


@lru_cache(maxsize=4096)
def spelled(character: str) -> str:
    """One character, or its code where showing it would do more than show it."""
    if character == " " or unicodedata.category(character) not in UNSAFE:
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def clipped(text: str, width: int) -> str:
    """The text, printable, and no longer than `width`."""
    safe = printable(text[: width * 2])
    return safe if len(safe) <= width and len(text) <= width * 2 else f"{safe[: width - 1]}…"
