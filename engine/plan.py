"""Plan: the operations of a pass on one root, what is deferred, what the cluster has still to do; what guards and policies say of it."""

from collections.abc import Callable, Sequence
from datetime import datetime
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from engine.ids import ResourceId
from engine.memo import selected
from engine.operation import Operation, Trial, WriteStatus
from engine.reason import REMEDIES, Reason, earliest


class Wait(Struct, frozen=True):
    """An object that is deferred or pending, and why."""

    id: ResourceId
    why: str
    until: datetime | None = None
    """When the wait ends by itself, if that is known."""
    blocked: bool = False
    """For a deferred operation: whether a user or another controller has to act first; otherwise a later pass does it."""
    reason: Reason | None = None
    """What it waits for, as one word; None if there is no word for it."""
    to_do: str = ""
    """What a user has to do, where that is known better than from the reason."""

    @property
    def remedy(self) -> str:
        """What a user has to do; empty if there is nothing to do, if `why` says all, or if no more is known than `why` says."""
        if self.to_do:
            return self.to_do
        return REMEDIES.get(self.reason, "").format(name=self.id.name) if self.blocked and self.reason else ""


class Objection(Struct, frozen=True):
    """A guard's refusal of a plan, with what to do about it."""

    rule: str
    """The name of the guard, for example `delete-budget`."""
    message: str


class Alarm(Struct, frozen=True):
    """Something that users must know although no operation of the plan reports it."""

    reason: str
    """The reason of the Event: one word in CamelCase."""
    text: str
    blocking: bool = False
    """Whether it stays until a user acts: waiting does not help."""
    about: ResourceId | None = None
    """The object of the root that it is about, if that exists; None: the root."""
    fault: bool = False
    """Whether a user has to correct the root: what it is about has no effect, and everything else is done."""
    counted_apart: bool = False
    """Whether its Event has limits of its own (`Event.counted_apart`)."""
    may_pass: bool = False
    """Whether what it says is missing may still be provided by another tool: a GitOps tool that applies many objects, for example."""
    remark: bool = False
    """Whether only its Event is of interest: nothing is wrong with the root."""


class Plan(Struct, frozen=True, eq=False):
    """The result of a pass on one root: operations in an order that respects every edge, and everything that is not done now."""

    root: ResourceId
    operations: tuple[Operation, ...] = ()
    deferred: tuple[Wait, ...] = ()
    """Objects that are due to be written and are not written now."""
    pending: tuple[Wait, ...] = ()
    """Objects that the cluster has still to act on: pods to be scheduled, to become ready, to terminate."""
    objections: tuple[Objection, ...] = ()
    """With objections the operations are shown and not executed."""
    problems: tuple[str, ...] = ()
    """Mistakes in what the user asked for; with problems nothing is done but to say so in the status of the root."""
    notes: tuple[str, ...] = ()
    """Remarks for the reader of a report; they change nothing."""
    alarms: tuple[Alarm, ...] = ()
    wake_at: datetime | None = None
    """When time alone changes this plan."""
    restate_at: datetime | None = None
    """When time alone changes what the status of the root says, and nothing else."""
    parent: ResourceId | None = None
    """The root that this root is a part of; None for a root that a user has made."""
    trials: tuple[Trial, ...] = ()
    """The creates that the API server must have accepted before something is deleted because of them (`Observed.trials`)."""
    denial: WriteStatus | None = None
    """With objections: the status in which the root says so. It is written all the same, since it is no part of what is refused."""
    health_types: tuple[str, ...] = ()
    """The types of the conditions of health (`engine.health`) that the engine writes in the status of the root; empty: none."""
    is_unplanned: bool = False
    """Whether this process has not planned the root yet: the plan is empty, and what is left to do or wrong is not known."""
    error: Exception | None = None
    """Why no plan could be computed: a defect of the engine, not of what the user asked for. With an error there are no operations."""

    @property
    def faults(self) -> tuple[str, ...]:
        """Mistakes in what the user asked for that have no effect: unlike with problems, everything else is done."""
        return tuple(alarm.text for alarm in self.alarms if alarm.fault)

    @property
    def blocking_alarms(self) -> tuple[Alarm, ...]:
        """Alarms that last until a user or an administrator acts."""
        return tuple(alarm for alarm in self.alarms if alarm.blocking)

    @property
    def later(self) -> tuple[Wait, ...]:
        """What is deferred and done by a later pass."""
        return tuple(wait for wait in self.deferred if not wait.blocked)

    @property
    def blocked(self) -> tuple[Wait, ...]:
        """What is deferred until a user or another controller acts."""
        return tuple(wait for wait in self.deferred if wait.blocked)


