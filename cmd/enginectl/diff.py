"""`engine diff`: what the next sync would do."""

from pathlib import Path
from typing import Annotated

import typer

from enginectl.exits import Exit
from enginectl.options import Output, options

Files = Annotated[
    list[Path] | None,
    typer.Option("--filename", "-f", metavar="FILE|DIR", help="Manifests, as if applied; - for standard input. Repeatable."),
]
Form = Annotated[Output, typer.Option("--output", "-o", help="For people, or one JSON document.")]


def diff(
    ctx: typer.Context,
    files: Files = None,
    against: Annotated[str, typer.Option(metavar="live|empty|SNAPSHOT", help="What to compare with.")] = "live",
    form: Form = Output.TEXT,
    detailed_exitcode: Annotated[bool, typer.Option("--detailed-exitcode", help="Exit 2 when there are changes.")] = False,
) -> Exit:
    """Show what the next sync would do, and why.

    Every operation has its reason, and nothing is written. With -f: as if these manifests were applied first; pods of a
    workload that does not exist yet have names in which its namespace and name stand for its uid.
    """
    import anyio

    from enginectl import wiring
    from enginectl.preview import preview
    from enginectl.running import concluded, run

    wired = wiring.wired(options(ctx))
    wanted = wiring.manifests(wired, files or (), against=against)

    async def work(stop: anyio.CancelScope) -> Exit:
        with stop:
            return await preview(wired, wanted, against, form, detailed=detailed_exitcode)
        return Exit.INTERRUPTED

    return concluded(run(work), form)
