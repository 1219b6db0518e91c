"""FailedCalls: the calls of each root that failed when they were last tried, as an input of the next pass."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from datetime import datetime
from typing import Final

from engine.answer import FailedCall
from engine.ids import ResourceId
from engine.memo import Revised, differences
from engine.operation import Operation, Outcome, Result, WriteStatus, operation_key, parent_of
from engine.plan import Plan, is_noteworthy, noteworthy

KEPT_CHANGES: Final = 250
"""How many changes are kept for those who ask what has changed: with more, they look at all roots anyway."""


class FailedCalls:
    """Remembers failed calls from pass to pass, for as long as this process lives."""

    def __init__(self) -> None:
        self._known: dict[ResourceId, tuple[FailedCall, ...]] = {}
        self.version = 0
        """The number of changes so far."""
        self._changed: deque[ResourceId] = deque(maxlen=KEPT_CHANGES)
        """The roots of the last changes."""
        self._noted: Sequence[Plan] | None = None
        """The plans of the last pass, unless the calls of some of their roots were not known because of an incomplete list."""

    @property
    def known(self) -> Mapping[ResourceId, tuple[FailedCall, ...]]:
        """Root -> its failed calls, sorted by verb and object. An unchanged tuple is the same object.

        A root is absent until this process has carried out a plan for it: before that it is not known whether its calls fail.
        """
        return self._known

    def changed_since(self, version: int) -> Sequence[ResourceId] | None:
        """The roots whose failed calls have changed since that version; None if that is not known any more."""
        count = self.version - version
        return None if count > len(self._changed) else [self._changed[index] for index in range(-count, 0)]

    def note(
        self,
        plans: Sequence[Plan],
        results: Iterable[Result],
        at: datetime,
        incomplete: Set[str] = frozenset(),
        *,
        left: Set[ResourceId] = frozenset(),
    ) -> None:
        """Record a pass over these plans; `incomplete` are the root kinds that depend on a kind which could not be listed completely.

        A call that was done or is no longer planned is removed; one that was not tried again stays as it is. A plan that is not carried
        out (problems, objections, an internal error, its root in `left`) changes nothing.
        """
        answers = {id(result.operation): result for result in results}
        noted, self._noted = self._noted, plans if not incomplete else None
        changed = differences(noted, plans) if isinstance(noted, Revised) and isinstance(plans, Revised) else None
        for plan in self._concerned(plans, changed):
            before = self._known.get(plan.root)
            if plan.problems or plan.objections or plan.error or plan.root in left or (before is None and plan.root.kind in incomplete):
                continue
            after = tuple(sorted(_after(plan, before, answers, at), key=key_of))
            if before is None or not _are_identical(before, after):
                self._known[plan.root] = after
                self._note_change(plan.root)
        if changed is None or not isinstance(plans, Revised):
            gone = self._known.keys() - {plan.root for plan in plans}
        else:
            gone = {root for root in changed if root in self._known and plans.get(root) is None}
        for root in gone:
            del self._known[root]
            self._note_change(root)

    def _concerned(self, plans: Sequence[Plan], changed: Iterable[ResourceId] | None) -> list[Plan]:
        """The plans that may change what is known of their roots. `changed`: the roots that have other plans than in the last pass.

        A root with a plan in which nothing is noteworthy has no failed calls after the pass, and so after the next one.
        """
        if changed is None or not isinstance(plans, Revised):
            return [plan for plan in plans if plan.operations or self._known.get(plan.root) != ()]
        new = (plans.get(root) for root in changed)
        return [*noteworthy(plans), *(plan for plan in new if plan is not None and not is_noteworthy(plan))]

    def _note_change(self, root: ResourceId) -> None:
        self.version += 1
        self._changed.append(root)


def _after(plan: Plan, before: Sequence[FailedCall] | None, answers: Mapping[int, Result], at: datetime) -> Iterator[FailedCall]:
    """The failed calls of a root after a pass. `before`: those before it; `answers`: the results by the `id()` of their operation."""
    known = {key_of(failed): failed for failed in before or ()}
    for operation in plan.operations:
        if isinstance(operation, WriteStatus):
            continue  # A failed status write cannot be reported: the report is in the status.
        old, answer = known.get(operation.key), answers.get(id(operation))
        if answer is not None and answer.outcome is Outcome.FAILED:
            yield _updated(operation, answer.error, old, at)
        elif answer is None or answer.outcome is not Outcome.DONE:
            if old is not None:
                yield old
            elif before is None:
                yield failed_call(operation, None, at)


def _updated(operation: Operation, error: Exception | None, old: FailedCall | None, at: datetime) -> FailedCall:
    """The old record while the type of the error is the same: messages that contain counts or times would change the status for ever."""
    same = old is not None and old.error is not None and type(old.error) is type(error)
    return old if old is not None and same else failed_call(operation, error, at)


def _are_identical(before: Sequence[FailedCall], after: Sequence[FailedCall]) -> bool:
    return len(before) == len(after) and all(old is new for old, new in zip(before, after, strict=True))


def failed_call(operation: Operation, error: Exception | None, at: datetime) -> FailedCall:
    """The record of a call that failed with `error` (None: not tried yet) at the time `at`."""
    return FailedCall(operation.verb, operation.id, parent_of(operation), error, at)


def key_of(failed_call: FailedCall) -> str:
    """The key of the operation that failed."""
    return operation_key(failed_call.verb, failed_call.id)
