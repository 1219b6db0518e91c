"""Rejections: operations that are not sent again unchanged, because the server refused them or another writer reverts them."""

import math
from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from engine.canonical import digest
from engine.errors import AlreadyExists, EngineError, Forbidden, Invalid, NotFound, TooLarge, is_out_of_quota
from engine.operation import Delete, Expect, Operation, Outcome, Patch, Result, Scale, WriteStatus, body_of
from engine.paths import stamp
from engine.runtime.refusals import cause_of, is_refused, pause_after

FINAL = (Forbidden, Invalid, NotFound)
"""Errors that the same request would get again."""

MAX_REVERTED = 5
"""How often in a row the same change is made, because another writer reverts it, before it is suspended."""

ROOM_PAUSE = 2.0
"""Seconds after which a request is sent again that a quota had no room for, where we have deleted something: what has just gone is still
counted for a moment."""
MAX_ROOM_TRIES = 6
"""How often a request is sent that a quota has no room for, before it is suspended like other rejected ones."""

SOON = 60.0
"""Seconds within which the same change must be made again to count. Over days, users may well revert it again and again."""

Revertible = Patch | Scale | WriteStatus
"""Operations that another writer can revert: they change fields of an object that stays."""


class _Answer(Struct, frozen=True):
    """The last answer to an operation. Times are of a monotonic clock."""

    body: str
    """A digest of what was sent: bodies would take much memory while many objects are written."""
    expect: Expect
    at: float
    times: int = 0
    """How often in a row the same change has been made; 0: the operation was rejected."""
    suspended_until: float = -math.inf
    refusals: int = 0
    """How often in a row the request was refused (`is_refused`) by this cause."""
    cause: str = ""
    """The type of what refused it last. Webhooks are asked at once: which one is named may be another one each time."""
    room_tries: int = 0
    """How often in a row a quota had no room for the request; 0: something else is the answer."""
    is_too_large: bool = False
    """Whether the server takes no object of this size: neither time nor another revision changes that."""

    @property
    def awaits_room(self) -> bool:
        """Whether the request is sent again soon, because the quota may have room then."""
        return 0 < self.room_tries < MAX_ROOM_TRIES

    @property
    def is_repeated(self) -> bool:
        """Whether the request is sent again although nothing has changed."""
        return self.awaits_room or (self.refusals > 0 and self.suspended_until < math.inf)

    def is_to(self, operation: Operation) -> bool:
        """Whether it is the answer to an operation that would send the same."""
        return self.body == _digest(operation)

    def is_relevant(self, at: float) -> bool:
        """Whether it still suspends the operation or counts when the same change is made again."""
        return at < self.suspended_until or at - self.at < SOON


class Rejections:
    """The last answer to each operation: what was rejected or reverted is suspended for `patience` seconds (default: for ever).

    Unless that is for ever, what was refused (`is_refused`) is suspended for a second, and twice as long after each further refusal.
    """

    def __init__(self, patience: float = math.inf) -> None:
        self._patience = patience
        self._answers: dict[str, _Answer] = {}
        self._freed: set[str] = set()
        """The namespaces in which something was deleted."""

    def note(self, results: Sequence[Result], at: float) -> list[Result]:
        """Record the results of a pass; `at` is a time of a monotonic clock.

        Returns, with the outcome FAILED, the changes that were made `MAX_REVERTED` times in a row because they do not last.
        """
        reverted: list[Result] = []
        for result in results:
            operation = result.operation
            if isinstance(operation, Delete) and result.outcome is Outcome.DONE:
                self._freed.add(operation.id.namespace)
            if is_rejection(result):
                self._answers[operation.key] = self._rejection(result, at)
            elif result.outcome is Outcome.DONE and isinstance(operation, Revertible) and self._count(operation, at) >= MAX_REVERTED:
                error = EngineError(f"made {MAX_REVERTED} times and reverted each time, by the server's defaults or by another writer")
                reverted.append(replace(result, outcome=Outcome.FAILED, error=error))
        self._answers = {key: answer for key, answer in self._answers.items() if answer.is_relevant(at)}
        return reverted

    def _rejection(self, result: Result, at: float) -> _Answer:
        operation, tries = result.operation, 0
        previous = before if (before := self._answers.get(operation.key)) is not None and before.is_to(operation) else None
        if is_out_of_quota(result.error) and operation.id.namespace in self._freed:
            tries = 1 + (previous.room_tries if previous is not None else 0)
        answer = _Answer(_digest(operation), operation.expect, at, room_tries=tries, is_too_large=isinstance(result.error, TooLarge))
        if result.error is not None and is_refused(result):
            cause = cause_of(result.error).type
            refusals = previous.refusals if previous is not None and previous.cause == cause else 0
            answer = replace(answer, refusals=refusals + 1, cause=cause)
        return replace(answer, suspended_until=at + self._pause(answer))

    def _pause(self, answer: _Answer) -> float:
        """Seconds for which a rejected operation is suspended."""
        if answer.is_too_large:
            return math.inf
        if answer.awaits_room:
            return ROOM_PAUSE
        return pause_after(answer.refusals - 1) if answer.refusals and self._patience < math.inf else self._patience

    def forget(self, keys: Iterable[str]) -> None:
        """Forget the answers to these operations."""
        for key in keys:
            self._answers.pop(key, None)

    def awaits_room(self, operation: Operation) -> bool:
        """Whether a quota has no room for the operation now, and it is sent again soon."""
        answer = self._answers.get(operation.key)
        return answer is not None and answer.awaits_room and answer.is_to(operation)

    def next_due(self, at: float) -> float | None:
        """The first time after `at` at which a refused request is sent again; None if there is none."""
        times = (answer.suspended_until for answer in self._answers.values() if answer.is_repeated and answer.suspended_until > at)
        return min(times, default=None)

    def _count(self, operation: Operation, at: float) -> int:
        """Record that a change was made. Returns how often in a row it has been made to this object; `MAX_REVERTED` times suspend it.

        A change of an object that was deleted and created again is another change.
        """
        previous = self._answers.get(operation.key)
        is_same = previous is not None and previous.expect.uid == operation.expect.uid and previous.is_to(operation)
        times = previous.times + 1 if previous is not None and is_same and at - previous.at < SOON else 1
        suspended_until = at + self._patience if times >= MAX_REVERTED else -math.inf
        self._answers[operation.key] = _Answer(_digest(operation), operation.expect, at, times, suspended_until)
        return times

    def suspends(self, operation: Operation, at: float) -> bool:
        """Whether the operation is not to be sent at the time `at` (monotonic).

        A change that was reverted is suspended whatever the revision of that object, and so is one that is too large; a rejected operation
        while its object is the same.
        """
        answer = self._answers.get(operation.key)
        if answer is None or at >= answer.suspended_until:
            return False
        is_reverted = answer.times > 0 and answer.expect.uid == operation.expect.uid
        return (is_reverted or answer.is_too_large or answer.expect == operation.expect) and answer.is_to(operation)


def _digest(operation: Operation) -> str:
    """A digest of the body, whatever the time of writing."""
    return digest(stamp(body_of(operation), ""))


def is_rejection(result: Result) -> bool:
    """Whether the same request would be answered the same way again."""
    if result.outcome is Outcome.FAILED:
        return isinstance(result.error, FINAL)
    existing = result.existing
    return is_name_conflict(result) and (existing is None or existing.deleting_since is None)


def is_name_conflict(result: Result) -> bool:
    """Whether the name is taken by an object that is not ours; the result carries that object."""
    return result.outcome is Outcome.CONFLICT and isinstance(result.error, AlreadyExists) and result.existing is not None
