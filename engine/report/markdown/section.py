"""Section: the details of one workload, which fold; in several lengths."""

from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import Final

from engine.operation import Cause, Operation, WriteStatus
from engine.plan import Wait
from engine.report.alike import spread, steps_alike, waits_alike
from engine.report.forecast_text import stage_text, stages_of, totals_text
from engine.report.markdown.inert import code, fenced, html_code, html_prose, prose
from engine.report.model import SEVERITY, Report, RootReport, Step
from engine.report.published import published_fields
from engine.report.severity import level_text, levels_of, root_name
from engine.report.text import MARKS, group_name
from engine.verb import Verb

GROUPS: Final = 40
"""Maximum number of groups of operations of one workload, and of groups of objects that wait."""
FIELDS: Final = 12
"""Maximum number of changed fields of one operation."""
STAGES: Final = 8
LEVELS: Final = 6
REMARKS: Final = 10
"""Maximum number of notes of one workload."""


class Detail(IntEnum):
    """How much of a workload is written; each level has less than the one before."""

    ALL = 0
    SINGLE_FIELDS = 1
    """Without the fields of operations that are alike."""
    NO_FIELDS = 2
    NONE = 3
    """Nothing but its row in the table."""


def section(report: Report, root: RootReport, detail: Detail, *, values: bool) -> str:
    """The workload as a block that folds. `values`: with the values of environment variables."""
    lines = [f"<details><summary>{html_code(root_name(root.root))}: {html_prose(headline(root))}</summary>", ""]
    lines += _operations(root, detail, values)
    lines += _waits(root)
    lines += _forecast(report, root)
    lines += [f"- note: {prose(note)}" for note in root.notes[:REMARKS]]
    lines += _more(len(root.notes) - REMARKS, "notes")
    return "\n".join([*lines, "", "</details>"])


def headline(root: RootReport) -> str:
    """What is done and what waits, in numbers."""
    verbs = [step.operation.verb for step in root.steps]
    counts = [(verbs.count(verb), str(verb)) for verb in sorted(set(verbs), key=SEVERITY.__getitem__)]
    counts += [(len(root.later), "later"), (len(root.blocked), "blocked"), (len(root.pending), "pending")]
    return ", ".join(f"{count} {word}" for count, word in counts if count) or "no operations"


def _operations(root: RootReport, detail: Detail, values: bool) -> Iterator[str]:
    """A list of the operations, alike ones in one entry, each with its fields. Statuses only report: they are counted."""
    steps = [step for step in root.steps if not isinstance(step.operation, WriteStatus)]
    groups = sorted(steps_alike(steps), key=lambda group: SEVERITY[group[0].operation.verb])
    for group in groups[:GROUPS]:
        yield _entry(root, group)
        if detail is Detail.ALL or (detail is Detail.SINGLE_FIELDS and len(group) == 1):
            yield from _fields([step.operation for step in group], values)
    yield from _more(sum(map(len, groups[GROUPS:])), "operations")
    if statuses := len(root.steps) - len(steps):
        yield f"- `{MARKS[Verb.STATUS]}` status {statuses}"


def _entry(root: RootReport, group: Sequence[Step]) -> str:
    operation = group[0].operation
    name = group_name(root.root, [step.operation.id for step in group])
    remarks = f"{', drift' if operation.cause is Cause.DRIFT else ''}{'' if operation.intended else ', **unintended**'}"
    return f"- `{MARKS[operation.verb]}` {operation.verb} {code(name)}: {prose(spread(step.operation.why for step in group))}{remarks}"


def _fields(operations: Sequence[Operation], values: bool) -> Iterator[str]:
    """The changed fields of operations that are alike as a difference, below their entry."""
    fields = published_fields(operations, values=values)
    lines: list[str] = []
    for field in fields[:FIELDS]:
        name = f"{field.path}:{' order' if field.order else ''}"
        sides = (("-", field.old, field.is_new), ("+", field.new, field.is_removed))
        lines += [f"{mark} {name} {side}" for mark, side, is_absent in sides if not is_absent]
    if len(fields) > FIELDS:
        lines.append(f"  {len(fields) - FIELDS} more fields")
    if lines:
        yield ""
        yield "\n".join(f"  {line}" for line in fenced(lines).splitlines())
        yield ""


def _waits(root: RootReport) -> Iterator[str]:
    for word, waits in (("blocked", root.blocked), ("later", root.later), ("pending", root.pending)):
        groups = waits_alike(waits)
        yield from (_wait(root, word, group) for group in groups[:GROUPS])
        yield from _more(sum(map(len, groups[GROUPS:])), f"objects are {word}")


def _wait(root: RootReport, word: str, waits: Sequence[Wait]) -> str:
    until = min((wait.until for wait in waits if wait.until), default=None)
    end = f" (until {until:%Y-%m-%d %H:%M:%S} UTC)" if until else ""
    name = code(group_name(root.root, [wait.id for wait in waits]))
    return f"- `{MARKS[word]}` {word} {name}: {prose(spread(wait.why for wait in waits))}{end}"


def _forecast(report: Report, root: RootReport) -> Iterator[str]:
    """The stages that follow, the fewest ready members, the totals."""
    if report.forecast is None:
        return
    stages = stages_of(report.forecast, root.root, (step.operation for step in root.steps))
    levels = levels_of(report, root)
    yield from (f"- then {prose(stage_text(stage))}" for stage in stages[:STAGES])
    yield from _more(len(stages) - STAGES, "stages")
    for level in levels[:LEVELS]:
        below = ", **below its minimum**" if level.falls_below else ""
        yield f"- lowest {code(level.id.name)}: {level_text(level)}{below}"
    yield from _more(len(levels) - LEVELS, "objects have fewer ready members for a time")
    if stages or levels or root.root in report.forecast.effects:
        yield f"- in all {prose(totals_text(report.forecast, root.root))}"


def _more(count: int, what: str) -> Iterator[str]:
    if count > 0:
        yield f"- {count} more {what}"
