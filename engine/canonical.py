"""Canonical bytes and digests: the same content gives the same text, whatever order it came in."""

import hashlib
from typing import Any

import orjson


def canonical(value: Any) -> bytes:
    """JSON with sorted keys and no white space."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def digest(value: Any) -> str:
    """SHA-256 of the canonical bytes, in hexadecimal."""
    return hashlib.sha256(canonical(value)).hexdigest()


_CONSONANTS = "bcdfghjklmnpqrstvwxz2456789"


def token(text: str, length: int) -> str:
    """A short name part from a text: letters and digits that spell no words, each a base-27 digit of the text's SHA-256."""
    number = int.from_bytes(hashlib.sha256(text.encode()).digest())
    letters = []
    for _ in range(length):
        number, remainder = divmod(number, len(_CONSONANTS))
        letters.append(_CONSONANTS[remainder])
    return "".join(letters)
