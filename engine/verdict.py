"""Verdict: an answer, its reason, and the time until which it is valid."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Verdict(Generic[T]):
    """An answer that is valid until `until` unless the facts change; None: until the facts change."""

    value: T
    why: str = ""
    until: datetime | None = None


def earliest(moments: Iterable[datetime | None]) -> datetime | None:
    """The earliest of the moments that are not None."""
    return min((moment for moment in moments if moment is not None), default=None)
