"""Backoff: the pause between two passes, short while objects change and longer while they do not."""

from datetime import timedelta

from engine.blueprint import C
from engine.runtime.memory import Memory
from engine.runtime.passes import Engine, Pass

SHORTEST_PAUSE = 0.2
"""Seconds between two passes while objects change."""

REST_OF_EDITS = 0.05
"""The same where a user has created, edited or deleted a root for which nothing is sent, or as long as planning has taken."""

REST = 3.0
"""How many times as long as the planning of a pass took nothing is planned after it; meanwhile its operations are executed."""

REST_IN_BACKLOG = 0.5
"""The same while roots wait that the pass had no room for."""

LONGEST_REST = 2.0
"""Seconds after which the next pass may begin in any case."""


def shortest_pause(current: Pass[object], executing: float = 0.0, *, has_backlog: bool = False) -> float:
    """Seconds between this pass and the next one, whatever changes. `executing`: how long its operations and events took.

    While everything changes, planning leaves three quarters of its processor to requests and to the rest of the machine, and a pass finds
    more changes made together. `has_backlog`: whether roots wait that the pass had no room for; then it leaves a third.
    """
    rest = min((REST_IN_BACKLOG if has_backlog else REST) * current.planning, LONGEST_REST)
    return max(SHORTEST_PAUSE, rest - executing)


class Backoff:
    """Pauses that double from `SHORTEST_PAUSE` up to `longest` seconds while nothing changes.

    `watching`: whether a change ends the pause; then a pass that had nothing to do is followed by the longest pause at once.
    """

    def __init__(self, longest: float, *, watching: bool = False) -> None:
        self._longest = longest
        self._watching = watching
        self._pause = SHORTEST_PAUSE

    def pause(
        self,
        engine: Engine[C],
        memory: Memory,
        current: Pass[object],
        *,
        changed: bool,
        idle: bool = False,
        shortest: float = SHORTEST_PAUSE,
    ) -> float:
        """Seconds until the next pass, less when something is due or time changes a plan; at least as many as this pass took, unless it had
        no room for roots that wait.

        `changed`: whether the pass observed or made a change; `idle`: whether it had nothing to do; `shortest`: the shortest pause.
        """
        self._pause = SHORTEST_PAUSE if changed else min(self._longest, self._pause * 2)
        pauses = [self._longest if self._watching and idle else self._pause]
        if current.wake_at:
            pauses.append((current.wake_at - engine.clock.now()) / timedelta(seconds=1))
        at = engine.clock.monotonic()
        remembered = (memory.rejections, memory.refusals, memory.portions)
        dues = (memory.debounce.next_due, memory.verdicts.next_due, *(each.next_due(at) for each in remembered))
        pauses += (due - at for due in dues if due is not None)
        return max(min(pauses), min(shortest, self._longest), 0.0 if memory.portions.has_backlog else current.took)
