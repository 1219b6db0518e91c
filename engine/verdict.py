"""Verdict: an answer, its reason, and the time until which it is valid."""

from collections.abc import Iterable
from datetime import datetime
from typing import Generic, TypeVar

from msgspec import Struct

T = TypeVar("T")


class Verdict(Struct, Generic[T], frozen=True):
    """An answer that is valid as long as the facts are the same and, if `until` is not None, until that time."""

    value: T
    why: str = ""
    until: datetime | None = None


def earliest(moments: Iterable[datetime | None]) -> datetime | None:
    """The earliest of the moments that are not None; None if there is none."""
    return min((moment for moment in moments if moment is not None), default=None)
