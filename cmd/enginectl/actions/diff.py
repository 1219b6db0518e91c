"""`engine diff`: the report of what a sync would do."""

from datetime import datetime, timedelta
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from engine.report.model import Report
from enginectl.actions.planning import report_errors
from enginectl.actions.preview import PreviewRequest, preview
from enginectl.actions.reporting import TO_TERMINAL, Outputs, places_of, write_outputs
from enginectl.base.exit_codes import Exit, UsageError, worst
from enginectl.base.files import STDIN, require_directory
from enginectl.base.options import ReportFormat, parse_seconds
from enginectl.output.documents import Material
from enginectl.wiring.cluster import LIVE
from enginectl.wiring.configuration import Wiring


class Saving(Struct, frozen=True):
    """Where a plan is saved, and how long it may be applied."""

    file: Path
    valid_for: timedelta


def saving_to(out: Path | None, valid_for: str) -> Saving | None:
    """What `--out` and `--valid-for` ask for; None if no plan is saved. Raises `UsageError`."""
    if out is None:
        return None
    if out == STDIN:
        raise UsageError("--out -: a plan is written to a file, standard output has the report")
    require_directory(out, "--out")
    return Saving(out, timedelta(seconds=parse_seconds(valid_for, "--valid-for")))


async def diff(
    wiring: Wiring, request: PreviewRequest, outputs: Outputs = TO_TERMINAL, *, detailed: bool = False, saving: Saving | None = None
) -> Exit:
    """Write the report of a preview, save it as a plan if asked, and return the exit code. Nothing is written to the cluster."""
    seen, verbose = await preview(wiring, replace(request, for_approval=saving is not None)), wiring.options.verbose
    at = seen.result.now if request.base is None and request.against == LIVE else None
    write_outputs(Material(seen.report, at, places_of(request.roots), seen.intent.warned), outputs, verbose=verbose)
    if verbose:
        report_errors(seen.result.planned.plans, verbose=True)
    code = exit_code(seen.report, detailed=detailed)
    if saving is None:
        return code
    from enginectl.actions.saved_preview import save

    refused = save(wiring, seen, saving.file, saving.valid_for)
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
