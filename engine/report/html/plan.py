"""A report as HTML: for each root its operations by verb, what is deferred or pending, and why; bounded in size, the most severe first."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from engine.forecast.forecast import Forecast
from engine.operation import Cause, Operation, Release, WriteStatus
from engine.plan import Objection, Wait
from engine.report.alike import spread, steps_alike, waits_alike
from engine.report.html.decisions import decision_table, decisions
from engine.report.html.drawing import drawing
from engine.report.html.elements import Content, Markup, code, element, folded, items, table, text_block
from engine.report.html.forecast import assumptions, forecast_lead, forecast_levels, forecast_stages, forecast_total
from engine.report.model import SEVERITY, Report, RootReport, Step
from engine.report.printable import clipped
from engine.report.severity import worst_first
from engine.report.shareable import manifest_lines, published_fields, published_manifest
from engine.report.text import MARKS, group_name, judgement_lines, others_lines
from engine.verb import Verb

MAX_ROOTS: Final = 300
"""Maximum number of roots with a section or a row."""
MAX_BYTES: Final = 2_000_000
"""A section is left out if it would make all sections longer than this many characters."""
MAX_ATTEMPTS: Final = 3
"""After so many sections that are too long, no others are made."""
MAX_ROWS: Final = 120
"""Maximum number of rows of one root's operations, and of its objects that wait."""
MAX_PROBLEMS: Final = 40
"""Maximum number of problems of one root, and of its notes."""
MAX_FIELDS: Final = 12
MAX_NAMES: Final = 20
"""Maximum number of names listed of objects that are alike."""
MAX_MANIFESTS: Final = 10
"""Maximum number of manifests shown of one root."""
MAX_LINES: Final = 100
"""Maximum number of lines of a manifest."""
WAIT_TITLES: Final[Mapping[str, str]] = {
    "later": "later: a later pass does it",
    "blocked": "blocked: a user or another controller has to act first",
    "pending": "pending: the cluster has to act",
}
REASON: Final = 400
"""Maximum number of characters shown of a reason."""
VERB_CAPTIONS: Final[Mapping[Verb, str]] = {Verb.STATUS: "write the status of", Verb.RELEASE: "release finalizers of"}
"""What is done to the objects of a table, where the verb alone does not say it."""


def report_sections(report: Report, *, values: bool = False) -> Iterator[Markup]:
    """The refusals, what a reviewer decides on, a table of roots and a section for each, the worst first; silent roots are left out.

    `values`: with those of environment variables.
    """
    yield from refusals(report)
    yield from decisions(report)
    yield totals(report)
    yield from forecast_total(report.forecast)
    yield from assumptions(report.forecast)
    yield from (element("p", line.text) for line in others_lines(report.others))
    reported = worst_first(report)
    if len(reported) > 1:
        yield _roots_table(report, reported)
    yield from _bounded_sections(reported, report.forecast, values=values)


def _roots_table(report: Report, roots: Sequence[RootReport]) -> Markup:
    if report.forecast is not None:
        return decision_table(report, roots[:MAX_ROOTS], [f"#root-{number}" for number in range(1, 1 + len(roots[:MAX_ROOTS]))])
    rows = [root_row(number, root) for number, root in enumerate(roots[:MAX_ROOTS], 1)]
    return table(f"{len(roots)} workloads with something to report", ("Workload", "Operations", "Not now", "Remarks"), rows)


def _bounded_sections(roots: Sequence[RootReport], forecast: Forecast | None, *, values: bool) -> Iterator[Markup]:
    """A section for each root as long as there is room; of the others the number is given."""
    room, left_out, attempts = MAX_BYTES, max(0, len(roots) - MAX_ROOTS), MAX_ATTEMPTS
    for number, root in enumerate(roots[:MAX_ROOTS], 1):
        section = root_section(number, root, forecast=forecast, values=values) if attempts else None
        if section is None or len(section) > room:
            attempts, left_out = max(0, attempts - 1), left_out + 1
            section = element(
                "section", element("h2", _title(root), id=f"root-{number}"), element("p", "Left out: see the end of the page.")
            )
        else:
            room -= len(section)
        yield section
    if left_out:
        yield element("p", f"{left_out} workloads are left out, since the page would be too long; -o json has them all.", class_="alert")


