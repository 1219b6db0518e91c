"""`engine sync`: applies the plan until every workload is settled."""

from typing import Annotated

import typer

from enginectl.base.exit_codes import Exit
from enginectl.base.options import AllowReplace, Files, Format, OutputFormat, options


def sync(
    ctx: typer.Context,
    files: Files = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the plan and write nothing.")] = False,
    wait: Annotated[
        bool, typer.Option("--wait/--no-wait", help="Wait until every workload is settled, or only do what can be done now.")
    ] = True,
    timeout: Annotated[str, typer.Option(metavar="DURATION", help="Maximum duration, e.g. 90s or 5m.")] = "5m",
    max_deletes: Annotated[
        int | None,
        typer.Option(min=0, metavar="N", help="Allowed number of unintended deletes. Default: 10, or a tenth of all objects."),
    ] = None,
    allow_replace: AllowReplace = False,
    format: Format = OutputFormat.TEXT,
) -> Exit:
    """Apply the plan until every workload is settled.

    Ends when there is nothing left to do or to wait for, or after --timeout; then it shows what is later, blocked or pending.
    With -f: apply these manifests first.
    """
    import anyio

    from engine.guard import Limits
    from enginectl.actions.preview import preview
    from enginectl.actions.sync import Patience
    from enginectl.actions.sync import sync as apply_until_settled
    from enginectl.base.durations import parse_seconds
    from enginectl.base.runner import conclude, run, run_cancellable
    from enginectl.input.roots import load_roots
    from enginectl.wiring.cluster import LIVE
    from enginectl.wiring.configuration import wire

    patience, limits = Patience(wait, parse_seconds(timeout, "--timeout")), Limits(max_deletes)
    wiring = wire(options(ctx), allow_replace=allow_replace)
    roots = load_roots(wiring, files or ())

    async def work(stop: anyio.CancelScope) -> Exit:
        return await apply_until_settled(wiring, roots, format, stop, limits=limits, patience=patience)

    if dry_run:
        return conclude(run_cancellable(lambda: preview(wiring, roots, LIVE, format, limits=limits)), format)
    return conclude(run(work), format)
