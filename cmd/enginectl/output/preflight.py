"""Preflight checks: a table for people, and entries of the JSON document."""

from collections.abc import Iterator, Sequence
from typing import Any

from engine.report.printable import Line, clipped
from enginectl.output.tables import aligned, column_widths
from resources.ports.checks import Check, CheckResult

HEADERS = ("LEVEL", "RESULT", "CHECK", "FOUND")
TONES = {CheckResult.GOOD: "", CheckResult.BAD: "bad", CheckResult.UNKNOWN: "later"}
MAX_CELL = 120
"""Characters of a cell; a finding may have three times as many."""
MAX_REMEDY = 600
"""Characters of a remedy. It may contain several commands, and a command that is cut helps nobody."""


def check_lines(checks: Sequence[Check]) -> Iterator[Line]:
    """The table of checks, and below each row that is not good what to do about it."""
    rows = [
        (str(check.level), str(check.outcome), clipped(check.subject, MAX_CELL), clipped(check.finding, MAX_CELL * 3)) for check in checks
    ]
    widths = [*column_widths([HEADERS, *rows])[:-1], 0]
    indent = " " * (widths[0] + widths[1] + 6)
    yield Line(aligned(HEADERS, widths), "head")
    for check, row in zip(checks, rows, strict=True):
        yield Line(aligned(row, widths), TONES[check.outcome])
        if check.remedy and check.outcome is not CheckResult.GOOD:
            yield Line(f"{indent}do: {clipped(check.remedy, MAX_REMEDY)}", "faint")


def check_entry(check: Check) -> dict[str, Any]:
    """A check in the JSON document."""
    return {
        "level": str(check.level),
        "result": str(check.outcome),
        "check": check.subject,
        "found": check.finding,
        "remedy": check.remedy if check.outcome is not CheckResult.GOOD else "",
    }