def refusals(report: Report) -> Iterator[Markup]:
    """The objections against the whole pass, what policies say, and the kinds that could not be listed."""
    yield from map(objection_alert, report.objections)
    for line in judgement_lines(report.judgement):
        yield element("p", line.text, class_="alert" if line.tone == "bad" else "")
    for kind, why in report.incomplete.items():
        text = f"{kind} objects could not be listed completely ({why}); none of them is deleted"
        yield element("p", element("strong", "incomplete: "), text, class_="alert")


def objection_alert(objection: Objection) -> Markup:
    """A guard's refusal."""
    return element("p", element("strong", f"denied by {objection.rule}: "), objection.message, class_="alert")


def totals(report: Report) -> Markup:
    """The number of operations of each verb in the next pass, and of the objects that wait."""
    counts = [verb_text(verb, count) for verb, count in report.counts.items() if count]
    waits = ((report.later, "later"), (report.blocked, "blocked"), (report.pending, "pending"))
    counts += [verb_text(word, count) for count, word in waits if count]
    return element("p", "Next pass: ", _separated(counts) if counts else "no operations.")


def verb_text(word: str, count: int | None = None) -> Markup:
    """The mark and the word of a verb or a wait, with a number: `+ create 3`."""
    return element("span", f"{MARKS[word]} {word}{'' if count is None else f' {count}'}", class_=str(word))


def _separated(parts: Iterable[Markup]) -> list[Content]:
    separated: list[Content] = []
    for part in parts:
        separated += [", ", part] if separated else [part]
    return separated


def root_row(number: int, root: RootReport) -> tuple[Content, ...]:
    """A root in the table of roots."""
    verbs = _by_verb(root.steps)
    waits = (("later", root.later), ("blocked", root.blocked), ("pending", root.pending))
    remarks = (("denied", root.objections), ("error", root.error), ("problems", root.problems))
    return (
        element("a", code(str(root.root)), href=f"#root-{number}"),
        _separated(verb_text(verb, len(steps)) for verb, steps in verbs.items()),
        _separated(verb_text(word, len(each)) for word, each in waits if each),
        element("span", ", ".join(word for word, applies in remarks if applies), class_="bad"),
    )


def root_section(number: int, root: RootReport, *, title: bool = True, forecast: Forecast | None = None, values: bool = False) -> Markup:
    """One root: objections, problems, notes, a drawing of its operations in their order, operations by verb, what waits and follows."""
    problems = [element("p", element("strong", "problem: "), problem, class_="alert") for problem in root.problems[:MAX_PROBLEMS]]
    return element(
        "section",
        element("h2", _title(root), id=f"root-{number}") if title else None,
        element("p", "part of ", code(str(root.parent)), class_="faint") if root.parent else None,
        [objection_alert(objection) for objection in root.objections],
        element("p", root.error, class_="alert") if root.error else None,
        problems,
        list(forecast_lead(forecast, root)),
        [element("p", note, class_="note") for note in root.notes[:MAX_PROBLEMS]],
        _drawing(number, root, forecast),
        list(forecast_levels(forecast, root)),
        list(_operations(root, values)),
        [
            _waits(root, word, waits)
            for word, waits in (("later", root.later), ("blocked", root.blocked), ("pending", root.pending))
            if waits
        ],
        list(forecast_stages(forecast, root)),
    )


def _title(root: RootReport) -> Markup:
    return code(str(root.root))


def _drawing(number: int, root: RootReport, forecast: Forecast | None) -> Markup | None:
    drawn = drawing(root, forecast, number)
    title = "order of the operations" if forecast is None else "the whole effect, in order"
    return folded(title, drawn, is_open=True) if drawn else None


def _by_verb(steps: Iterable[Step]) -> dict[Verb, list[Step]]:
    """The steps of each verb that occurs, the most severe verb first."""
    groups: dict[Verb, list[Step]] = {}
    for step in steps:
        groups.setdefault(step.operation.verb, []).append(step)
    return {verb: groups[verb] for verb in sorted(groups, key=SEVERITY.__getitem__)}


