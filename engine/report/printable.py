"""Printable: strings from a cluster or a manifest, made safe for terminals and logs."""

import unicodedata
from functools import lru_cache

UNSAFE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"})
"""Unicode categories of characters that control a terminal, reorder text, or are invisible."""


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
