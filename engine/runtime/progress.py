"""Progress: what a session or loop reports while it works, and the defects of the engine that it logs."""

from collections.abc import Sequence
from typing import Any, Protocol

from engine.approval.ledger import Excess
from engine.ids import ResourceId
from engine.operation import Outcome, Result, parent_of
from engine.plan import Plan, noteworthy
from engine.runtime.lease_holder import LeaseHolder
from engine.runtime.logs import Log


class Progress(Protocol):
    """Called for each pass in this order: `planned`, `applied` for each result, `idle`; and `waiting_for_lease` between passes."""

    def waiting_for_lease(self, holder: LeaseHolder) -> None:
        """The lease is held by `holder`, and we need it; called once for each holder."""
        return

    def planned(self, plans: Sequence[Plan], operations: int) -> None:
        """A pass has computed these plans; `operations` of their operations are executed now."""
        return

    def unapproved(self, excess: Sequence[Excess]) -> None:
        """The pass would do more than was approved; called before `planned`, whenever that is something else than in the pass before."""
        return

    def applied(self, result: Result) -> None:
        """An operation has ended, with whatever outcome."""
        return

    def idle(self, plans: Sequence[Plan], seconds: float) -> None:
        """The pass has ended; the next one begins after at most `seconds`."""
        return


class NoProgress(Progress):
    """A `Progress` that shows nothing."""


class LoggedProgress:
    """A `Progress` that logs: `applied` at level info, `failed` as a warning, everything else at level debug."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._roots: dict[str, ResourceId] = {}
        """Key of each operation of the pass -> the root whose plan it is in."""

    def waiting_for_lease(self, holder: LeaseHolder) -> None:
        """Log who holds the lease."""
        self._log.info("waiting for the lease", holder=holder.identity, since=holder.acquired_at, purpose=holder.purpose)

    def planned(self, plans: Sequence[Plan], operations: int) -> None:
        """Log how much there is to do."""
        self._roots = {operation.key: plan.root for plan in noteworthy(plans) for operation in plan.operations}
        self._log.debug("planned", roots=len(plans), operations=operations)

    def unapproved(self, excess: Sequence[Excess]) -> None:
        """Log each operation that is not done, as a warning."""
        for each in excess:
            operation = each.operation
            self._log.warning("not as approved", operation=operation.verb, object=operation.id, root=each.root, why=operation.why)

    def applied(self, result: Result) -> None:
        """Log the outcome of an operation: `applied`, `failed`, `conflict` or `skipped`."""
        operation, outcome, parent = result.operation, result.outcome, parent_of(result.operation)
        values: dict[str, Any] = {
            "operation": operation.verb,
            "object": operation.id,
            "root": self._roots.get(operation.key, operation.id),
            "reason": str(operation.reason),
            "cause": operation.cause,
            "why": operation.why,
        }
        if parent is not None:
            values["parent"] = "/".join(parent)
        if outcome is Outcome.DONE:
            self._log.info("applied", **values)
        elif outcome is Outcome.FAILED:
            self._log.warning("failed", **values, error=result.error)
        else:
            self._log.debug(str(outcome), **values, error=result.error)

    def idle(self, plans: Sequence[Plan], seconds: float) -> None:
        """Log the time until the next pass, and how much is left to later passes."""
        self._log.debug("idle", seconds=round(seconds, 3), deferred=sum(len(plan.deferred) for plan in noteworthy(plans)))


class InternalErrors:
    """Logs each internal error with its traceback when it appears, not again in every pass."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._logged: set[str] = set()

    def note(self, plans: Sequence[Plan]) -> None:
        """Log the errors of these plans that the plans of the previous pass did not have."""
        errors = {f"{plan.root}: {plan.error!r}": plan for plan in noteworthy(plans) if plan.error is not None}
        for key, plan in errors.items():
            if key not in self._logged:
                self._log.error("internal error", root=plan.root, exc_info=plan.error)
        self._logged = set(errors)
