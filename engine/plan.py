"""Plan: what a pass would do to one root and its objects, and what it would not do yet."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from engine.ids import ResourceId
from engine.operation import Operation, Verb


@dataclass(frozen=True, slots=True)
class Held:
    """Something that is not done now: why, and until when if that is known."""

    id: ResourceId
    why: str
    until: datetime | None = None


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
    held: tuple[Held, ...] = ()
    """Operations that are due and not done: by a stance, or because something was not seen completely."""
    waiting: tuple[Held, ...] = ()
    """What is not as desired yet and is nobody's turn but the cluster's: pods to be scheduled, to become ready, to go."""
    objections: tuple[Objection, ...] = ()
    problems: tuple[str, ...] = ()
    """Faults in what the user asked for; nothing is planned where it cannot be understood."""
    notes: tuple[str, ...] = ()
    alarms: tuple[Alarm, ...] = ()
    wake_at: datetime | None = None


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
