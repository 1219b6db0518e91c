"""Debounce: a state is written once it has come to rest, not at every step on the way.

While a replica comes up, its parents' states change with every pod. Each would be a write, and each write is news to whoever watches. So a
state waits until it has stayed the same for a second, but never longer than ten from when it first differed. One that tells the beginning
of something waits for a second and no longer, for the moment that it tells is that of the write. All this is memory of one process;
losing it costs a write or a second, nothing else.
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
    """A state that is not written yet: what it says, since when it says that, since when it has differed, and has told a beginning."""

    body: Any
    same_since: float
    differed_since: float
    urgent_since: float | None

    @property
    def due_at(self) -> float:
        """When it is to be written if it does not change again."""
        steady = self.same_since if self.urgent_since is None else self.urgent_since
        return min(steady + STEADY, self.differed_since + LATEST)


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
        if known is not None and known.body == body:
            return known
        before = known.urgent_since if known is not None else None
        urgent_since = (at if before is None else before) if state.urgent else None
        return replace(known, body=body, same_since=at, urgent_since=urgent_since) if known else _Pending(body, at, at, urgent_since)

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
