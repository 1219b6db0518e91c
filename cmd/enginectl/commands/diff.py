"""`engine diff`: what the next sync would do."""

from pathlib import Path
from typing import Annotated

import typer

from enginectl.base.exit_codes import Exit
from enginectl.base.options import AllowReplace, Files, PlanFormat, ReportFormat, options


def diff(
    ctx: typer.Context,
    files: Files = None,
    against: Annotated[str, typer.Option(metavar="live|empty|SNAPSHOT", help="What to compare with.")] = "live",
    format: PlanFormat = ReportFormat.TEXT,
    allow_replace: AllowReplace = False,
    only_next: Annotated[bool, typer.Option("--next", help="Only the next pass, without a forecast of what follows.")] = False,
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Save what is shown as a plan for `sync --plan`.")] = None,
    valid_for: Annotated[str, typer.Option("--valid-for", metavar="DURATION", help="How long the saved plan may be applied.")] = "24h",
    detailed_exitcode: Annotated[bool, typer.Option("--detailed-exitcode", help="Exit with 2 if there are changes.")] = False,
) -> Exit:
    """Show what a sync would do, and why.

    First comes the next pass, in which every operation has a reason; then a forecast of what follows until everything is settled:
    stages, restarted pods, the fewest ready ones, totals. Nothing is written.
    With -f: as if these manifests were applied first; the pods of a workload that does not exist yet get names computed from its
    namespace and name instead of its uid.
    With --out: what is shown is saved as a plan, with the manifests as they are. What is denied, faulty or incomplete is not saved.
    """
    from datetime import timedelta

    from enginectl.actions.look import Subject
    from enginectl.actions.preview import preview
    from enginectl.actions.saving import Saving
    from enginectl.base.durations import parse_seconds
    from enginectl.base.errors import UsageError
    from enginectl.base.files import STDIN
    from enginectl.base.runner import conclude, run_cancellable
    from enginectl.input.roots import load_roots
    from enginectl.wiring.cluster import LIVE
    from enginectl.wiring.configuration import wire

    if out is not None and (against != LIVE or only_next):
        raise UsageError(
            f"--out saves what a sync of the cluster would do to its end: it excludes {'--next' if only_next else '--against'}"
        )
    if out == STDIN:
        raise UsageError("--out -: a plan is written to a file, standard output has the report")
    saving = Saving(out, timedelta(seconds=parse_seconds(valid_for, "--valid-for"))) if out is not None else None
    wiring = wire(options(ctx), allow_replace=allow_replace)
    subject = Subject(load_roots(wiring, files or (), against=against), against, only_next)
    return conclude(run_cancellable(lambda: preview(wiring, subject, format, detailed=detailed_exitcode, saving=saving)), format)
