"""A report as text: bounded in size, the most severe first, each operation with its mark, reason and changed fields."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from engine.focus import Others
from engine.ids import ResourceId
from engine.operation import Cause
from engine.paths import spell
from engine.plan import Wait
from engine.report.alike import spread, steps_alike, waits_alike
from engine.report.fields import changed_fields, sides
from engine.report.forecast_text import conclusion, forecast_lines
from engine.report.line import Line
from engine.report.model import Report, RootReport, Step
from engine.report.printable import clipped, printable
from engine.report.refusals import judgement_lines, objection_text
from engine.verb import Verb

MARKS: Mapping[str, str] = {
    Verb.CREATE: "+",
    Verb.PATCH: "~",
    Verb.SCALE: "~",
    Verb.STATUS: "~",
    Verb.DELETE: "-",
    Verb.REPLACE: "±",
    Verb.RELEASE: "⊘",
    "later": "?",
    "blocked": "!",
    "pending": "·",
}
LISTED = 40
"""If a root has more operations than this, they are grouped by pattern."""
ROWS = 400
"""Maximum number of lines of a report; a last line counts those left out."""
FIELDS = 12
"""Maximum number of changed fields shown for one operation."""
REASON = 200
"""Maximum number of characters shown of a reason."""
PROBLEM = 400
"""Maximum number of characters shown of a problem, and of the reason why an object is blocked: it ends with what to do."""
NAME = 44
"""Maximum width of the column of names."""


def text(report: Report, *, verbose: bool = False) -> Iterator[Line]:
    """The lines of the report, without line ends. With `verbose` nothing is grouped or cut."""
    yield from refusals(report, verbose=verbose)
    room = ROWS
    reported = [root for root in report.roots if not root.silent]
    for index, root in enumerate(reported):
        if room <= 0 and not verbose:
            yield Line(f"… and {len(reported) - index} more workloads; -v shows all", "faint")
            break
        lines = list(root_lines(root, verbose))
        if report.forecast is not None:
            lines += forecast_lines(report.forecast, root, verbose=verbose)
        yield from lines if verbose else cut(lines, room)
        room -= len(lines)
    yield summary(report)
    if report.forecast is not None:
        yield from conclusion(report.forecast)
    yield from others_lines(report.others)


def others_lines(others: Others) -> Iterator[Line]:
    """How many workloads outside the scope of the command have changes, if any have."""
    if count := len(others.roots):
        hint = f"; {others.shown_by} shows {'it' if count == 1 else 'them'}" if others.shown_by else ""
        yield Line(f"{count} other workload{' has' if count == 1 else 's have'} changes{hint}", "faint")


def cut(lines: Sequence[Line], room: int) -> Iterator[Line]:
    """At most `room` of the lines, then how many more there are."""
    yield from lines[:room]
    if len(lines) > room:
        yield Line(f"  … {len(lines) - room} more lines; -v shows all", "faint")


def refusals(report: Report, *, verbose: bool = False) -> Iterator[Line]:
    """The objections against the whole pass, what policies say, and the kinds that could not be listed."""
    for objection in report.objections:
        yield Line(objection_text(objection), "bad")
    yield from judgement_lines(report.judgement, verbose=verbose)
    for kind, why in report.incomplete.items():
        yield Line(f"incomplete: {kind} objects could not be listed completely ({clipped(why, REASON)}); none of them is deleted", "bad")


def root_lines(root: RootReport, verbose: bool) -> Iterator[Line]:
    """One root: objections, problems and notes, then operations, then what is deferred or pending."""
    part = f" (part of {root.parent})" if root.parent else ""
    yield Line(printable(f"{root.root}{part}"), "head")
    for objection in root.objections:
        yield Line(f"  {objection_text(objection)}", "bad")
    if root.error:
        yield Line(f"  {clipped(root.error, PROBLEM)}", "bad")
    for problem in root.problems:
        yield Line(f"  problem: {clipped(problem, PROBLEM)}", "bad")
    for note in root.notes:
        yield Line(f"  note: {printable(note)}", "faint")
    brief = len(root.steps) > LISTED and not verbose
    yield from in_patterns(root) if brief else in_parts(root)
    yield from wait_lines(root.root, root.later, verbose, "later", "later")
    yield from wait_lines(root.root, root.blocked, verbose, "blocked", "blocked")
    yield from wait_lines(root.root, root.pending, verbose, "pending", "faint")


def in_parts(root: RootReport) -> Iterator[Line]:
    """Every operation, under the part of the root that it belongs to."""
    parts = {step.part for step in root.steps}
    for part, steps in groupby(root.steps, key=lambda step: step.part):
        listed = list(steps)
        if part and len(parts) > 1:
            yield Line(f"  {printable(part)}", "head")
        width = column_width(step_name(root.root, step) for step in listed)
        for step in listed:
            yield from step_lines(step, step_name(root.root, step), width, step.operation.why)


def in_patterns(root: RootReport) -> Iterator[Line]:
    """One entry for each group of operations that are alike, the most severe first."""
    groups = steps_alike(root.steps)
    named = [(group, group_name(root.root, [step.operation.id for step in group])) for group in groups]
    width = column_width(name for _, name in named)
    for group, name in named:
        yield from step_lines(group[0], name, width, spread(step.operation.why for step in group), alike=len(group) > 1)


def step_lines(step: Step, name: str, width: int, why: str, *, alike: bool = False) -> Iterator[Line]:
    """An operation with its reason and changed fields. `alike`: it stands for a group, whose names and reasons are in `name` and `why`."""
    operation = step.operation
    cause = "drift" if operation.cause is Cause.DRIFT else "intent"
    unintended = "" if operation.intended else ", unintended"
    head = f"  {MARKS[operation.verb]} {operation.verb:<8} {name:<{width}}  {clipped(why, REASON)} ({cause}{unintended})"
    yield Line(head, operation.verb)
    if operation.verb is Verb.RELEASE:
        yield Line(f"      finalizers: {clipped(', '.join(operation.body.get('finalizers', ())), REASON)}", "faint")
    changes = changed_fields(operation)
    if changes and alike:
        yield Line(f"      e.g. {printable(operation.id.name)}", "faint")
    for change in changes[:FIELDS]:
        yield Line(f"      {printable(spell(change.path))}: {' → '.join(sides(change))}")
    if len(changes) > FIELDS:
        yield Line(f"      … {len(changes) - FIELDS} more fields; -o json has them all", "faint")


def wait_lines(root: ResourceId, waits: Sequence[Wait], verbose: bool, word: str, tone: str) -> Iterator[Line]:
    """Deferred or pending objects, with the reason and the time at which the wait ends. `word` is `later`, `blocked` or `pending`."""
    groups: list[tuple[Wait, ...]] = [(wait,) for wait in waits] if verbose else waits_alike(waits)
    names = [group_name(root, [wait.id for wait in group]) for group in groups]
    width = column_width(names)
    limit = PROBLEM if word == "blocked" else REASON
    for group, name in zip(groups, names, strict=True):
        why = clipped(spread(wait.why for wait in group), limit)
        until = min((wait.until for wait in group if wait.until), default=None)
        end = f" (until {until:%Y-%m-%dT%H:%M:%SZ})" if until else ""
        yield Line(f"  {MARKS[word]} {word:<8} {name:<{width}}  {why}{end}", tone)


def step_name(root: ResourceId, step: Step) -> str:
    """The object of a step, without the namespace of its root."""
    return short_name(root, step.operation.id)


def short_name(root: ResourceId | None, id: ResourceId) -> str:
    """`Kind/name`, with the namespace if it is not that of the root."""
    within = root is not None and id.namespace == root.namespace
    return printable(f"{id.kind}/{id.name}" if within or not id.namespace else str(id))


def group_name(root: ResourceId | None, ids: Sequence[ResourceId]) -> str:
    """One name for a group of objects that are alike, with their number."""
    if len(ids) == 1:
        return short_name(root, ids[0])
    return f"{short_name(root, ids[0]._replace(name=spread(id.name for id in ids)))} ×{len(ids)}"


def column_width(names: Iterable[str]) -> int:
    """The width of a column of names: the longest one, at most `NAME`."""
    return min(max((len(name) for name in names), default=0), NAME)


def summary(report: Report) -> Line:
    """The totals in one line."""
    operations = [f"{count} to {VERB_PHRASES[verb]}" for verb, count in report.counts.items() if count]
    waits = [
        f"{count} {word}" for count, word in ((report.later, "later"), (report.blocked, "blocked"), (report.pending, "pending")) if count
    ]
    totals = "; ".join(filter(None, (", ".join(operations), ", ".join(waits))))
    return Line(f"{'Plan' if operations else 'No operations'}{': ' if totals else ''}{totals}.", "head")


VERB_PHRASES: Mapping[Verb, str] = {
    Verb.CREATE: "create",
    Verb.PATCH: "patch",
    Verb.SCALE: "scale",
    Verb.REPLACE: "replace",
    Verb.RELEASE: "release",
    Verb.DELETE: "delete",
    Verb.STATUS: "update in status",
}
