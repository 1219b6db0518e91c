"""A report as Markdown of a bounded size: what does not fit is left out block by block, the mildest first, and counted."""

from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from functools import partial
from typing import Final

from msgspec import Struct, field

from engine.operation import Cause, Operation, WriteStatus
from engine.plan import Wait
from engine.report.alike import spread, steps_alike, waits_alike
from engine.report.forecast_text import duration_lines, room_lines, stage_text, stages_of, totals_text
from engine.report.markdown.inert import code, fenced, html_code, html_prose, prose
from engine.report.markdown.overview import blocker_line, heading, marker, table_head, table_row, totals, warning_line
from engine.report.model import COMMENT, LINK, SEVERITY, SMALLEST, Report, RootReport, Step
from engine.report.severity import Impediment, ImpedimentKind, impediments_of, level_text, levels_of, root_name, worst_first
from engine.report.shareable import published_fields
from engine.report.text import MARKS, group_name, others_lines
from engine.verb import Verb


class Detail(IntEnum):
    """How much of a workload is written; each level has less than the one before."""

    ALL = 0
    SINGLE_FIELDS = 1
    """Without the fields of operations that are alike."""
    NO_FIELDS = 2
    NONE = 3
    """Nothing but its row in the table."""


KEPT: Final = 20
"""Number of blockers that are never left out."""
LISTED: Final = 300
"""Maximum number of blockers, of warnings, and of workloads with details, however much room there is."""
NOTES: Final = 20
"""Maximum number of rules of policies that were not applied."""
ROWS: Final = 1_000
"""Maximum number of rows of the table."""
NOTE: Final = 1_000
"""Bytes reserved for the last line, without the link."""
COUNTED: Final = {
    "fields of alike operations": "of {} workloads the fields of alike operations",
    "all fields": "of {} workloads all fields",
}
"""What was left out -> how that is said; elsewhere the number stands before the word."""


def markdown(report: Report, *, title: str = "", link: str = "", limit: int = COMMENT, values: bool = False) -> str:
    """The document, in at most `limit` bytes of UTF-8.

    `title`: what the hidden marker in the first line says, so that a later run finds the comment. `link`: where the full report is.
    `values`: with the values of environment variables, which are masked otherwise.
    Raises `ValueError` for a limit below `SMALLEST`, and for a title or a link that could be anything else.
    """
    if limit < SMALLEST or (link and not LINK.fullmatch(link)):
        raise ValueError("the limit is too small, or the link is not one")
    parts = _Parts.of(report, title, values)
    parts.shrink(limit - NOTE - len(link))
    return "\n\n".join(parts.blocks(_last_line(report, parts, link))) + "\n"


