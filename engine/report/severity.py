"""Severity: what keeps a plan from success, and the order of workloads in documents for reviewers, the worst first."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from enum import StrEnum
from functools import partial
from operator import attrgetter

from msgspec import Struct

from engine.forecast.cluster_model import Level
from engine.forecast.forecast import End
from engine.ids import ResourceId
from engine.plan import Wait
from engine.report.alike import spread, unlisted_by_cause, waits_alike
from engine.report.meaning import advice
from engine.report.model import SEVERITY, Report, RootReport, unreported
from engine.report.text import group_name


class ImpedimentKind(StrEnum):
    """Why a plan is not carried out, or a workload is not available. In this order they are reported."""

    DENIED = "denied"
    """A guard or a policy refuses it."""
    FAILED = "failed"
    """A defect of the engine keeps it from being planned."""
    FAULT = "fault"
    """What the user asked for is wrong."""
    INCOMPLETE = "incomplete"
    """Not everything could be listed."""
    BLOCKED = "blocked"
    """A user or another controller has to act first."""
    REPEATING = "repeating"
    """It would be changed again and again, without an end."""
    STUCK = "stuck"
    """At the end of the forecast it waits for something that never happens."""
    BELOW_MINIMUM = "below minimum"
    """For a time fewer members are ready than it needs."""


class Impediment(Struct, frozen=True):
    """One impediment."""

    kind: ImpedimentKind
    message: str
    root: ResourceId | None = None
    """The root that it is about; None: the plan as a whole."""
    rule: str = ""
    """The guard or the rule of a policy that refuses; empty for other impediments."""


def impediments_of(report: Report) -> list[Impediment]:
    """Every impediment, the worst first."""
    unsettled = unsettled_roots(report)
    return [
        *_denied(report),
        *(Impediment(ImpedimentKind.FAILED, root.error, root.root) for root in report.roots if root.error),
        *(Impediment(ImpedimentKind.FAULT, problem, root.root) for root in report.roots for problem in root.problems),
        *(
            Impediment(ImpedimentKind.INCOMPLETE, f"{kinds} objects could not be listed completely ({why}); none of them is deleted")
            for kinds, why in unlisted_by_cause(report.incomplete).items()
        ),
        *(blocker for root in report.roots for blocker in _waiting(ImpedimentKind.BLOCKED, root, root.blocked)),
        *(
            Impediment(ImpedimentKind.REPEATING, "the same operations would follow again and again", root.root)
            for root in unsettled
            if end_of(report, root) is End.REPEATS
        ),
        *(
            blocker
            for root in unsettled
            for blocker in _waiting(ImpedimentKind.STUCK, root, left_of(report, root), partial(_advice, report, root.root))
        ),
        *(
            Impediment(ImpedimentKind.BELOW_MINIMUM, f"{level.id.name}: {level_text(level)}", root.root)
            for root in report.roots
            for level in levels_of(report, root)
            if level.falls_below
        ),
    ]


def _denied(report: Report) -> Iterator[Impediment]:
    yield from (Impediment(ImpedimentKind.DENIED, objection.message, rule=objection.rule) for objection in report.objections)
    for violation in report.judgement.denied:
        yield Impediment(ImpedimentKind.DENIED, violation.message, violation.about, violation.rule)
    for root in report.roots:
        yield from (Impediment(ImpedimentKind.DENIED, objection.message, root.root, objection.rule) for objection in root.objections)


def _waiting(
    kind: ImpedimentKind, root: RootReport, waits: Iterable[Wait], to_do: Callable[[Wait], str] = attrgetter("remedy")
) -> Iterator[Impediment]:
    for group in waits_alike(waits):
        name, text = group_name(root.root, [wait.id for wait in group]), to_do(group[0])
        yield Impediment(kind, f"{name}: {spread(wait.why for wait in group)}{f'; do: {text}' if text else ''}", root.root)


def _advice(report: Report, root: ResourceId, wait: Wait) -> str:
    return advice(wait, report.forecast, root) if report.forecast is not None else ""


def unsettled_roots(report: Report) -> list[RootReport]:
    """The roots that would not settle."""
    ids = frozenset(report.unsettled)
    return [root for root in report.roots if root.root in ids]


def left_of(report: Report, root: RootReport) -> tuple[Wait, ...]:
    """What is left of a root at the end of a forecast that stays stuck, unless it is blocked already."""
    forecast = report.forecast
    plan = forecast.plans.get(root.root) if forecast else None
    if forecast is None or plan is None or forecast.end_of(root.root) is not End.STUCK:
        return ()
    return tuple(unreported((*plan.blocked, *plan.later, *plan.pending), root.blocked))


def levels_of(report: Report, root: RootReport) -> Sequence[Level]:
    """The members of a root that lose readiness on the way, the worst first."""
    effects = report.forecast.effects.get(root.root) if report.forecast else None
    return effects.levels if effects else ()


def level_text(level: Level) -> str:
    """`1 of 2 pods ready, minimum 1`."""
    return f"{level.lowest} of {level.before} {level.unit} ready, minimum {level.minimum}"


def end_of(report: Report, root: RootReport) -> End | None:
    """How the forecast ends for a root; None without a forecast."""
    return report.forecast.end_of(root.root) if report.forecast else None


def worst_first(report: Report) -> list[RootReport]:
    """The roots with something to report, the worst first."""
    reported = [root for root in report.roots if not root.silent]
    unsettled = frozenset(report.unsettled)
    return sorted(reported, key=lambda root: _rank(report, root, unsettled))


def _rank(report: Report, root: RootReport, unsettled: Collection[ResourceId]) -> tuple[bool | int, ...]:
    """Sort key of roots; those that are equal keep their order."""
    return (
        not (root.objections or any(violation.about == root.root for violation in report.judgement.denied)),
        not (root.error or root.problems),
        not root.blocked,
        root.root not in unsettled,
        not any(level.falls_below for level in levels_of(report, root)),
        min((SEVERITY[step.operation.verb] for step in root.steps), default=len(SEVERITY)),
    )


def root_name(id: ResourceId) -> str:
    """`namespace/name`, or the name alone of what has no namespace."""
    return f"{id.namespace}/{id.name}" if id.namespace else id.name
