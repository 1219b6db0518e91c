"""Canonical bytes and digests: equal content gives equal bytes, whatever the order of its keys."""

import hashlib
from collections.abc import Mapping
from typing import Any

import orjson

_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"


def canonical(value: Any) -> bytes:
    """JSON with sorted keys and no white space. The value may consist of any mapping types."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS, default=_plain)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


def digest(value: Any) -> str:
    """SHA-256 of the canonical bytes, in hexadecimal."""
    return hashlib.sha256(canonical(value)).hexdigest()


def token(text: str, length: int) -> str:
    """A name suffix computed from a text: the last `length` base-27 digits of its SHA-256, in letters and digits that form no words."""
    number = int.from_bytes(hashlib.sha256(text.encode()).digest())
    letters = []
    for _ in range(length):
        number, remainder = divmod(number, len(_ALPHABET))
        letters.append(_ALPHABET[remainder])
    return "".join(letters)