def _operations(root: RootReport, values: bool) -> Iterator[Markup]:
    """The operations of each verb, alike ones in one row. Statuses are folded, for they only report."""
    rows_left, manifests_left = MAX_ROWS, MAX_MANIFESTS
    for verb, steps in _by_verb(root.steps).items():
        groups = steps_alike(steps)
        rows = []
        for group in groups[:rows_left]:
            rows.append(_operation_row(root, group, with_manifest=manifests_left > 0, values=values))
            manifests_left -= verb in (Verb.CREATE, Verb.REPLACE)
        rows_left -= len(rows)
        left_out = sum(map(len, groups[len(rows) :]))
        yield folded(
            element("h3", verb_text(verb, len(steps))),
            table(f"Objects to {VERB_CAPTIONS.get(verb, verb)}", ("Object", "Why"), rows) if rows else None,
            element("p", f"{left_out} more; -o json has them all", class_="faint") if left_out else None,
            is_open=verb is not Verb.STATUS,
        )


def _operation_row(root: RootReport, group: Sequence[Step], *, with_manifest: bool, values: bool) -> tuple[Content, ...]:
    """A group of operations that are alike: their names; why, and what the first one changes or creates."""
    first, parts = group[0].operation, dict.fromkeys(step.part for step in group)
    part = next(iter(parts)) if len(parts) == 1 else f"{len(parts)} parts"
    names = [step.operation.id.name for step in group]
    return (
        [
            code(group_name(root.root, [step.operation.id for step in group])),
            element("span", part, class_="part") if part else None,
            _names(names) if len(names) > 1 else None,
        ],
        [
            clipped(spread(step.operation.why for step in group), REASON),
            element("span", " (drift: changed by another writer)", class_="faint") if first.cause is Cause.DRIFT else None,
            element("strong", " unintended", class_="bad") if not first.intended else None,
            element("p", "finalizers: ", ", ".join(first.finalizers)) if isinstance(first, Release) else None,
            _fields([step.operation for step in group], values=values),
            _manifest(first, values) if with_manifest else None,
        ],
    )


def _names(names: Sequence[str]) -> Markup:
    """The names of objects that are alike, folded."""
    more = len(names) - MAX_NAMES
    listed = items(code(name) for name in names[:MAX_NAMES])
    return folded(f"{len(names)} names", listed, element("p", f"{more} more like these", class_="faint") if more > 0 else None)


def _fields(operations: Sequence[Operation], *, values: bool) -> Content:
    """The changed fields of operations that are alike; of statuses those of the first one, as an example."""
    lines = published_fields(operations, values=values)
    if not lines:
        return None
    operation, more = operations[0], len(lines) - MAX_FIELDS
    example = len(operations) > 1 and isinstance(operation, WriteStatus)
    entries: list[Content] = []
    for line in lines[:MAX_FIELDS]:
        colon = ": order " if line.order else ": "
        entries.append([code(line.path), colon, element("del", code(line.old)), " → ", element("ins", code(line.new))])
    if more > 0:
        entries.append(f"{more} more fields; -o json has them all")
    title: Content = ["fields, for example of ", code(operation.id.name)] if example else "fields"
    return folded(title, items(entries), is_open=not isinstance(operation, WriteStatus))


def _manifest(operation: Operation, values: bool) -> Markup | None:
    manifest = published_manifest(operation, values=values)
    if manifest is None:
        return None
    lines = manifest_lines(manifest)
    more = len(lines) - MAX_LINES
    return folded("manifest", text_block([*lines[:MAX_LINES], *([f"… {more} more lines; -o json has them all"] if more > 0 else [])]))


def _waits(root: RootReport, word: str, waits: Sequence[Wait]) -> Markup:
    """Deferred or pending objects with the reason and the time at which the wait ends, alike ones in one row."""
    groups = waits_alike(waits)
    left_out = sum(map(len, groups[MAX_ROWS:]))
    rows = [
        (code(group_name(root.root, [wait.id for wait in group])), [clipped(spread(wait.why for wait in group), REASON), _end(group)])
        for group in groups[:MAX_ROWS]
    ]
    return folded(
        element("h3", verb_text(word, len(waits))),
        table(WAIT_TITLES[word], ("Object", "Why"), rows),
        element("p", f"{left_out} more; -o json has them all", class_="faint") if left_out else None,
        is_open=True,
    )


def _end(waits: Iterable[Wait]) -> Content:
    until = min((wait.until for wait in waits if wait.until), default=None)
    return element("span", f" until {until:%Y-%m-%d %H:%M:%S} UTC", class_="faint") if until else None
