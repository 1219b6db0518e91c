"""`engine diff`: the report of what a sync would do."""

from datetime import datetime

from msgspec.structs import replace

from engine.report.model import Report
from enginectl.actions.look import Subject, look
from enginectl.actions.planning import report_errors
from enginectl.actions.reporting import TO_TERMINAL, Outputs, places_of, write_outputs
from enginectl.actions.saving import Saving
from enginectl.base.exit_codes import Exit, worst
from enginectl.base.options import ReportFormat
from enginectl.output.documents import Material
from enginectl.wiring.configuration import Wiring


async def preview(
    wiring: Wiring, subject: Subject, outputs: Outputs = TO_TERMINAL, *, detailed: bool = False, saving: Saving | None = None
) -> Exit:
    """Look, write the report, save it as a plan if asked, and return the exit code. Nothing is written to the cluster."""
    seen, verbose = await look(wiring, replace(subject, for_approval=saving is not None)), wiring.options.verbose
    write_outputs(Material(seen.report, seen.result.now, places_of(subject.roots)), outputs, verbose=verbose)
    if verbose:
        report_errors(seen.result.planned.plans, verbose=True)
    code = exit_code(seen.report, detailed=detailed)
    if saving is None:
        return code
    from enginectl.actions.saved_look import save

    refused = save(wiring, seen, saving)
    return code if refused is None else worst((code, refused))


def write_report(wiring: Wiring, report: Report, now: datetime, format: ReportFormat) -> None:
    """Write a report to standard output; `now`: when the cluster was observed."""
    write_outputs(Material(report, now), Outputs(format), verbose=wiring.options.verbose)


def exit_code(report: Report, *, detailed: bool) -> Exit:
    """The exit code of a preview. Changes count only with `detailed`."""
    conditions = {
        Exit.FAILED: report.faulty,
        Exit.DENIED: report.denied,
        Exit.STUCK: bool(report.unsettled),
        Exit.INCOMPLETE: bool(report.incomplete),
        Exit.CHANGES: detailed and report.changes > 0,
    }
    return worst(code for code, applies in conditions.items() if applies)
