"""Refusals: what the server would not have, and is not sent again unchanged."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from engine.errors import AlreadyExists, Forbidden, Invalid, NotFound
from engine.operation import Operation, Outcome, Result, Verb

FINAL = (Forbidden, Invalid, NotFound)
"""What is not answered otherwise the next time."""


@dataclass(frozen=True, slots=True)
class _Refusal:
    operation: Operation
    until: float


class Refusals:
    """The operations that were refused, by key, each for `patience` seconds (default: for good)."""

    def __init__(self, patience: float = math.inf) -> None:
        self._patience = patience
        self._refused: dict[str, _Refusal] = {}

    def note(self, results: Iterable[Result], at: float) -> None:
        """Learn from the results of a pass; `at` is a time of a monotonic clock."""
        for result in results:
            if is_refusal(result):
                self._refused[result.operation.key] = _Refusal(result.operation, at + self._patience)
            elif result.outcome is not Outcome.SKIPPED:
                self._refused.pop(result.operation.key, None)

    def stand(self, operation: Operation, at: float) -> bool:
        """Whether the very same has been refused: the same content for an object in the same state.

        States are compared without their content, for that holds the time.
        """
        refused = self._refused.get(operation.key)
        if refused is None or at >= refused.until or refused.operation.expect != operation.expect:
            return False
        return operation.verb is Verb.STATUS or refused.operation.body == operation.body


def is_refusal(result: Result) -> bool:
    """Whether asking again for the same thing is pointless."""
    if result.outcome is Outcome.FAILED:
        return isinstance(result.error, FINAL)
    return is_collision(result) and not _is_leaving(result)


def is_collision(result: Result) -> bool:
    """Whether somebody else's object has the name; the result carries it."""
    return result.outcome is Outcome.STALE and isinstance(result.error, AlreadyExists) and result.live is not None


def _is_leaving(result: Result) -> bool:
    return result.live is not None and "deletionTimestamp" in result.live["metadata"]
