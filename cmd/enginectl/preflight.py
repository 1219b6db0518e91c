"""`engine preflight`: what a cluster has and lacks for what is configured."""

import typer

from enginectl.diff import Form
from enginectl.exits import Exit
from enginectl.options import Output, options


def preflight(ctx: typer.Context, form: Form = Output.TEXT) -> Exit:
    """Show what the cluster has and lacks for what is configured.

    Kinds, permissions, drivers, leftovers; each with what to do about it. Exits with 7 where nothing can work. Writes nothing.
    """
    import anyio

    from enginectl import wiring
    from enginectl.preflighting import inspected
    from enginectl.running import concluded, run

    wired = wiring.wired(options(ctx))

    async def work(stop: anyio.CancelScope) -> Exit:
        with stop:
            return await inspected(wired, form)
        return Exit.INTERRUPTED

    return concluded(run(work), form)
