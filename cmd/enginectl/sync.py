"""`engine sync`: one pass after another until all is settled."""

from typing import Annotated

import typer

from enginectl.diff import Files, Form
from enginectl.exits import Exit
from enginectl.options import Output, options


def sync(
    ctx: typer.Context,
    files: Files = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be done, and do nothing.")] = False,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Waiting until all is settled, or only do what can be done now.")] = True,
    timeout: Annotated[str, typer.Option(metavar="DURATION", help="How long at most, as in 90s or 5m.")] = "5m",
    max_deletes: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Deletes allowed that nobody asked for; otherwise 10, or a tenth of all objects.")
    ] = None,
    form: Form = Output.TEXT,
) -> Exit:
    """Make it so, until all is settled.

    Ends when nothing is left to do and nothing to wait for, or when time is up; then it says what waits for what.
    With -f: apply these manifests first.
    """
    import anyio

    from engine.guard import Limits
    from enginectl import wiring
    from enginectl.preview import preview
    from enginectl.running import concluded, run
    from enginectl.syncing import Patience, synced
    from enginectl.values import seconds

    patience = Patience(wait, seconds(timeout, "--timeout"))
    wired = wiring.wired(options(ctx))
    wanted = wiring.manifests(wired, files or ())
    limits = Limits(max_deletes)

    async def work(stop: anyio.CancelScope) -> Exit:
        if not dry_run:
            return await synced(wired, wanted, form, limits, patience, stop)
        with stop:
            return await preview(wired, wanted, wiring.LIVE, form, limits=limits)
        return Exit.INTERRUPTED

    return concluded(run(work), form)
