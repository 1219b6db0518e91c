"""`engine diff`: the report of what a sync would do."""

from dataclasses import replace
from datetime import datetime

from engine.report.html import html
from engine.report.json import document
from engine.report.model import Report
from engine.report.text import text
from enginectl.actions.look import Subject, look
from enginectl.actions.planning import report_errors
from enginectl.actions.saving import Saving, save
from enginectl.base import terminal
from enginectl.base.exit_codes import Exit, worst
from enginectl.base.options import ReportFormat
from enginectl.wiring.configuration import Wiring


async def preview(wiring: Wiring, subject: Subject, format: ReportFormat, *, detailed: bool = False, saving: Saving | None = None) -> Exit:
    """Look, write the report, save it as a plan if asked, and return the exit code. Nothing is written to the cluster."""
    seen = await look(wiring, replace(subject, for_approval=saving is not None))
    write_report(wiring, seen.report, seen.result.now, format)
    if wiring.options.verbose:
        report_errors(seen.result.planned.plans, verbose=True)
    refused = save(wiring, seen, saving) if saving is not None else None
    code = exit_code(seen.report, detailed=detailed)
    return code if refused is None else worst((code, refused))


def write_report(wiring: Wiring, report: Report, now: datetime, format: ReportFormat) -> None:
    """Write the report to stdout; `now`: when the cluster was observed."""
    if format is ReportFormat.JSON:
        terminal.print_json(document(report))
    elif format is ReportFormat.HTML:
        terminal.print_text(html(report, now))
        terminal.flush()
    else:
        terminal.print_lines(text(report, verbose=wiring.options.verbose))


def exit_code(report: Report, *, detailed: bool) -> Exit:
    """The exit code of a preview. Changes count only with `detailed`."""
    conditions = {
        Exit.FAILED: report.faulty,
        Exit.DENIED: report.denied,
        Exit.INCOMPLETE: bool(report.incomplete),
        Exit.CHANGES: detailed and report.changes > 0,
    }
    return worst(code for code, applies in conditions.items() if applies)
