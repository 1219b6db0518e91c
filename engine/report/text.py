"""A report as text: bounded in size, worst first, each operation with its mark, its reason and its fields."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from engine.ids import ResourceId
from engine.operation import Cause
from engine.paths import spell
from engine.plan import Wait
from engine.report.alike import held_alike, spread, steps_alike
from engine.report.fields import lines_of, sides
from engine.report.line import Line
from engine.report.model import Report, RootReport, Step
from engine.report.printable import clipped, printable
from engine.verb import Verb

MARKS: Mapping[str, str] = {
    Verb.CREATE: "+",
    Verb.PATCH: "~",
    Verb.STATUS: "~",
    Verb.DELETE: "-",
    Verb.REPLACE: "±",
    Verb.RELEASE: "⊘",
    "held": "?",
}
LISTED = 40
"""A root with more operations than this is told in patterns."""
ROWS = 400
"""What a report may hold in all before it says how much is left."""
FIELDS = 12
"""Changed fields shown of one operation."""
REASON = 200
PROBLEM = 400
NAME = 44


def text(report: Report, *, verbose: bool = False) -> Iterator[Line]:
    """The report in lines. `verbose` lists everything, however much it is."""
    yield from refusals(report)
    left = ROWS
    loud = [account for account in report.accounts if not account.silent]
    for shown, account in enumerate(loud):
        if left <= 0 and not verbose:
            yield Line(f"… and {len(loud) - shown} more workloads; -v shows all", "faint")
            break
        lines = list(account_lines(account, verbose))
        yield from lines if verbose else cut(lines, left)
        left -= len(lines)
    yield summary(report)


def cut(lines: Sequence[Line], room: int) -> Iterator[Line]:
    """As many of the lines as there is room for, and how many were left out."""
    yield from lines[:room]
    if len(lines) > room:
        yield Line(f"  … {len(lines) - room} more lines; -v shows all", "faint")


def refusals(report: Report) -> Iterator[Line]:
    """What stands against the pass as a whole."""
    for objection in report.objections:
        yield Line(f"denied by {objection.rule}: {printable(objection.message)}", "bad")
    for kind, why in report.incomplete.items():
        yield Line(f"incomplete: not every {kind} could be seen ({clipped(why, REASON)}); none of them is deleted", "bad")


def account_lines(account: RootReport, verbose: bool) -> Iterator[Line]:
    """One root: what stands against it, what would be done, what is held, and what it waits for."""
    yield Line(printable(str(account.root)), "head")
    for objection in account.objections:
        yield Line(f"  denied by {objection.rule}: {printable(objection.message)}", "bad")
    for problem in account.problems:
        yield Line(f"  problem: {clipped(problem, PROBLEM)}", "bad")
    for note in account.notes:
        yield Line(f"  note: {printable(note)}", "faint")
    brief = len(account.steps) > LISTED and not verbose
    yield from in_patterns(account) if brief else in_parts(account)
    yield from delayed(account.root, account.deferred, verbose, f"{MARKS['held']} held", "held")
    yield from delayed(account.root, account.pending, verbose, "· waits", "faint")


def in_parts(account: RootReport) -> Iterator[Line]:
    """Every operation, under the part of the root that it belongs to."""
    parts = {step.part for step in account.steps}
    for part, steps in groupby(account.steps, key=lambda step: step.part):
        listed = list(steps)
        if part and len(parts) > 1:
            yield Line(f"  {printable(part)}", "head")
        width = column(step_name(account.root, step) for step in listed)
        for step in listed:
            yield from step_lines(step, step_name(account.root, step), width, step.operation.why)


def in_patterns(account: RootReport) -> Iterator[Line]:
    """Operations that are alike told once, the worst first."""
    groups = steps_alike(account.steps)
    named = [(group, group_name(account.root, [step.operation.id for step in group])) for group in groups]
    width = column(name for _, name in named)
    for group, name in named:
        yield from step_lines(group[0], name, width, spread(step.operation.why for step in group), alike=len(group) > 1)


def step_lines(step: Step, name: str, width: int, why: str, *, alike: bool = False) -> Iterator[Line]:
    """An operation, or one for many alike, with its reason, and the fields that change."""
    operation = step.operation
    cause = "drift" if operation.cause is Cause.DRIFT else "intent"
    unintended = "" if operation.intended else ", nobody intended for it"
    head = f"  {MARKS[operation.verb]} {operation.verb:<8} {name:<{width}}  {clipped(why, REASON)} ({cause}{unintended})"
    yield Line(head, operation.verb)
    if operation.verb is Verb.RELEASE:
        yield Line(f"      finalizers: {clipped(', '.join(operation.body.get('finalizers', ())), REASON)}", "faint")
    changes = lines_of(operation)
    if changes and alike:
        yield Line(f"      e.g. {printable(operation.id.name)}", "faint")
    for change in changes[:FIELDS]:
        yield Line(f"      {printable(spell(change.path))}: {' → '.join(sides(change))}")
    if len(changes) > FIELDS:
        yield Line(f"      … {len(changes) - FIELDS} more fields; -o json has them all", "faint")


def delayed(root: ResourceId, listed: Sequence[Wait], verbose: bool, label: str, tone: str) -> Iterator[Line]:
    """What is not done now or not there yet, with its reason and until when."""
    groups: list[tuple[Wait, ...]] = [(held,) for held in listed] if verbose else held_alike(listed)
    names = [group_name(root, [held.id for held in group]) for group in groups]
    width = column(names)
    for group, name in zip(groups, names, strict=True):
        why = clipped(spread(held.why for held in group), REASON)
        until = min((held.until for held in group if held.until), default=None)
        yield Line(f"  {label:<10} {name:<{width}}  {why}{f' (until {until:%Y-%m-%dT%H:%M:%SZ})' if until else ''}", tone)


def step_name(root: ResourceId, step: Step) -> str:
    """The object of a step, without the namespace that its root is in."""
    return short(root, step.operation.id)


def short(root: ResourceId | None, id: ResourceId) -> str:
    """An identity as a reader within that root needs it."""
    within = root is not None and id.namespace == root.namespace
    return printable(f"{id.kind}/{id.name}" if within or not id.namespace else str(id))


def group_name(root: ResourceId | None, ids: Sequence[ResourceId]) -> str:
    """One name for many alike, and how many they are."""
    if len(ids) == 1:
        return short(root, ids[0])
    return f"{short(root, ids[0]._replace(name=spread(id.name for id in ids)))} ×{len(ids)}"


def column(names: Iterable[str]) -> int:
    """How wide a column of names is: all of them, unless some are very long."""
    return min(max((len(name) for name in names), default=0), NAME)


def summary(report: Report) -> Line:
    """The whole in one line."""
    counted = [f"{count} to {VERBS[verb]}" for verb, count in report.counts.items() if count]
    others = [f"{count} {word}" for count, word in ((report.deferred, "held"), (report.pending, "waiting for the cluster")) if count]
    told = "; ".join(filter(None, (", ".join(counted), *others)))
    return Line(f"{'Plan' if counted else 'No operations'}{': ' if told else ''}{told}.", "head")


VERBS: Mapping[Verb, str] = {
    Verb.CREATE: "create",
    Verb.PATCH: "patch",
    Verb.REPLACE: "replace",
    Verb.RELEASE: "release",
    Verb.DELETE: "delete",
    Verb.STATUS: "update in status",
}
