"""Debounce: a state is written once it has come to rest, not at every step on the way.

While a replica comes up, its parents' states change with every pod. Each would be a write, and each write is news to whoever watches. So a
state waits until it has stayed the same for a second, but never longer than ten from when it first differed. All this is memory of one
process; losing it costs a write or a second, nothing else.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from engine.operation import Operation
from engine.resource import NOW

STEADY = 1.0
"""Seconds for which a state must have stayed the same."""

LATEST = 10.0
"""Seconds after which a state that keeps changing is written all the same."""


@dataclass(frozen=True, slots=True)
class _Pending:
    """A state that is not written yet: what it says, since when it says that, and since when it has differed."""

    body: Any
    same_since: float
    differed_since: float

    @property
    def due_at(self) -> float:
        """When it is to be written if it does not change again."""
        return min(self.same_since + STEADY, self.differed_since + LATEST)


class Debounce:
    """The states that wait to be written, by the key of their operation."""

    def __init__(self) -> None:
        self._pending: dict[str, _Pending] = {}

    def due(self, states: Iterable[Operation], at: float, moment: str) -> frozenset[str]:
        """The keys of those that are to be written now, `at` being a time of a monotonic clock.

        `moment` is how the plan spells its own time; where a state holds it, it says "now", and is no other state a second later. What
        is not among `states` any more is forgotten.
        """
        self._pending = {state.key: self._seen(state, at, moment) for state in states}
        return frozenset(key for key, pending in self._pending.items() if pending.due_at <= at)

    def _seen(self, state: Operation, at: float, moment: str) -> _Pending:
        body, known = timeless(state.body, moment), self._pending.get(state.key)
        if known is None:
            return _Pending(body, at, at)
        return known if known.body == body else replace(known, body=body, same_since=at)

    def written(self, keys: Iterable[str]) -> None:
        """These are no longer pending; if they differ again, they wait again."""
        for key in keys:
            self._pending.pop(key, None)

    @property
    def next_due(self) -> float | None:
        """When the first of them is due, if nothing changes."""
        return min((pending.due_at for pending in self._pending.values()), default=None)


def timeless(value: Any, moment: str) -> Any:
    """The value with `NOW` wherever it names that moment."""
    if isinstance(value, Mapping):
        return {key: timeless(below, moment) for key, below in value.items()}
    if isinstance(value, list | tuple):
        return [timeless(below, moment) for below in value]
    return NOW if value == moment else value
