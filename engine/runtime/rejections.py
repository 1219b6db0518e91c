"""Rejections: what the server would not have or does not keep, and is not sent again unchanged."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from engine.errors import AlreadyExists, EngineError, Forbidden, Invalid, NotFound
from engine.operation import Operation
from engine.result import Outcome, Result
from engine.verb import Verb

FINAL = (Forbidden, Invalid, NotFound)
"""What is not answered otherwise the next time."""

MAX_UNDONE = 5
"""How often the same change is made, and found unmade, until we take it that somebody unmakes it each time."""

SOON = 60.0
"""Seconds within which a change must be found unmade to count: over days, people may well undo the same thing again and again."""

CHANGES = frozenset({Verb.PATCH, Verb.STATUS})


@dataclass(frozen=True, slots=True)
class _Answer:
    """How an operation fared the last time: when, how often in a row it has been done by then, and until when it is not tried again."""

    operation: Operation
    at: float
    times: int = 0
    until: float = -math.inf


class Rejections:
    """The operations that are not tried again, by key, each for `patience` seconds (default: for good)."""

    def __init__(self, patience: float = math.inf) -> None:
        self._patience = patience
        self._answers: dict[str, _Answer] = {}

    def note(self, results: Sequence[Result], at: float) -> list[Result]:
        """Learn from the results of a pass; `at` is a time of a monotonic clock.

        Returns the changes that have been made once too often, as failed: they do not last.
        """
        in_vain: list[Result] = []
        for result in results:
            operation = result.operation
            if is_refusal(result):
                self._answers[operation.key] = _Answer(operation, at, until=at + self._patience)
            elif result.outcome is Outcome.DONE and operation.verb in CHANGES and self._was_in_vain(operation, at):
                error = EngineError(f"done {MAX_UNDONE} times and undone each time: by the server's defaults, or by another writer")
                in_vain.append(replace(result, outcome=Outcome.FAILED, error=error))
        return in_vain

    def _was_in_vain(self, operation: Operation, at: float) -> bool:
        """Count the change; whether the very same has now been made too often."""
        before = self._answers.get(operation.key)
        again = before is not None and before.operation.body == operation.body and at - before.at < SOON
        times = before.times + 1 if before and again else 1
        self._answers[operation.key] = _Answer(operation, at, times, at + self._patience if times >= MAX_UNDONE else -math.inf)
        return times >= MAX_UNDONE

    def stand(self, operation: Operation, at: float) -> bool:
        """Whether the very same is not to be tried now: it was made in vain, or refused for an object in the same state.

        A refused status is known without its content, for that holds the time.
        """
        answer = self._answers.get(operation.key)
        if answer is None or at >= answer.until:
            return False
        same = answer.operation.body == operation.body
        return same if answer.times else answer.operation.expect == operation.expect and (same or operation.verb is Verb.STATUS)


def is_refusal(result: Result) -> bool:
    """Whether asking again for the same thing is pointless."""
    if result.outcome is Outcome.FAILED:
        return isinstance(result.error, FINAL)
    return is_collision(result) and not _is_leaving(result)


def is_collision(result: Result) -> bool:
    """Whether somebody else's object has the name; the result carries it."""
    return result.outcome is Outcome.CONFLICT and isinstance(result.error, AlreadyExists) and result.live is not None


def _is_leaving(result: Result) -> bool:
    return result.live is not None and "deletionTimestamp" in result.live["metadata"]
