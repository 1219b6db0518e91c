"""Memo: what was computed before, for as long as what it was computed from is the very same.

It changes nothing but speed: with and without it every answer is equal. The shell owns it and hands it to every tick.
"""

from collections.abc import Callable, Hashable
from datetime import datetime
from typing import Any, TypeVar, cast

T = TypeVar("T")

_SCALARS = (str, bytes, int, bool, type(None))


class Memo:
    """QueryResults by key, each with the facts it rests on; facts are compared by identity, scalars by value."""

    __slots__ = ("_known", "_scopes", "_used")

    def __init__(self) -> None:
        self._known: dict[Hashable, tuple[tuple[Any, ...], Any]] = {}
        self._scopes: dict[Hashable, Memo] = {}
        self._used: set[Hashable] = set()

    def scope(self, key: Hashable) -> "Memo":
        """A memo within this one, with rounds of its own."""
        self._used.add(key)
        return self._scopes.setdefault(key, Memo())

    def recall(self, key: Hashable, facts: tuple[Any, ...], make: Callable[[], T]) -> T:
        """The answer for these facts: the one known, or a new one from `make`."""
        known = self._known.get(key)
        self._used.add(key)
        if known is not None and _same(known[0], facts):
            return cast(T, known[1])
        answer = make()
        self._known[key] = (facts, answer)
        return answer

    def recall_until(
        self, key: Hashable, facts: tuple[Any, ...], now: datetime, make: Callable[[], T], until: Callable[[T], datetime | None]
    ) -> T:
        """As `recall`, for an answer that may also expire: it stands until the moment that `until` reads from it."""
        answer = self.recall(key, facts, make)
        expiry = until(answer)
        if expiry is not None and now >= expiry:
            answer = make()
            self._known[key] = (facts, answer)
        return answer

    def forget_unused(self) -> None:
        """Close a round: what was not intended for in it is dropped."""
        for kept in (self._known, self._scopes):
            for key in kept.keys() - self._used:
                del kept[key]
        self._used = set()


def _same(before: tuple[Any, ...], now: tuple[Any, ...]) -> bool:
    if len(before) != len(now):
        return False
    for old, new in zip(before, now, strict=True):
        if old is not new and not (type(old) is type(new) and isinstance(old, _SCALARS) and old == new):
            return False
    return True
