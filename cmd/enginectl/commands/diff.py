"""`engine diff`: what the next sync would do."""

from pathlib import Path
from typing import Annotated

import typer

from enginectl.base.exit_codes import Exit
from enginectl.base.options import (
    AllowReplace,
    Files,
    Link,
    MaxBytes,
    PlanFormat,
    ReportFormat,
    Reports,
    ShowValues,
    Summary,
    Title,
    options,
)


def diff(
    ctx: typer.Context,
    files: Files = None,
    base: Annotated[
        list[Path] | None,
        typer.Option("--base", metavar="FILE|DIR", help="Compare with these manifests, as if applied and settled. Repeatable."),
    ] = None,
    against: Annotated[
        str,
        typer.Option(metavar="live|empty|SNAPSHOT", help="What to compare with. Default: live, and empty with --base.", show_default=False),
    ] = "",
    format: PlanFormat = ReportFormat.TEXT,
    allow_replace: AllowReplace = False,
    only_next: Annotated[bool, typer.Option("--next", help="Only the next pass, without a forecast of what follows.")] = False,
    server_dry_run: Annotated[
        bool,
        typer.Option("--server-dry-run", help="Let the API server check what the next pass would write; needs the rights to write it."),
    ] = False,
    reports: Reports = None,
    summary: Summary = None,
    title: Title = "",
    link: Link = "",
    max_bytes: MaxBytes = 65_000,
    show_values: ShowValues = False,
    detailed_exitcode: Annotated[bool, typer.Option("--detailed-exitcode", help="Exit with 2 if there are changes.")] = False,
) -> Exit:
    """Show what a sync would do, and why.

    First comes the next pass, in which every operation has a reason; then a forecast of what follows until everything is settled:
    stages, restarted pods, the fewest ready ones, totals. Nothing is written.
    With -f: as if these manifests were applied first; the pods of a workload that does not exist yet get names computed from its
    namespace and name instead of its uid.
    """
    from enginectl.actions.look import Subject
    from enginectl.actions.preview import preview
    from enginectl.actions.reporting import faults_reported, outputs_of
    from enginectl.base.errors import UsageError
    from enginectl.base.runner import conclude, run_cancellable
    from enginectl.input.roots import load_roots
    from enginectl.wiring.configuration import wire

    outputs = outputs_of(format, reports or (), summary, title=title, link=link, max_bytes=max_bytes, values=show_values)
    wiring = wire(options(ctx), allow_replace=allow_replace)
    if server_dry_run and (base or against not in ("", "live")):
        raise UsageError("--server-dry-run asks the cluster: it excludes --base and --against")
    against = against or ("empty" if base else "live")
    with faults_reported(outputs):
        roots = load_roots(wiring, files or (), against=against)
        base_roots = load_roots(wiring, base, against=against) if base else None
    subject = Subject(roots, against, only_next, server_dry_run=server_dry_run, base=base_roots)
    return conclude(run_cancellable(lambda: preview(wiring, subject, outputs, detailed=detailed_exitcode)), format)
