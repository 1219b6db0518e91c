"""A report as text, bounded in size: for each root what happens to it, the most severe first; on demand every operation; refusals."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final

from engine.focus import Others
from engine.forecast.forecast import Forecast
from engine.ids import ResourceId
from engine.operation import Cause, Release, WriteStatus
from engine.plan import Enforcement, Judgement, Objection, Violation, Wait
from engine.report.alike import shared_reason, spread, unlisted_by_cause, waits_with_one_reason
from engine.report.fields import field_text, shown_fields
from engine.report.forecast_text import conclusion, forecast_lines, has_effect, room_lines, total_text
from engine.report.meaning import headline, listed, meanings
from engine.report.model import NEW_ROOT, Report, RootReport, Step, unreported
from engine.report.printable import TO_DO, Line, clipped, counted, printable, totals
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
MEANINGS = 20
"""Maximum number of changes of the next pass that are shown of one root."""
ROWS = 400
"""Maximum number of lines of a report; a last line counts those left out."""
COLUMNS = 100
"""Where a line of the next pass is broken, between a changed field and the objects that it is in."""
FIELDS = 12
"""Maximum number of changed fields shown for one operation."""
REASON = 200
"""Maximum number of characters shown of a reason."""
PROBLEM = 2000
"""Maximum number of characters shown of a problem, and of the reason why an object is blocked: it ends with what to do."""
NAME = 44
"""Maximum width of the column of names."""


def text(report: Report, *, verbose: bool = False) -> Iterator[Line]:
    """The lines of the report, without line ends. With `verbose` nothing is grouped or cut."""
    yield from refusals(report, verbose=verbose)
    room = ROWS
    reported = [root for root in report.roots if verbose and not root.silent or is_worth_telling(root, report.forecast)]
    twins = Counter((root.root.namespace, root.root.name) for root in reported)
    for index, root in enumerate(reported):
        if room <= 0 and not verbose:
            yield Line(f"… and {len(reported) - index} more workloads; -v shows all", "faint")
            break
        is_ambiguous = twins[root.root.namespace, root.root.name] > 1
        lines = list(root_lines(root, report.forecast, verbose=verbose, with_kind=is_ambiguous))
        yield from lines if verbose else cut(lines, room)
        room -= len(lines)
    yield from summary(report, verbose=verbose)
    if report.forecast is not None:
        yield from conclusion(report.forecast)
    yield from others_lines(report.others)


def remark_lines(report: Report, *, verbose: bool = False) -> Iterator[Line]:
    """The obstacles of the plan, without the plan: for each root that is changed or blocked its notes, and what blocks it, now or later.

    And what could not be read, or may not fit. Unless `verbose`, there are at most `ROWS` lines, and one that counts the others.
    """
    lines: list[Line] = []
    for root in report.roots:
        blocked = (*root.blocked, *blocked_later(root, report.forecast))
        if blocked or any(not isinstance(step.operation, WriteStatus) for step in root.steps):
            remarks = [*note_lines(root, verbose=verbose), *wait_lines(root.root, blocked, verbose, "blocked", "blocked")]
            lines += [Line(f"{name_of(root.root, with_kind=True)}:", "head"), *remarks] if remarks else ()
    yield from incomplete_lines(report)
    yield from lines if verbose else cut(lines, ROWS)
    if report.forecast is not None:
        yield from room_lines(report.forecast)


def others_lines(others: Others) -> Iterator[Line]:
    """How many workloads outside the scope of the command have changes, if any have."""
    if count := len(others.roots):
        hint = f"; {others.shown_by} shows {'it' if count == 1 else 'them'}" if others.shown_by else ""
        yield Line(f"{count} other workload{' has' if count == 1 else 's have'} changes{hint}", "faint")


def is_worth_telling(root: RootReport, forecast: Forecast | None) -> bool:
    """Whether there is more to tell than statuses that are updated."""
    has_operations = any(not isinstance(step.operation, WriteStatus) for step in root.steps)
    reported = (root.later, root.blocked, root.pending, root.objections, root.problems, root.notes, root.error)
    return has_operations or any(reported) or (forecast is not None and has_effect(forecast, root))


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
    yield from incomplete_lines(report)


def incomplete_lines(report: Report) -> Iterator[Line]:
    """The kinds that could not be listed."""
    for kinds, why in unlisted_by_cause(report.incomplete).items():
        yield Line(f"incomplete: {kinds} objects could not be listed completely ({clipped(why, PROBLEM)}); none of them is deleted", "bad")


def root_lines(root: RootReport, forecast: Forecast | None, *, verbose: bool, with_kind: bool = False) -> Iterator[Line]:
    """One root: what happens to it, what is wrong, the whole effect, what is not done now, and with `verbose` every operation."""
    yield Line(f"{name_of(root.root, with_kind=with_kind)}: {headline(root, forecast)}{part_of(root)}", "head")
    yield from fault_lines(root, verbose=verbose)
    yield from wait_lines(root.root, (*root.blocked, *blocked_later(root, forecast)), verbose, "blocked", "blocked")
    yield from now_lines(root, forecast)
    if forecast is not None:
        yield from forecast_lines(forecast, root, verbose=verbose)
    yield from wait_lines(root.root, root.later, verbose, "later", "later")
    reported = {(wait.id, wait.why) for wait in root.later}
    yield from wait_lines(root.root, [wait for wait in root.pending if (wait.id, wait.why) not in reported], verbose, "pending", "faint")
    if verbose:
        yield from in_parts(root)


def name_of(root: ResourceId, *, with_kind: bool) -> str:
    """`namespace/name`, with the kind in front where another root has the same name or none has a namespace, and of what is no workload."""
    if with_kind or not root.namespace or not root.group:
        return printable(str(root))
    return printable(f"{root.namespace}/{root.name}")


def blocked_later(root: RootReport, forecast: Forecast | None) -> Iterator[Wait]:
    """What blocks the root at the end of the forecast, and not yet in the next pass."""
    plan = forecast.plans.get(root.root) if forecast is not None else None
    yield from unreported(plan.blocked if plan is not None else (), root.blocked)


def part_of(root: RootReport) -> str:
    """The root that it is a part of."""
    return printable(f" (part of {root.parent})") if root.parent else ""


def fault_lines(root: RootReport, *, verbose: bool) -> Iterator[Line]:
    """Objections, errors, problems and notes."""
    for objection in root.objections:
        yield Line(f"  {objection_text(objection)}", "bad")
    if root.error:
        yield Line(f"  {clipped(root.error, PROBLEM)}", "bad")
    for problem in root.problems:
        yield Line(f"  problem: {clipped(problem, PROBLEM)}", "bad")
    yield from note_lines(root, verbose=verbose)


def note_lines(root: RootReport, *, verbose: bool) -> Iterator[Line]:
    """The notes; that of new roots, about names of single objects, only with `verbose`."""
    for note in root.notes:
        if verbose or note != NEW_ROOT:
            yield Line(f"  note: {printable(note)}", "faint")


def now_lines(root: RootReport, forecast: Forecast | None) -> Iterator[Line]:
    """The next pass: a line for each change of meaning, however many objects have it."""
    following = tuple(forecast.operations_of(root.root)) if forecast is not None else ()
    changes = meanings(root.steps, following)
    for number, each in enumerate(changes[:MEANINGS]):
        head = f"  {'now' if number == 0 else '':<8} {MARKS[each.verb]} {each.text}"
        tail = f"{each.places}   {each.reason}".lstrip()
        if each.places and len(head) + len(tail) > COLUMNS:
            yield Line(head, each.verb)
            yield Line(f"{'':<13}{tail}", each.verb)
        else:
            yield Line(f"{head}{' ' if each.places else '   '}{tail}", each.verb)
    if len(changes) > MEANINGS:
        yield Line(f"           … {len(changes) - MEANINGS} more changes; -v shows all", "faint")


def in_parts(root: RootReport) -> Iterator[Line]:
    """Every operation, under the part of the root that it belongs to."""
    parts = {step.part for step in root.steps}
    for part, steps in groupby(root.steps, key=lambda step: step.part):
        listed = list(steps)
        if part and len(parts) > 1:
            yield Line(f"  {printable(part)}", "head")
        width = column_width(step_name(root.root, step) for step in listed)
        for step in listed:
            yield from step_lines(step, step_name(root.root, step), width)


def step_lines(step: Step, name: str, width: int) -> Iterator[Line]:
    """An operation with its reason and changed fields."""
    operation = step.operation
    cause = "drift" if operation.cause is Cause.DRIFT else operation.cause
    unintended = "" if operation.intended else ", unintended"
    head = f"  {MARKS[operation.verb]} {operation.verb:<8} {name:<{width}}  {operation.reason}: {clipped(operation.why, REASON)}"
    yield Line(f"{head} ({cause}{unintended})", operation.verb)
    if isinstance(operation, Release):
        yield Line(f"      finalizers: {clipped(', '.join(operation.finalizers), REASON)}", "faint")
    changes = shown_fields(operation)
    for change in changes[:FIELDS]:
        yield Line(f"      {field_text(change)}")
    if len(changes) > FIELDS:
        yield Line(f"      … {len(changes) - FIELDS} more fields; -o json has them all", "faint")


def wait_lines(root: ResourceId, waits: Sequence[Wait], verbose: bool, word: str, tone: str) -> Iterator[Line]:
    """Deferred or pending objects, with the reason and the time at which the wait ends. `word` is `later`, `blocked` or `pending`.

    Unless `verbose`, objects with similar reasons share a line.
    """
    groups: list[tuple[Wait, ...]] = [(wait,) for wait in waits] if verbose else waits_with_one_reason(waits)
    names = [names_of(root, [wait.id for wait in group]) for group in groups]
    width = column_width(names)
    limit = PROBLEM if word == "blocked" else REASON
    for group, name in zip(groups, names, strict=True):
        why = clipped(shared_reason(group), limit)
        until = min((wait.until for wait in group if wait.until), default=None)
        end = f" (until {until:%Y-%m-%dT%H:%M:%SZ})" if until else ""
        code = f"{group[0].reason}: " if group[0].reason else ""
        remedy = f"; do: {printable(group[0].remedy)}" if group[0].remedy else ""
        yield Line(f"  {MARKS[word]} {word:<8} {name:<{width}}  {code}{why}{remedy}{end}", tone)


def names_of(root: ResourceId | None, ids: Sequence[ResourceId]) -> str:
    """The object, or the objects by kind."""
    return short_name(root, ids[0]) if len(ids) == 1 else listed(ids)


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


def summary(report: Report, *, verbose: bool = False) -> Iterator[Line]:
    """The totals of all passes, or of the next one without a forecast, and what is not done; the number of statuses of the next pass."""
    forecast = total_text(report.forecast) if report.forecast is not None else ""
    operations = forecast or totals(report.counts, TO_DO)
    # What a later pass does is among the operations of a forecast.
    later = 0 if forecast else report.later
    waits = [f"{count} {word}" for count, word in ((later, "later"), (report.blocked, "blocked"), (report.pending, "pending")) if count]
    counts = "; ".join(filter(None, (operations, ", ".join(waits))))
    yield Line(printable(f"{'Plan' if operations else 'No changes'}{': ' if counts else ''}{counts}."), "head")
    if statuses := report.counts[Verb.STATUS]:
        more = "" if verbose else f"; -v shows {'it' if statuses == 1 else 'them'}"
        yield Line(f"Besides, {counted(statuses, 'status')} {'is' if statuses == 1 else 'are'} brought up to date{more}.", "faint")


MOST: Final = 40
"""The most violations of each kind that are shown; with `verbose` all are."""
LONGEST_NAME: Final = 200
"""The most characters of the name of a rule or an object."""
MESSAGE: Final = 400
"""The most characters of a message, and of the reason of a waiver."""


def judgement_lines(judgement: Judgement, *, verbose: bool = False) -> Iterator[Line]:
    """A line for each violation that is reported, those that deny first, and for each rule that was not applied."""
    yield from _bounded((Line(violation_text("denied by", each), "bad") for each in judgement.denied), verbose)
    yield from _bounded((Line(violation_text("warned by", each), "blocked") for each in judgement.warned), verbose)
    waived = (each for each in judgement.waived if each.enforcement is not Enforcement.AUDIT)
    yield from _bounded((Line(waiver_text(each), "faint") for each in waived), verbose)
    yield from _bounded((Line(f"note: {clipped(note, MESSAGE)}", "faint") for note in judgement.notes), verbose)


def violation_text(what: str, violation: Violation) -> str:
    """One violation: `denied by prod/restarts: …`, with the root that it is about."""
    about = f" ({clipped(str(violation.about), LONGEST_NAME)})" if violation.about else ""
    return f"{what} {clipped(violation.rule, LONGEST_NAME)}{about}: {clipped(violation.message, MESSAGE)}"


def waiver_text(violation: Violation) -> str:
    """A waived violation and the reason: `waived prod/restarts: … (reason: …)`."""
    return f"{violation_text('waived', violation)} (reason: {clipped(violation.waived, MESSAGE)})"


def _bounded(lines: Iterable[Line], verbose: bool) -> Iterator[Line]:
    listed = list(lines)
    yield from listed if verbose else listed[:MOST]
    if len(listed) > MOST and not verbose:
        yield Line(f"… and {len(listed) - MOST} more like these; -v shows all", "faint")


def objection_text(objection: Objection) -> str:
    """A guard's refusal: `denied by delete-budget: …`."""
    return f"denied by {objection.rule}: {clipped(objection.message, MESSAGE)}"
