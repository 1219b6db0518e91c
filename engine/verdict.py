"""Verdict: an answer, why it is so, and until when it stands."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Verdict(Generic[T]):
    """This answer stands until then, unless the facts change; `until=None`: until the facts change."""

    value: T
    why: str = ""
    until: datetime | None = None


def earliest(moments: Iterable[datetime | None]) -> datetime | None:
    """The first of the moments that are set: when to look again."""
    return min((moment for moment in moments if moment is not None), default=None)
