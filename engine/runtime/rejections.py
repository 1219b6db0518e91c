"""Rejections: operations that are not sent again unchanged, because the server refused them or another writer reverts them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from engine.errors import AlreadyExists, EngineError, Forbidden, Invalid, NotFound
from engine.operation import Operation
from engine.result import Outcome, Result
from engine.verb import Verb

FINAL = (Forbidden, Invalid, NotFound)
"""Errors that the same request would get again."""

MAX_UNDONE = 5
"""How often in a row the same change is made, and found reverted, before it is suspended."""

SOON = 60.0
"""Seconds within which a change must be reverted to count. Over days, users may well revert the same change again and again."""

CHANGES = frozenset({Verb.PATCH, Verb.STATUS})


@dataclass(frozen=True, slots=True)
class _Answer:
    """The last answer to an operation. Times are of a monotonic clock."""

    operation: Operation
    at: float
    times: int = 0
    """How often in a row the same change has been made; 0: the operation was rejected."""
    suspended_until: float = -math.inf


class Rejections:
    """Suspended operations by key, each for `patience` seconds (default: for ever)."""

    def __init__(self, patience: float = math.inf) -> None:
        self._patience = patience
        self._answers: dict[str, _Answer] = {}

    def note(self, results: Sequence[Result], at: float) -> list[Result]:
        """Record the results of a pass; `at` is a time of a monotonic clock.

        Returns, with the outcome FAILED, the changes that were made `MAX_UNDONE` times in a row because they do not last.
        """
        reverted: list[Result] = []
        for result in results:
            operation = result.operation
            if is_rejection(result):
                self._answers[operation.key] = _Answer(operation, at, suspended_until=at + self._patience)
            elif result.outcome is Outcome.DONE and operation.verb in CHANGES and self._is_made_too_often(operation, at):
                error = EngineError(f"done {MAX_UNDONE} times and undone each time: by the server's defaults, or by another writer")
                reverted.append(replace(result, outcome=Outcome.FAILED, error=error))
        return reverted

    def _is_made_too_often(self, operation: Operation, at: float) -> bool:
        before = self._answers.get(operation.key)
        again = before is not None and before.operation.body == operation.body and at - before.at < SOON
        times = before.times + 1 if before and again else 1
        self._answers[operation.key] = _Answer(operation, at, times, at + self._patience if times >= MAX_UNDONE else -math.inf)
        return times >= MAX_UNDONE

    def suspends(self, operation: Operation, at: float) -> bool:
        """Whether the operation is not to be sent at the time `at` (monotonic).

        A change that was reverted is suspended whatever the object's revision; a rejected operation while its object is the same.
        """
        answer = self._answers.get(operation.key)
        if answer is None or at >= answer.suspended_until:
            return False
        same = answer.operation.body == operation.body
        return same and (answer.times > 0 or answer.operation.expect == operation.expect)


def is_rejection(result: Result) -> bool:
    """Whether the same request would be answered the same way again."""
    if result.outcome is Outcome.FAILED:
        return isinstance(result.error, FINAL)
    return is_name_conflict(result) and not _is_being_deleted(result)


def is_name_conflict(result: Result) -> bool:
    """Whether the name is taken by an object that is not ours; the result carries that object."""
    return result.outcome is Outcome.CONFLICT and isinstance(result.error, AlreadyExists) and result.live is not None


def _is_being_deleted(result: Result) -> bool:
    return result.live is not None and "deletionTimestamp" in result.live["metadata"]
