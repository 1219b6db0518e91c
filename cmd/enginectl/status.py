"""`engine status`: how each workload is doing."""

from typing import Annotated

import typer

from enginectl.diff import Form
from enginectl.exits import Exit
from enginectl.options import Output, options


def status(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="One workload; otherwise all.", show_default=False)] = "",
    form: Form = Output.TEXT,
) -> Exit:
    """Show how each workload is doing.

    Replicas, gangs and pods, and what waits for what since when.
    """
    import anyio

    from enginectl import wiring
    from enginectl.condition import show
    from enginectl.running import concluded, run

    wired = wiring.wired(options(ctx))

    async def work(stop: anyio.CancelScope) -> Exit:
        with stop:
            return await show(wired, name, form)
        return Exit.INTERRUPTED

    return concluded(run(work), form)
