"""SyncReport: what a sync session did, and what is left."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Generic

from msgspec import Struct, field

from engine.approval.ledger import Excess
from engine.blueprint import C_co
from engine.errors import EngineError, is_refusal
from engine.ids import ResourceId
from engine.observed import unlisted_texts
from engine.operation import Operation, Outcome, Result
from engine.plan import Alarm, Objection, Plan, Wait, obstacles
from engine.runtime.passes import Pass


class Ending(StrEnum):
    """How a session ended, worst first."""

    INTERRUPTED = "interrupted"
    FAILED = "failed"
    """A call failed, or a root is invalid."""
    DENIED = "denied"
    """A guard objects to a plan."""
    UNAPPROVED = "not as approved"
    """Something is left that was not approved; everything else is done."""
    STUCK = "stuck"
    """Something is blocked, refused, or does not start: it is not done before a user or an administrator acts; everything else is done."""
    INCOMPLETE = "incomplete"
    """Something could not be listed completely; everything else is done."""
    TIMED_OUT = "timed out"
    """Something did not settle in time; nothing has failed."""
    DONE = "done"


class SyncReport(Struct, Generic[C_co], frozen=True, eq=False):
    """What a session did, and what is left."""

    last_pass: Pass[C_co]
    """Its plans are what is left to do and to wait for."""
    results: tuple[Result, ...]
    interrupted: bool = False
    timed_out: bool = False
    error: EngineError | None = None
    """The error that ended the session after its first pass."""
    mid_pass: bool = False
    """Whether it ended in the middle of a pass: its plans then also hold operations that were applied."""
    lease_taken: str = ""
    """Who holds the lease that the session needed at its end to do what was left; empty if it could write."""
    roots: Mapping[str, ResourceId] = field(default_factory=dict)
    """Key of each operation -> the root whose plan it was in."""
    unapproved: tuple[Excess, ...] = ()
    """What the last pass would have done as well and was not approved."""
    stuck: frozenset[ResourceId] = frozenset()
    """The roots that were written and that no time settles: their pods fail, or no node takes them."""

    @property
    def ending(self) -> Ending:
        """How it ended: the worst ending that applies."""
        if self.interrupted:
            return Ending.INTERRUPTED
        if self.error or self.internal_errors or self.problems:
            return Ending.FAILED
        refusals = [is_refusal(result.error) for result in self.failures] if not (self.timed_out and self.mid_pass) else []
        if not all(refusals):
            return Ending.FAILED
        if self.objections:
            return Ending.DENIED
        if self.unapproved:
            return Ending.UNAPPROVED
        if self.blocked or self.stuck or refusals:
            return Ending.STUCK
        if self.incomplete:
            return Ending.INCOMPLETE
        return Ending.TIMED_OUT if self.timed_out else Ending.DONE

    @property
    def plans(self) -> tuple[Plan, ...]:
        """The last plan of every root."""
        return self.last_pass.planned.plans

    @property
    def pending(self) -> tuple[Wait, ...]:
        """What is not as desired yet because the cluster has to act."""
        return tuple(wait for plan in self.plans for wait in plan.pending)

    @property
    def problems(self) -> tuple[str, ...]:
        """What is wrong with roots as users have specified them, whether it has no effect or prevents everything."""
        return tuple(problem for plan in self.plans for problem in (*plan.problems, *plan.faults))

    @property
    def internal_errors(self) -> tuple[Exception, ...]:
        """Why plans could not be computed: defects of the engine."""
        return tuple(plan.error for plan in self.plans if plan.error is not None)

    @property
    def objections(self) -> tuple[Objection, ...]:
        """The guards' objections to the last pass and to its plans."""
        return (*self.last_pass.planned.objections, *(objection for plan in self.plans for objection in plan.objections))

    @property
    def incomplete(self) -> Mapping[str, str]:
        """Kind -> why it could not be listed completely."""
        return unlisted_texts(self.last_pass.world.incomplete)

    @property
    def blocked(self) -> tuple[Wait, ...]:
        """What is not done before a user or an administrator acts (`obstacles`)."""
        return tuple(wait for plan in self.plans for wait in obstacles(plan, is_listed=not self.incomplete))

    @property
    def blocking_alarms(self) -> tuple[Alarm, ...]:
        """Alarms that last until a user or an administrator acts."""
        return tuple(alarm for plan in self.plans for alarm in plan.blocking_alarms)

    @property
    def failures(self) -> tuple[Result, ...]:
        """The last result of each operation that is still planned, was tried, and was not done."""
        last = {result.operation.key: result for result in self.results if result.outcome is not Outcome.SKIPPED}
        tried = (last.get(operation.key) for plan in self.plans if not plan.objections for operation in plan.operations)
        return tuple(result for result in tried if result is not None and result.outcome is not Outcome.DONE)

    @property
    def not_started(self) -> tuple[Operation, ...]:
        """Operations of the last plans without a result; after an interruption, those that it prevented."""
        tried = {id(result.operation) for result in self.results}
        return tuple(operation for plan in self.plans for operation in plan.operations if id(operation) not in tried)
