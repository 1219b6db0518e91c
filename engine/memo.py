"""Memo: results of earlier computations, reused while the facts they were computed from are equal.

A memo changes nothing but speed: with and without it every result is the same. The caller owns it and passes it to every tick.
"""

from collections.abc import Callable, Hashable
from datetime import datetime
from operator import is_
from typing import Any, TypeVar, cast

T = TypeVar("T")


class Memo:
    """Results by key, each with the facts that it was computed from."""

    __slots__ = ("_results", "_scopes", "_used")

    def __init__(self) -> None:
        self._results: dict[Hashable, tuple[tuple[Any, ...], Any]] = {}
        self._scopes: dict[Hashable, Memo] = {}
        self._used: set[Hashable] = set()

    def scope(self, key: Hashable) -> "Memo":
        """The memo of that key within this one; its results are dropped by its own `forget_unused` only."""
        self._used.add(key)
        return self._scopes.setdefault(key, Memo())

    def recall(self, key: Hashable, facts: tuple[Any, ...], make: Callable[[], T]) -> T:
        """The stored result if it was computed from equal facts; otherwise a new one from `make`.

        Facts are equal if they are the same object, or of the same type and equal by `==`; classes with `eq=False` by identity only.
        """
        stored = self._results.get(key)
        self._used.add(key)
        if stored is not None and (_are_identical(stored[0], facts) or _is_equal(stored[0], facts)):
            return cast(T, stored[1])
        result = make()
        self._results[key] = (facts, result)
        return result

    def recall_until(
        self, key: Hashable, facts: tuple[Any, ...], now: datetime, make: Callable[[], T], until: Callable[[T], datetime | None]
    ) -> T:
        """Like `recall`, for a result that also expires: from the time that `until` returns for it, a new one is computed."""
        stored = self._results.get(key)
        if stored is not None and (expiry := until(stored[1])) is not None and now >= expiry:
            del self._results[key]
        return self.recall(key, facts, make)

    def last(self, key: Hashable) -> Any:
        """What was last stored under the key with `remember`; None if nothing was."""
        stored = self._results.get(key)
        return stored[1] if stored is not None else None

    def remember(self, key: Hashable, value: Any) -> None:
        """Store a value under a key of its own. Whoever reads it finds out whether it still applies."""
        self._used.add(key)
        self._results[key] = ((), value)

    def keep_unused(self) -> None:
        """In place of `forget_unused`: drop nothing, because what was not used has not changed."""
        self._used = set()

    def forget_unused(self) -> None:
        """Drop the results and scopes that were not used since the last call."""
        for stored in (self._results, self._scopes):
            for key in stored.keys() - self._used:
                del stored[key]
        self._used = set()


def _are_identical(old: tuple[Any, ...], new: tuple[Any, ...]) -> bool:
    """Whether the facts are the same objects, as they are nearly always: found out without a call for each."""
    return len(old) == len(new) and all(map(is_, old, new))


def _is_equal(old: Any, new: Any) -> bool:
    """Equality that, unlike Python's, distinguishes `1` from `True`, in containers as well."""
    if old is new:
        return True
    if type(old) is not type(new):
        return False
    if isinstance(old, tuple | list):
        return len(old) == len(new) and all(map(_is_equal, old, new))
    if isinstance(old, dict):
        return old.keys() == new.keys() and all(_is_equal(value, new[key]) for key, value in old.items())
    return bool(old == new)
