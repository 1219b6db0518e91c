"""CallLimit: how many calls are sent at the same time, as the answers show what helps.

Many calls at a time help as long as they travel together: on a long way to the server. Once the server is busy, more of them only wait
there, in front of the calls of schedulers and kubelets. So the number grows while few of our calls wait, shrinks when many do, and is
halved when the server refuses calls or stops answering.
"""

from math import inf

from msgspec import Struct

from engine.errors import Throttled, Unreachable

FIRST = 8
"""Calls at a time before anything is known; doubled until calls begin to wait."""

MOST = 48
"""Calls at a time, however far away the server is; lists and other reads need connections, too."""

LEAST = 2
"""Calls at a time, however slow the server is."""

FEW = 8
"""While fewer of the calls than these wait, one more is sent at a time."""

MANY = 16
"""When more of the calls than these wait, a quarter fewer are sent at a time."""

MEMORY = 60.0
"""Seconds after which a fastest answer no longer counts: the way to the server may have changed."""


class CallLimit(Struct, eq=False):
    """How many calls may be in progress. Times are of a monotonic clock, in seconds."""

    limit: int = FIRST
    _is_first_growth: bool = True
    _changed_at: float = -inf
    """When the limit was last changed. Calls that began before say nothing about it."""
    _fastest: float = inf
    """The shortest time of an answer in the current `MEMORY` seconds, which began at `_fastest_since`."""
    _fastest_before: float = inf
    """The same, in the ones before."""
    _fastest_since: float = -inf
    _answers: int = 0
    """How many answers there were since the limit was last considered, and how long they took."""
    _took: float = 0.0

    def answered(self, began: float, ended: float, error: Exception | None, *, busy: bool) -> None:
        """Take note of an answer to a call. `busy`: whether as many calls as the limit allows were in progress."""
        if began < self._changed_at:
            return
        if isinstance(error, Throttled | Unreachable):
            self._change(self.limit // 2, ended)
            return
        self._remember(ended - began, ended)
        if not busy:
            return
        self._answers += 1
        self._took += ended - began
        if self._answers >= self.limit:
            self._consider(self._took / self._answers, ended)

    def _remember(self, took: float, at: float) -> None:
        """Keep the shortest times of an answer. After `MEMORY` seconds begin again with few calls: all others may have waited."""
        if at - self._fastest_since > MEMORY:
            if self._fastest < inf:
                self._change(min(self.limit, FIRST), at)
                self._is_first_growth = True
            self._fastest_before, self._fastest, self._fastest_since = self._fastest, inf, at
        else:
            self._fastest = min(self._fastest, took)

    def _consider(self, usual: float, at: float) -> None:
        """Change the limit after as many answers as it allows calls. `usual`: how long an answer took on average."""
        fastest = min(self._fastest, self._fastest_before)
        waiting = self.limit * (1 - fastest / usual) if usual else 0.0
        self._is_first_growth = self._is_first_growth and waiting < FEW
        if waiting > MANY:
            self._change(self.limit * 3 // 4, at)
        elif waiting < FEW:
            self._change(self.limit + (self.limit if self._is_first_growth else 1), at)
        else:
            self._change(self.limit, at)

    def _change(self, limit: int, at: float) -> None:
        """Allow that many calls, and learn from the next answers what that does."""
        self._is_first_growth = self._is_first_growth and limit >= self.limit
        self.limit, self._changed_at = min(MOST, max(LEAST, limit)), at
        self._answers, self._took = 0, 0.0
