"""Overview: the first lines of a report, in which everything worth a decision is said, and the table of workloads."""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from engine.forecast.forecast import Forecast
from engine.operation import WriteStatus
from engine.plan import Violation
from engine.report.forecast_text import total_text
from engine.report.markdown.inert import PROSE, cell, code, prose
from engine.report.meaning import change_of
from engine.report.model import TITLE, Report, RootReport
from engine.report.severity import Impediment, ImpedimentKind, end_of, levels_of, root_name

BYTES: Final = 500
"""Maximum number of bytes of the line of one blocker."""
PODS_RESTARTED: Final = "pods restarted"
GPUS_RESTARTED: Final = "GPUs restarted"
HEADERS: Final = ("set", "change", "restarted", "lowest/min", "ends")


def marker(title: str) -> str:
    """The hidden first line, by which a later run finds the comment that it has to replace. Raises `ValueError` for an unsuitable title."""
    if title and not TITLE.fullmatch(title):
        raise ValueError(f"the title {title!r} cannot be part of a marker")
    return f"<!-- engine:diff{f' {title}' if title else ''} -->"


def heading(report: Report, impediments: list[Impediment], title: str) -> str:
    """The most important numbers in one line."""
    counts = Counter(blocker.kind for blocker in impediments)
    facts = [f"{counts[kind]} {kind}" for kind in ImpedimentKind if counts[kind]]
    effects = effects_of(report.forecast)
    if restarted := effects[PODS_RESTARTED]:
        facts.append(f"{restarted} pod{'s restart' if restarted > 1 else ' restarts'}")
    elif changes := changes_of(report):
        facts.append(f"{changes} change{'s' if changes > 1 else ''}")
    where = f" in {code(title)}" if title else ""
    return f"### engine: {', '.join(facts) or 'no changes'}{where}"


def changes_of(report: Report) -> int:
    """The number of operations of all passes, or of the next one without a forecast; statuses are none."""
    following = sum(not isinstance(operation, WriteStatus) for operation in report.forecast.operations()) if report.forecast else 0
    return following or report.changes


def totals(report: Report) -> Iterator[str]:
    """The operations of the next pass, and of all passes with what they mean for pods and domains."""
    counts = ", ".join(f"{count} {verb}" for verb, count in report.counts.items() if count)
    waits = ((report.later, "later"), (report.blocked, "blocked"), (report.pending, "pending"))
    now = ", ".join(filter(None, [counts, *(f"{count} {word}" for count, word in waits if count)]))
    yield f"Next pass: {now or 'nothing'}."
    if report.forecast and (total := total_text(report.forecast, always_effects=True)):
        yield f"In all: {prose(total)}."


def effects_of(forecast: Forecast | None) -> Counter[str]:
    """What happens to the pods and domains of all workloads."""
    effects = Counter[str]()
    for each in forecast.effects.values() if forecast else ():
        effects.update(each.counts)
    return effects


def table_head() -> str:
    """The first two lines of the table of workloads."""
    return f"| {' | '.join(HEADERS)} |\n|{'---|' * len(HEADERS)}"


def table_row(report: Report, root: RootReport, *, settles: bool) -> str:
    """The line of one workload in the table. `settles`: whether it would settle, or nothing is known of it."""
    counts = report.forecast.effects[root.root].counts if report.forecast and root.root in report.forecast.effects else {}
    gpus = f", {counts[GPUS_RESTARTED]} GPUs" if counts.get(GPUS_RESTARTED) else ""
    level = next(iter(levels_of(report, root)), None)
    lowest = f"{level.lowest}/{level.minimum}" if level else ""
    end = end_of(report, root)
    cells = (
        cell(root_name(root.root)),
        change_cell(report, root),
        f"{counts.get(PODS_RESTARTED, 0)}{gpus}" if report.forecast else "",
        f"**{lowest}**" if level and level.falls_below else lowest,
        "" if end is None else str(end) if settles else f"**{end}**",
    )
    return f"| {' | '.join(cells)} |"


def change_cell(report: Report, root: RootReport) -> str:
    """What happens to a workload, in words; empty if nothing does."""
    if root.objections or root.problems or root.error:
        return "**refused**"
    return change_of(root, report.forecast) or ("status" if root.steps else "")


def blocker_line(blocker: Impediment) -> str:
    """One line of at most `BYTES` bytes; the message is cut where it would be longer."""
    about = " ".join(code(text, 80) for text in (blocker.rule, root_name(blocker.root) if blocker.root else "") if text)
    start = f"**{blocker.kind.capitalize()}**{' ' if about else ''}{about}: "
    limit = PROSE
    while len((line := start + prose(blocker.message, limit)).encode()) > BYTES and limit > 10:
        limit //= 2
    return line


def warning_line(violation: Violation) -> str:
    """One line about a violation that denies nothing."""
    about = f" {code(root_name(violation.about), 80)}" if violation.about else ""
    waived = f" (waived: {prose(violation.waived)})" if violation.waived else ""
    return f"**{'Waived' if waived else 'Warning'}** {code(violation.rule, 80)}{about}: {prose(violation.message)}{waived}"
