"""Debounce: delays status writes until the status has stopped changing.

While a replica starts, the statuses of its parents change with every pod. Writing each change would notify every watcher. A status is
therefore written when it has been the same for `STEADY` seconds, at the latest `LATEST` seconds after it first differed. An urgent status
(one that records when something began) is written `STEADY` seconds after it became urgent, for it contains the time of the write.

A provisional status (that of an object which is still coming up) waits longer where there are many: `SPACING` seconds for each of them.
Writing a thousand of them would delay the very pods that they report.
"""

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from engine.operation import Operation
from engine.resource import Body

STEADY = 1.0
"""Seconds for which a status must have been the same."""

LATEST = 10.0
"""Seconds after which a status is written although it keeps changing."""

SPACING = 0.02
"""Seconds for which each provisional status delays all of them: as if fifty of them could be written in a second."""


class _Pending(Struct, frozen=True):
    """A status that is not written yet. All times are of a monotonic clock."""

    body: Body
    same_since: float
    differs_since: float
    urgent_since: float | None
    is_provisional: bool

    def due_at(self, patience: float) -> float:
        """When to write it if it does not change again; a provisional one must have been the same for `patience` seconds."""
        if self.urgent_since is not None:
            return min(self.urgent_since + STEADY, self.differs_since + LATEST)
        return min(self.same_since + (patience if self.is_provisional else STEADY), self.differs_since + LATEST)


class Debounce:
    """Pending status writes by the key of their operation. Kept in memory only: losing it costs one write or one second."""

    def __init__(self) -> None:
        self._pending: dict[str, _Pending] = {}

    def due(self, statuses: Iterable[Operation], at: float) -> frozenset[str]:
        """The keys of the status operations to send now; `at` is a time of a monotonic clock.

        Bodies contain the marker `NOW` instead of a time, so a status that differs only in its time is the same status. Forgets
        operations that are not among `statuses`.
        """
        self._pending = {operation.key: self._updated(operation, at) for operation in statuses}
        patience = self._patience()
        return frozenset(key for key, pending in self._pending.items() if pending.due_at(patience) <= at)

    def _patience(self) -> float:
        """Seconds for which a provisional status must have been the same: the more of them there are, the longer."""
        return max(STEADY, SPACING * sum(pending.is_provisional for pending in self._pending.values()))

    def _updated(self, operation: Operation, at: float) -> _Pending:
        known = self._pending.get(operation.key)
        if known is not None and known.body == operation.body and known.is_provisional == operation.provisional:
            return known
        before = known.urgent_since if known is not None else None
        urgent_since = (at if before is None else before) if operation.urgent else None
        if known is None:
            return _Pending(operation.body, at, at, urgent_since, operation.provisional)
        return replace(known, body=operation.body, same_since=at, urgent_since=urgent_since, is_provisional=operation.provisional)

    def written(self, keys: Iterable[str]) -> None:
        """Forget these operations; if their statuses differ again, they are delayed again."""
        for key in keys:
            self._pending.pop(key, None)

    def delays(self, operations: Iterable[Operation]) -> bool:
        """Whether one of these operations waits for its status to stop changing."""
        return any(operation.key in self._pending for operation in operations)

    @property
    def next_due(self) -> float | None:
        """The monotonic time at which the first pending status is due if nothing changes; None if none is pending."""
        patience = self._patience()
        return min((pending.due_at(patience) for pending in self._pending.values()), default=None)
