"""FailedCalls: which calls failed the last time, remembered from pass to pass as facts for the next look.

Memory of one process, and a function of what it has tried: whoever has tried nothing knows of no failed_call, and claims no health either.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from datetime import datetime

from engine.failure import FailedCall
from engine.ids import ResourceId
from engine.operation import Operation, operation_key, parent_of
from engine.plan import Plan
from engine.result import Outcome, Result
from engine.verb import Verb


class FailedCalls:
    """What is known of the calls of each root."""

    def __init__(self) -> None:
        self._known: dict[ResourceId, tuple[FailedCall, ...]] = {}

    @property
    def known(self) -> Mapping[ResourceId, tuple[FailedCall, ...]]:
        """Root -> its failed_calls, by verb and object; the same tuple as long as they are the same. A root that is absent was never tried."""
        return self._known

    def note(self, plans: Sequence[Plan], results: Iterable[Result], at: datetime, unclear: Set[str] = frozenset()) -> None:
        """Learn from a pass over these plans; `unclear` are the kinds of roots for which not everything was seen that matters to them.

        A call that has been done, or is no longer planned, is no failed_call; one that has not been tried again is as it was. Plans
        that nobody would carry out teach nothing.
        """
        answers = {id(result.operation): result for result in results}
        for plan in plans:
            before = self._known.get(plan.root)
            if plan.problems or plan.objections or (before is None and plan.root.kind in unclear):
                continue
            after = tuple(sorted(_after(plan, before, answers, at), key=key_of))
            if before is None or not _are_the_same(before, after):
                self._known[plan.root] = after
        for root in self._known.keys() - {plan.root for plan in plans}:
            del self._known[root]


def _after(plan: Plan, before: Sequence[FailedCall] | None, answers: Mapping[int, Result], at: datetime) -> Iterator[FailedCall]:
    known = {key_of(failed_call): failed_call for failed_call in before or ()}
    for operation in plan.operations:
        if operation.verb is Verb.STATUS:
            continue  # A state that says that it cannot be written could not be written.
        old, answer = known.get(operation.key), answers.get(id(operation))
        if answer is not None and answer.outcome is Outcome.FAILED:
            yield _failed(operation, answer.error, old, at)
        elif answer is None or answer.outcome is not Outcome.DONE:
            if old is not None:
                yield old
            elif before is None:
                yield failed_call(operation, None, at)


def _failed(operation: Operation, error: Exception | None, old: FailedCall | None, at: datetime) -> FailedCall:
    """One situation is one failed_call, in the words in which it was met first: texts that count or time would never come to rest."""
    same = old is not None and old.error is not None and type(old.error) is type(error)
    return old if old is not None and same else failed_call(operation, error, at)


def _are_the_same(before: Sequence[FailedCall], after: Sequence[FailedCall]) -> bool:
    return len(before) == len(after) and all(old is new for old, new in zip(before, after, strict=True))


def failed_call(operation: Operation, error: Exception | None, at: datetime) -> FailedCall:
    """The record of a call that failed with `error` (None: not tried yet) at the time `at`."""
    return FailedCall(operation.verb, operation.id, parent_of(operation), error, at)


def key_of(failed_call: FailedCall) -> str:
    """The key of the operation that failed."""
    return operation_key(failed_call.verb, failed_call.id)
