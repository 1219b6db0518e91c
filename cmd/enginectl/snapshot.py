"""`engine snapshot`: the observed world in a file."""

from pathlib import Path
from typing import Annotated

import typer

from enginectl.exits import Exit
from enginectl.options import Output, options


def snapshot(
    ctx: typer.Context,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Where to write; otherwise standard output.")] = None,
) -> Exit:
    """Write what is there to a file for `diff --against`.

    One YAML stream; secret data is masked, and other people's field ownership left out.
    """
    import anyio

    from enginectl import wiring
    from enginectl.running import concluded, run
    from enginectl.taking import taken

    wired = wiring.wired(options(ctx))

    async def work(stop: anyio.CancelScope) -> Exit:
        with stop:
            return await taken(wired, out)
        return Exit.INTERRUPTED

    return concluded(run(work), Output.JSON)
