"""The model behind every form of report: plans by root, each operation with what it belongs to, worst first."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from engine.ids import ResourceId
from engine.operation import Operation
from engine.plan import Objection, Plan, Wait
from engine.verb import Verb

PartOf = Callable[[ResourceId, ResourceId], str]
"""The part of a root (say, which replica) that a child belongs to; empty for the root as a whole."""

WORST_FIRST = {verb: rank for rank, verb in enumerate((Verb.DELETE, Verb.REPLACE, Verb.RELEASE, Verb.PATCH, Verb.CREATE, Verb.STATUS))}


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """An operation, and the part of its root that it belongs to."""

    operation: Operation
    part: str


@dataclass(frozen=True, slots=True, eq=False)
class RootReport:
    """All there is to say about one root."""

    root: ResourceId
    steps: tuple[Step, ...]
    deferred: tuple[Wait, ...]
    pending: tuple[Wait, ...]
    objections: tuple[Objection, ...]
    problems: tuple[str, ...]
    notes: tuple[str, ...]
    wake_at: datetime | None

    @property
    def silent(self) -> bool:
        """Whether there is nothing to tell."""
        return not (self.steps or self.deferred or self.pending or self.objections or self.problems or self.notes)


@dataclass(frozen=True, slots=True, eq=False)
class Report:
    """What a pass would do, told once; text and JSON are two ways to write it down."""

    accounts: tuple[RootReport, ...]
    objections: tuple[Objection, ...] = ()
    """Guards' refusals of the pass as a whole."""
    incomplete: Mapping[str, str] = field(default_factory=dict)
    """Kind -> why not all of it could be seen."""

    @property
    def counts(self) -> dict[Verb, int]:
        """How many operations of each verb; every verb is there."""
        counts = dict.fromkeys(Verb, 0)
        for account in self.accounts:
            for step in account.steps:
                counts[step.operation.verb] += 1
        return counts

    @property
    def changes(self) -> int:
        """How many operations are a change: all but status writes."""
        return sum(count for verb, count in self.counts.items() if verb is not Verb.STATUS)

    @property
    def deferred(self) -> int:
        """How many objects are due and held."""
        return sum(len(account.deferred) for account in self.accounts)

    @property
    def pending(self) -> int:
        """How many objects the cluster has yet to bring about."""
        return sum(len(account.pending) for account in self.accounts)

    @property
    def denied(self) -> bool:
        """Whether a guard refuses something."""
        return bool(self.objections) or any(account.objections for account in self.accounts)

    @property
    def faulty(self) -> bool:
        """Whether a user's request cannot be understood."""
        return any(account.problems for account in self.accounts)


def compose(
    plans: Iterable[Plan], part_of: PartOf, *, objections: tuple[Objection, ...] = (), incomplete: Mapping[str, str] | None = None
) -> Report:
    """The report of these plans: roots with the worst to do come first, and so do the operations within them."""
    accounts = [account_of(plan, part_of) for plan in plans]
    return Report(tuple(sorted(accounts, key=gravity)), objections, dict(sorted((incomplete or {}).items())))


UNBORN = "it does not exist yet: in names that are made from its uid, its namespace and name stand for it here"


def account_of(plan: Plan, part_of: PartOf) -> RootReport:
    """One plan, sorted for a reader instead of for an executor."""
    unborn = any(operation.verb is Verb.CREATE and operation.id == plan.root for operation in plan.operations)
    steps = [Step(operation, "" if operation.id == plan.root else part_of(plan.root, operation.id)) for operation in plan.operations]
    return RootReport(
        plan.root,
        by_part(steps),
        tuple(sorted(plan.deferred, key=lambda held: natural(str(held.id)))),
        tuple(sorted(plan.pending, key=lambda held: natural(str(held.id)))),
        plan.objections,
        plan.problems,
        (*plan.notes, UNBORN) if unborn else plan.notes,
        plan.wake_at,
    )


def by_part(steps: Iterable[Step]) -> tuple[Step, ...]:
    """Parts stay together; those with the worst in them come first, and within each the worst first, kinds in the plan's own order."""
    listed = list(steps)
    kinds = {kind: rank for rank, kind in enumerate(dict.fromkeys(step.operation.id.kind for step in listed))}
    worst: dict[str, int] = {}
    for step in listed:
        worst[step.part] = min(worst.get(step.part, len(WORST_FIRST)), WORST_FIRST[step.operation.verb])
    return tuple(
        sorted(
            listed,
            key=lambda step: (
                worst[step.part],
                natural(step.part),
                WORST_FIRST[step.operation.verb],
                kinds[step.operation.id.kind],
                natural(str(step.operation.id)),
            ),
        )
    )


def gravity(account: RootReport) -> tuple[object, ...]:
    """What sorts accounts: refusals and faults, then the worst operation, then the name."""
    worst = min((WORST_FIRST[step.operation.verb] for step in account.steps), default=len(WORST_FIRST))
    return not account.objections, not account.problems, worst, natural(str(account.root))


def natural(text: str) -> tuple[tuple[int, int, str], ...]:
    """A key that sorts `x-2` before `x-10`."""
    return tuple((0, int(piece), "") if piece.isdecimal() else (1, 0, piece) for piece in re.split(r"([0-9]+)", text) if piece)
