"""Plan: what a pass would do to one root and its objects, and what it would not do yet."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from engine.ids import ResourceId
from engine.operation import Operation
from engine.verb import Verb


@dataclass(frozen=True, slots=True)
class Wait:
    """Something that is not done now: why, and until when if that is known."""

    id: ResourceId
    why: str
    until: datetime | None = None
    """When it ends by itself, if that is known."""
    blocked: bool = False
    """Whether somebody else has to act first; otherwise a later pass does it."""


@dataclass(frozen=True, slots=True)
class Objection:
    """A guard's refusal of a whole plan, with what to do about it."""

    rule: str
    message: str


@dataclass(frozen=True, slots=True)
class Alarm:
    """Something that people must be told of although no call of the plan will tell it."""

    reason: str
    """One word, as Events have it."""
    text: str
    blocking: bool = False
    """Whether it stays until people do something about it: then there is nothing to wait for."""


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """What a pass would do to one root and its objects, in an order that respects every edge."""

    root: ResourceId
    operations: tuple[Operation, ...] = ()
    deferred: tuple[Wait, ...] = ()
    """Operations that are due and not done: by a stance, or because something was not seen completely."""
    pending: tuple[Wait, ...] = ()
    """What is not as desired yet and is nobody's turn but the cluster's: pods to be scheduled, to become ready, to go."""
    objections: tuple[Objection, ...] = ()
    problems: tuple[str, ...] = ()
    """Faults in what the user intended for; nothing is planned where it cannot be understood."""
    notes: tuple[str, ...] = ()
    alarms: tuple[Alarm, ...] = ()
    wake_at: datetime | None = None
    error: Exception | None = None
    """Why no plan could be computed: a defect of the engine, not of what the user asked for."""

    @property
    def later(self) -> tuple[Wait, ...]:
        """What is due and left to a later pass."""
        return tuple(wait for wait in self.deferred if not wait.blocked)

    @property
    def blocked(self) -> tuple[Wait, ...]:
        """What is due and cannot be done before somebody else acts."""
        return tuple(wait for wait in self.deferred if wait.blocked)


def changed(plan: Plan) -> bool:
    """Whether the plan does anything but write statuses; what is held is no change."""
    return any(operation.verb is not Verb.STATUS for operation in plan.operations)


def tally(plans: Mapping[ResourceId, Plan] | tuple[Plan, ...]) -> dict[Verb, int]:
    """How many operations of each verb the plans hold, in the order of the verbs; absent verbs are left out."""
    listed = plans.values() if isinstance(plans, Mapping) else plans
    counts = dict.fromkeys(Verb, 0)
    for plan in listed:
        for operation in plan.operations:
            counts[operation.verb] += 1
    return {verb: count for verb, count in counts.items() if count}
