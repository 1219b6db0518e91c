"""The model behind every report format: the plans of a pass, the operations grouped by part, the most severe first; its limits."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from engine.focus import NO_OTHERS, Others
from engine.forecast.forecast import End, Forecast
from engine.ids import ResourceId
from engine.operation import Create, Operation, is_shared
from engine.plan import NO_JUDGEMENT, Judgement, Objection, Plan, Wait, blocked_by
from engine.reason import Reason
from engine.report.printable import PatternName
from engine.verb import Verb

PartOf = Callable[[ResourceId, ResourceId], str]
"""The part of a root (for example a replica) that a child belongs to; empty for the root as a whole."""

SEVERITY = {
    verb: rank for rank, verb in enumerate((Verb.DELETE, Verb.REPLACE, Verb.RELEASE, Verb.SCALE, Verb.PATCH, Verb.CREATE, Verb.STATUS))
}
"""The rank of each verb; the most severe has the lowest."""
PATIENCE: Final = timedelta(minutes=5)
"""How long a sync waits by default for what time settles."""
NEW_ROOT = "it does not exist yet: the names of its pods are derived from its uid, ????? stands for what is not known of them"


class Step(Struct, frozen=True, eq=False):
    """An operation, and the part of its root that it belongs to."""

    operation: Operation
    part: str


class RootReport(Struct, frozen=True, eq=False):
    """The report of one root."""

    root: ResourceId
    steps: tuple[Step, ...]
    later: tuple[Wait, ...]
    """What a later pass does."""
    blocked: tuple[Wait, ...]
    """What is deferred until a user or another controller acts."""
    pending: tuple[Wait, ...]
    objections: tuple[Objection, ...]
    problems: tuple[str, ...]
    """Mistakes in what the user asked for; with operations: those that have no effect."""
    notes: tuple[str, ...]
    wake_at: datetime | None
    parent: ResourceId | None = None
    """The root that this root is a part of."""
    error: str = ""
    """The internal error that kept this root from being planned, as a sentence; empty if there is none."""

    @property
    def silent(self) -> bool:
        """Whether there is nothing to report."""
        has_waits = self.later or self.blocked or self.pending
        return not (self.steps or has_waits or self.objections or self.problems or self.notes or self.error)


class Report(Struct, frozen=True, eq=False):
    """What a pass would do. `text` and `json` format it."""

    roots: tuple[RootReport, ...]
    objections: tuple[Objection, ...] = ()
    """The guards' refusals of the whole pass."""
    incomplete: Mapping[str, str] = field(default_factory=dict)
    """Kind -> why it could not be listed completely."""
    forecast: Forecast | None = None
    """What follows this pass; None if nothing does, or if it was not computed."""
    judgement: Judgement = NO_JUDGEMENT
    """What policies say about this pass and what follows it."""
    others: Others = NO_OTHERS
    """The workloads outside the scope of the command that have changes."""

    @property
    def counts(self) -> dict[Verb, int]:
        """The number of operations of every verb, zero included."""
        counts = dict.fromkeys(Verb, 0)
        for root in self.roots:
            for step in root.steps:
                counts[step.operation.verb] += 1
        return counts

    @property
    def changes(self) -> int:
        """The number of operations that are not status writes."""
        return sum(count for verb, count in self.counts.items() if verb is not Verb.STATUS)

    @property
    def later(self) -> int:
        """The number of objects that are deferred to a later pass."""
        return distinct((root.parent or root.root, root.later) for root in self.roots)

    @property
    def blocked(self) -> int:
        """The number of objects that are deferred until a user or another controller acts."""
        return distinct((root.parent or root.root, root.blocked) for root in self.roots)

    @property
    def pending(self) -> int:
        """The number of objects that the cluster has still to act on."""
        return distinct((root.parent or root.root, root.pending) for root in self.roots)

    @property
    def denied(self) -> bool:
        """Whether a guard or a policy refuses something."""
        return bool(self.objections or self.judgement.denied) or any(root.objections for root in self.roots)

    @property
    def faulty(self) -> bool:
        """Whether a user has made a mistake in a root, or the engine has a defect."""
        return any(root.problems or root.error for root in self.roots)

    @property
    def unsettled(self) -> tuple[ResourceId, ...]:
        """The roots that would not settle: they get stuck or repeat themselves, and something is written for them or is blocked; and those
        that are blocked for longer than a sync waits.

        A root for which nothing is written, and that only waits for the cluster, is not among them: this report changes nothing for it.
        Without a forecast they are those that are blocked, but for what only waits until everything can be listed.
        """
        unlisted = {Reason.NOT_LISTED, None} if self.incomplete else {Reason.NOT_LISTED}
        blocked = {root.root for root in self.roots if any(wait.reason not in unlisted for wait in root.blocked)}
        if (forecast := self.forecast) is None:
            return tuple(root.root for root in self.roots if root.root in blocked)
        ends = {root.root: forecast.end_of(root.root) for root in self.roots}
        return tuple(
            root
            for root, end in ends.items()
            if end is End.REPEATS
            or (end is End.STUCK and (forecast.has_operations(root) or forecast.is_blocked(root)))
            or (root in blocked and forecast.longest_pause(root) > PATIENCE)
        )


