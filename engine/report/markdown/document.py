"""A report as Markdown of a bounded size: what does not fit is left out block by block, the mildest first, and counted."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from msgspec import Struct, field

from engine.report.forecast_text import duration_lines, room_lines
from engine.report.markdown.inert import prose
from engine.report.markdown.overview import blocker_line, heading, marker, table_head, table_row, totals, warning_line
from engine.report.markdown.section import Detail, section
from engine.report.model import Report, RootReport
from engine.report.review import COMMENT, LINK, SMALLEST
from engine.report.severity import impediments_of, worst_first
from engine.report.text import others_lines

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
