"""`engine diff`: what the next sync would do."""

from pathlib import Path
from typing import Annotated

import typer

from enginectl.base.exit_codes import Exit
from enginectl.base.options import AllowReplace, Files, PlanFormat, PolicyFiles, ReportFormat, Waivers, options


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
    policy: PolicyFiles = None,
    waive: Waivers = None,
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Save what is shown as a plan for `sync --plan`.")] = None,
    valid_for: Annotated[str, typer.Option("--valid-for", metavar="DURATION", help="How long the saved plan may be applied.")] = "24h",
    detailed_exitcode: Annotated[bool, typer.Option("--detailed-exitcode", help="Exit with 2 if there are changes.")] = False,
) -> Exit:
    """Show what a sync would do, and why.

    First comes the next pass, in which every operation has a reason; then a forecast of what follows until everything is settled:
    stages, restarted pods, the fewest ready ones, totals. Nothing is written.
    With -f: as if these manifests were applied first; the pods of a workload that does not exist yet get names computed from its
    namespace and name instead of its uid.
    With --policy: what is shown is denied (exit 3) if it violates a rule.
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
    from enginectl.input.plan_policies import load_all
    from enginectl.input.roots import load_roots
    from enginectl.wiring.cluster import EMPTY, LIVE
    from enginectl.wiring.configuration import wire

    if policy and only_next:
        raise UsageError("--policy judges what follows as well: it excludes --next")
    policies = load_all(policy or (), waive or ())
    wiring = wire(options(ctx), allow_replace=allow_replace)
    if server_dry_run and (base or against not in ("", LIVE)):
        raise UsageError("--server-dry-run asks the cluster: it excludes --base and --against")
    against = against or (EMPTY if base else LIVE)
    if out is not None and (against != LIVE or base or only_next):
        other = "--next" if only_next else "--base" if base else "--against"
        raise UsageError(f"--out saves what a sync of the cluster would do: it excludes {other}")
    if out == STDIN:
        raise UsageError("--out -: a plan is written to a file, standard output has the report")
    saving = Saving(out, timedelta(seconds=parse_seconds(valid_for, "--valid-for"))) if out is not None else None
    roots = load_roots(wiring, files or (), against=against)
    base_roots = load_roots(wiring, base, against=against) if base else None
    subject = Subject(roots, against, only_next, server_dry_run=server_dry_run, base=base_roots, policies=policies)
    return conclude(run_cancellable(lambda: preview(wiring, subject, format, detailed=detailed_exitcode, saving=saving)), format)