def distinct(waits: Iterable[tuple[ResourceId, Iterable[Wait]]]) -> int:
    """The number of objects that are waited for by each workload: one that two wait for, such as a quota, counts twice."""
    return len({(root, wait.id) for root, each in waits for wait in each})


def compose(
    plans: Iterable[Plan],
    part_of: PartOf,
    *,
    objections: tuple[Objection, ...] = (),
    incomplete: Mapping[str, str] | None = None,
    others: Others = NO_OTHERS,
) -> Report:
    """The report of these plans: roots, and the operations within a root, are sorted with the most severe first.

    The creation of an object that roots share is reported once.
    """
    listed = reported_once(plans)
    new = {plan.root for plan in listed if is_new(plan)}
    roots = [root_report(plan, part_of, is_new=plan.root in new and plan.parent not in new) for plan in listed]
    return Report(tuple(in_order(roots)), objections, dict(sorted((incomplete or {}).items())), others=others)


def without_notes(report: Report, warnings: Mapping[ResourceId, Collection[str]]) -> Report:
    """The report without these notes of its roots; the same report if there are none."""
    if not warnings:
        return report
    roots = (replace(root, notes=tuple(note for note in root.notes if note not in warnings.get(root.root, ()))) for root in report.roots)
    return replace(report, roots=tuple(roots))


def is_new(plan: Plan) -> bool:
    """Whether the plan creates its root."""
    return any(isinstance(operation, Create) and operation.id == plan.root for operation in plan.operations)


def root_report(plan: Plan, part_of: PartOf, *, is_new: bool = False) -> RootReport:
    """The report of one plan: its operations are sorted for a reader, not for execution. `is_new`: it has the note `NEW_ROOT`."""
    steps = [Step(operation, "" if operation.id == plan.root else part_of(plan.root, operation.id)) for operation in plan.operations]
    return RootReport(
        plan.root,
        by_part(steps),
        sorted_waits(plan.later),
        sorted_waits(blocked_by(plan)),
        sorted_waits(plan.pending),
        plan.objections,
        (*plan.problems, *plan.faults),
        (*plan.notes, *_degrading(plan), *((NEW_ROOT,) if is_new else ())),
        plan.wake_at,
        plan.parent,
        error_text(plan.error) if plan.error else "",
    )


def _degrading(plan: Plan) -> Iterator[str]:
    """What is wrong with a root although nothing is left to do. What is deferred says itself why."""
    if not plan.deferred:
        yield from (alarm.text for alarm in plan.alarms if not (alarm.blocking or alarm.fault or alarm.remark))


def error_text(error: Exception) -> str:
    """An exception of our own code as a sentence for users."""
    return f"internal error: {type(error).__name__}: {error}; nothing is changed for this root; please report it"


def sorted_waits(waits: Iterable[Wait]) -> tuple[Wait, ...]:
    """The waits in the natural order of their objects, each once: several parts of a root may wait for the same."""
    return tuple(sorted({(wait.id, wait.why): wait for wait in waits}.values(), key=lambda wait: natural(str(wait.id))))


def unreported(waits: Iterable[Wait], reported: Iterable[Wait]) -> Iterator[Wait]:
    """The waits for other objects than those that are reported.

    The planned name of a pod of a set that does not exist is another one in each pass: as many of one pattern as are reported are left out.
    """
    listed = tuple(reported)
    known, patterns = {wait.id for wait in listed}, Counter(_shown(wait.id) for wait in listed if isinstance(wait.id.name, PatternName))
    for wait in waits:
        if isinstance(wait.id.name, PatternName) and patterns[_shown(wait.id)]:
            patterns[_shown(wait.id)] -= 1
        elif wait.id not in known:
            yield wait