class _Shrinking(Struct):
    """A workload with details, and how many of them are written."""

    write: Callable[[Detail], str]
    detail: Detail = Detail.ALL
    texts: dict[Detail, str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """Its section; empty if it is left out."""
        return self.at(self.detail)

    def at(self, detail: Detail) -> str:
        """Its section with so many details."""
        if detail is Detail.NONE:
            return ""
        if detail not in self.texts:
            self.texts[detail] = self.write(detail)
        return self.texts[detail]


class _Parts(Struct):
    """The blocks of a document; the lists have the worst first, and lose their last."""

    top: list[str]
    rows: list[str]
    blockers: list[str]
    warnings: list[str]
    sections: list[_Shrinking]
    lost: dict[str, int] = field(default_factory=dict)
    """What was left out -> how often."""

    @classmethod
    def of(cls, report: Report, title: str, values: bool) -> "_Parts":
        """All of them."""
        impediments, roots, unsettled = impediments_of(report), worst_first(report), frozenset(report.unsettled)
        violations = (*report.judgement.warned, *report.judgement.waived)
        lines = [blocker_line(blocker) for blocker in impediments[:LISTED]]
        parts = cls(
            [marker(title) + "\n" + heading(report, impediments, title), *totals(report)],
            [table_row(report, root, settles=root.root not in unsettled) for root in roots[:ROWS]],
            lines,
            [*map(warning_line, violations[:LISTED]), *(f"**Note** {prose(note)}" for note in report.judgement.notes[:NOTES])],
            [_Shrinking(_writer(report, root, values)) for root in roots[:LISTED]],
        )
        parts.lose("blockers", len(impediments) - len(lines))
        parts.lose("warnings", max(0, len(violations) - LISTED) + max(0, len(report.judgement.notes) - NOTES))
        parts.lose("rows", len(roots) - len(parts.rows))
        parts.lose("details of workloads", len(roots) - len(parts.sections))
        return parts

    def lose(self, what: str, count: int = 1) -> None:
        """Count what is left out."""
        if count > 0:
            self.lost[what] = self.lost.get(what, 0) + count

    def shrink(self, limit: int) -> None:
        """Leave out one thing after the other until all blocks have at most so many bytes."""
        size = sum(_bytes(block) for block in self.blocks(""))
        for freed in self._drops():
            if size <= limit:
                return
            size -= freed()

    def _drops(self) -> Iterator[Callable[[], int]]:
        """What can be left out, in order. Each returns how many bytes it freed."""
        for detail in (Detail.SINGLE_FIELDS, Detail.NO_FIELDS, Detail.NONE):
            for each in reversed(self.sections):
                yield partial(self._reduce, each, detail)
        for what, lines in (("rows", self.rows), ("warnings", self.warnings)):
            for _ in range(len(lines)):
                yield partial(self._drop_last, what, lines)
        for _ in range(len(self.blockers) - KEPT):
            yield partial(self._drop_last, "blockers", self.blockers)

    def _reduce(self, each: _Shrinking, detail: Detail) -> int:
        before, after = each.text, each.at(detail)
        if len(after) >= len(before):
            return 0
        each.detail = detail
        if detail is Detail.NONE:
            self.lose("details of workloads")
        else:
            self.lose("fields of alike operations" if detail is Detail.SINGLE_FIELDS else "all fields")
        return _bytes(before) - (_bytes(after) if after else 0)

    def _drop_last(self, what: str, lines: list[str]) -> int:
        self.lose(what)
        return _bytes(lines.pop())

    def blocks(self, last: str) -> Iterator[str]:
        """The blocks that are left, in order; `last` at the end."""
        yield from self.top
        if self.rows:
            yield "\n".join([table_head(), *self.rows])
        yield from self.blockers
        yield from self.warnings
        yield from (each.text for each in self.sections if each.text)
        if last:
            yield last


def _writer(report: Report, root: RootReport, values: bool) -> Callable[[Detail], str]:
    return lambda detail: section(report, root, detail, values=values)


def _bytes(block: str) -> int:
    """The bytes of a block and of the empty line after it."""
    return len(block.encode()) + 2


def _last_line(report: Report, parts: _Parts, link: str) -> str:
    """What the forecast assumes, what was left out, and where everything is."""
    sentences: list[str] = []
    sentences += [prose(f"{line.text}.") for line in others_lines(report.others)]
    if report.forecast and report.forecast.assumptions:
        sentences.append(f"Assumes that {'; '.join(sorted(report.forecast.assumptions))}.")
    if report.forecast:
        sentences += [prose(line.text) for line in (*duration_lines(report.forecast), *room_lines(report.forecast))]
    if parts.lost:
        sentences.append(f"Left out: {_counted(parts.lost)}; `-o html` and `-o json` have all.")
    if link:
        sentences.append(f"[Full report](<{link}>)")
    return f"<sub>{' '.join(sentences)}</sub>" if sentences else ""


def _counted(lost: dict[str, int]) -> str:
    return ", ".join(COUNTED.get(what, f"{{}} {what}").format(count) for what, count in lost.items())


def markdown_of_faults(text: str, *, title: str = "", limit: int = SMALLEST) -> str:
    """The comment, in at most `limit` bytes of UTF-8: a heading, and the lines of the text of the error as a fault each.

    Raises `ValueError` for an unsuitable title.
    """
    lines = text.splitlines()
    where = f" in {code(title)}" if title else ""
    top = f"{marker(title)}\n### engine: {len(lines)} fault{'' if len(lines) == 1 else 's'}, nothing was planned{where}"
    blocks, room = [top], limit - len(top.encode()) - 100
    for line in lines[:LISTED]:
        block = blocker_line(Impediment(ImpedimentKind.FAULT, line))
        room -= len(block.encode()) + 2
        if room < 0 and len(blocks) > KEPT:
            break
        blocks.append(block)
    left_out = len(lines) - len(blocks) + 1
    if left_out:
        blocks.append(f"<sub>{prose(f'Left out: {left_out} faults; standard error has them.')}</sub>")
    return "\n\n".join(blocks) + "\n"


GROUPS: Final = 40
"""Maximum number of groups of operations of one workload, and of groups of objects that wait."""
FIELDS: Final = 12
"""Maximum number of changed fields of one operation."""
STAGES: Final = 8
LEVELS: Final = 6
REMARKS: Final = 10
"""Maximum number of notes of one workload."""


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
    for change in fields[:FIELDS]:
        name = f"{change.path}:{' order' if change.order else ''}"
        sides = (("-", change.old, change.is_new), ("+", change.new, change.is_removed))
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