def is_noteworthy(plan: Plan) -> bool:
    """Whether something is to be done, tried, deferred, refused or reported, or is not known, or time changes the plan; else its root is
    as desired, or what is left is the cluster's turn.
    """
    refused = plan.objections or plan.problems or plan.error is not None or plan.is_unplanned
    return bool(plan.operations or plan.deferred or refused or plan.alarms or plan.trials or next_change(plan) is not None)


def next_change(plan: Plan) -> datetime | None:
    """When time alone changes the plan or what the status of its root says."""
    return earliest((plan.wake_at, plan.restate_at))


def noteworthy(plans: Sequence[Plan]) -> Sequence[Plan]:
    """The plans that a pass has to look at (`is_noteworthy`), in their order."""
    return selected(plans, is_noteworthy)


def without(plan: Plan, excluded: Callable[[Operation], bool]) -> Plan:
    """The plan without the excluded operations and without all operations that come after them."""
    left_out: set[str] = set()
    for operation in plan.operations:  # Sorted: each operation follows those named in its `after`.
        if not left_out.isdisjoint(operation.after) or excluded(operation):
            left_out.add(operation.key)
    if not left_out:
        return plan
    return replace(plan, operations=tuple(operation for operation in plan.operations if operation.key not in left_out))


def obstacles(plan: Plan, *, is_listed: bool = True) -> tuple[Wait, ...]:
    """What a user or an administrator must make possible; not what only waits until everything can be listed.

    `is_listed`: whether everything was listed completely.
    """
    unlisted = {Reason.NOT_LISTED} if is_listed else {Reason.NOT_LISTED, None}
    return tuple(wait for wait in blocked_by(plan) if wait.reason not in unlisted)


def blocked_by(plan: Plan) -> tuple[Wait, ...]:
    """What is deferred until a user or another controller acts; else the lasting alarms, each as a wait of the object it is about.

    Alarms that only repeat an objection are left out.
    """
    known = {objection.message for objection in plan.objections}
    alarms = (alarm for alarm in plan.blocking_alarms if alarm.text not in known)
    return plan.blocked or tuple(Wait(alarm.about or plan.root, alarm.text, blocked=True) for alarm in alarms)


def changed(plan: Plan) -> bool:
    """Whether the plan does anything but write statuses."""
    return any(not isinstance(operation, WriteStatus) for operation in plan.operations)


class Enforcement(StrEnum):
    """What follows when a rule is violated."""

    DENY = "deny"
    """Nothing is written."""
    WARN = "warn"
    """It is reported, and everything is done."""
    AUDIT = "audit"
    """Only documents for programs have it."""


class Violation(Struct, frozen=True):
    """A rule that a plan violates."""

    rule: str
    """`policy/rule`, e.g. `prod/restarts`."""
    enforcement: Enforcement
    message: str
    about: ResourceId | None = None
    """The root that it is about; None: the plan as a whole."""
    waived: str = ""
    """The reason for which it was waived: then it denies nothing. Empty: it was not."""


class Judgement(Struct, frozen=True):
    """What all policies together say."""

    violations: tuple[Violation, ...] = ()
    notes: tuple[str, ...] = ()
    """Rules that could not be applied and are ignored, as their policies ask for."""

    @property
    def denied(self) -> tuple[Violation, ...]:
        """The violations that keep everything from being written."""
        return self._open(Enforcement.DENY)

    @property
    def warned(self) -> tuple[Violation, ...]:
        """The violations that are reported."""
        return self._open(Enforcement.WARN)

    @property
    def audited(self) -> tuple[Violation, ...]:
        """The violations that only documents for programs have."""
        return self._open(Enforcement.AUDIT)

    @property
    def waived(self) -> tuple[Violation, ...]:
        """The violations that were waived, with the reason."""
        return tuple(violation for violation in self.violations if violation.waived)

    def _open(self, enforcement: Enforcement) -> tuple[Violation, ...]:
        return tuple(violation for violation in self.violations if violation.enforcement is enforcement and not violation.waived)


NO_JUDGEMENT = Judgement()
