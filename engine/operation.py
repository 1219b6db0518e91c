"""Operation: one API call with its reason and its precondition; Plan: what a pass would do."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from engine.ids import Owner, OwnerRef, ResourceId
from engine.resource import Body, Occasion


class Verb(StrEnum):
    """What an operation does to its object."""

    CREATE = "create"
    PATCH = "patch"
    REPLACE = "replace"
    RELEASE = "release"
    DELETE = "delete"
    STATUS = "status"


class Cause(StrEnum):
    """Why a difference exists."""

    INTENT = "intent"
    """What is asked for has changed."""
    DRIFT = "drift"
    """The world has moved away from what was asked for."""


@dataclass(frozen=True, slots=True)
class Change:
    """A line of a diff: a field, what it is, what it shall be. `None` stands for absent."""

    path: tuple[str, ...]
    old: Any
    new: Any
    cause: Cause


@dataclass(frozen=True, slots=True)
class Unknown:
    """The uid of an owner that is made by the same plan; bound when that create has answered."""

    id: ResourceId


@dataclass(frozen=True, slots=True)
class Reference:
    """An owner with its uid, or with the promise of one."""

    owner: Owner
    uid: str | Unknown


@dataclass(frozen=True, slots=True)
class Expect:
    """Preconditions: the incarnation (and, for patches, the revision) that the plan has judged."""

    uid: str = ""
    revision: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """One API call.

    `body` is, by verb: create and replace: the manifest without owner references; patch and status: a JSON merge patch;
    release: `{"finalizers": [...], "of": [...]}`, those to take off, and all that were seen; delete: empty.
    """

    verb: Verb
    id: ResourceId
    why: str
    cause: Cause
    body: Body = field(default_factory=dict)
    references: tuple[Reference, ...] = ()
    changes: tuple[Change, ...] = ()
    expect: Expect = Expect()
    after: frozenset[str] = frozenset()
    """Keys of the operations of this plan that must be done first."""
    asked: bool = True
    controller: OwnerRef | None = None
    """Who controls the object that is there already."""
    occasion: Occasion | None = None
    """What the object goes as a part of."""
    prompt: bool = False
    """For a status: it tells the beginning of something, whose moment is that of the write."""

    @property
    def key(self) -> str:
        """Its name within a plan: verb and identity."""
        return operation_key(self.verb, self.id)


def operation_key(verb: Verb, id: ResourceId) -> str:
    """The name of an operation within a plan."""
    return f"{verb} {id.group}/{id}"


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


class Outcome(StrEnum):
    """How an operation ended."""

    DONE = "done"
    STALE = "stale"
    """The object changed since the plan was made: look again."""
    FAILED = "failed"
    SKIPPED = "skipped"
    """Something it had to come after did not happen."""


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """The answer to an operation."""

    operation: Operation
    outcome: Outcome
    live: Body | None = None
    error: Exception | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Trouble:
    """A call that failed the last time it was made, and since when it has. Compared by identity: as long as it lasts it is the same."""

    operation: Operation
    error: Exception | None
    """None while it has not been tried: then nobody knows."""
    since: datetime


@dataclass(frozen=True, slots=True, order=True)
class Fault:
    """A fault of a root as it is stored: nothing is done about that root before its user mends it. Or an alarm about it."""

    root: ResourceId
    uid: str
    generation: int
    text: str
    reason: str = ""
    """The alarm's; empty for a fault of the root itself."""


@dataclass(frozen=True, slots=True)
class Event:
    """A Kubernetes Event to be: told about `about`, for people."""

    about: ResourceId
    uid: str
    reason: str
    message: str
    warning: bool = False


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