def _shown(id: ResourceId) -> ResourceId:
    return id._replace(name=str(id.name))


def by_part(steps: Iterable[Step]) -> tuple[Step, ...]:
    """The steps by part, parts with the most severe step first; within a part by severity, then kinds in the plan's own order."""
    listed = list(steps)
    kinds = {kind: rank for rank, kind in enumerate(dict.fromkeys(step.operation.id.kind for step in listed))}
    severity: dict[str, int] = {}
    for step in listed:
        severity[step.part] = min(severity.get(step.part, len(SEVERITY)), SEVERITY[step.operation.verb])
    return tuple(
        sorted(
            listed,
            key=lambda step: (
                severity[step.part],
                natural(step.part),
                SEVERITY[step.operation.verb],
                kinds[step.operation.id.kind],
                natural(str(step.operation.id)),
            ),
        )
    )


def in_order(roots: Iterable[RootReport]) -> Iterator[RootReport]:
    """The roots, the most severe first; a nested root follows the root that it is a part of."""
    ordered = sorted(roots, key=root_order)
    names = {root.root for root in ordered}
    nested: dict[ResourceId, list[RootReport]] = {}
    for root in ordered:
        if root.parent in names:
            nested.setdefault(root.parent, []).append(root)
    for root in ordered:
        if root.parent not in names:
            yield root
            yield from nested.get(root.root, ())


def root_order(root: RootReport) -> tuple[object, ...]:
    """Sort key of roots: refusals first, then errors and problems, deletes, what is blocked, the most severe operation, and the name."""
    severity = min((SEVERITY[step.operation.verb] for step in root.steps), default=len(SEVERITY))
    deletes = severity == SEVERITY[Verb.DELETE]
    return not root.objections, not root.error, not root.problems, not deletes, not root.blocked, severity, natural(str(root.root))


def natural(text: str) -> tuple[tuple[int, int, str], ...]:
    """A sort key that puts `x-2` before `x-10`."""
    return tuple((0, int(piece), "") if piece.isdecimal() else (1, 0, piece) for piece in re.split(r"([0-9]+)", text) if piece)


def reported_once(plans: Iterable[Plan]) -> list[Plan]:
    """The plans, with the creation of a shared object only in the first one that has it, and a note in the others (N28).

    Whichever root creates the object when the plans are applied, the others find it and add themselves as owners.
    """
    creators: dict[ResourceId, ResourceId] = {}
    return [_without_known_creates(plan, creators) for plan in plans]


def _without_known_creates(plan: Plan, creators: dict[ResourceId, ResourceId]) -> Plan:
    """The plan without the creates of objects in `creators` (object -> the root that creates it), which gets those of this plan."""
    shared = [operation for operation in plan.operations if isinstance(operation, Create) and is_shared(operation)]
    joins = [operation for operation in shared if creators.setdefault(operation.id, plan.root) != plan.root]
    if not joins:
        return plan
    keys = frozenset(operation.key for operation in joins)
    left = (operation for operation in plan.operations if operation.key not in keys)
    notes = (f"joins {operation.id.kind} {operation.id.name}, which {_name(creators[operation.id])} creates" for operation in joins)
    operations = tuple(replace(each, after=each.after - keys) if each.after & keys else each for each in left)
    return replace(plan, operations=operations, notes=(*plan.notes, *notes))


def _name(root: ResourceId) -> str:
    return f"{root.kind} {root.name}"


COMMENT: Final = 65_000
"""Bytes of a comment: GitHub's limit is 65,536 characters."""
SUMMARY: Final = 1_000_000
"""Bytes of a job's summary: GitHub's limit is 1 MiB."""
SMALLEST: Final = 16_000
"""Bytes in which the heading, the totals and 20 blockers always fit."""
LINK: Final = re.compile(r"https?://[A-Za-z0-9._~:/?#\[\]@!$&'*+,;=%-]{1,2000}")
"""Addresses that a report may link to."""
TITLE: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9 ._/:]|-(?!-)){0,99}")
"""A title by which a comment is found again: what HTML comments may contain."""


class FileLine(Struct, frozen=True):
    """A line of a file."""

    file: str
    """Relative to the root of the repository, if it is in one."""
    line: int = 1
