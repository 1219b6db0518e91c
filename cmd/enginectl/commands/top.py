"""`engine top`: nodes, GPUs, and the workloads on them."""

from typing import Annotated, Final

import typer

from enginectl.base.exit_codes import Exit
from enginectl.base.options import Format, OutputFormat, options
from enginectl.commands.completion import objects

EXAMPLES: Final = """
engine top                       # all nodes
engine top web --watch           # those of one set, again and again
"""


def top(
    ctx: typer.Context,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...",
            help="Only the nodes of these sets. Default: all nodes.",
            show_default=False,
            autocompletion=objects,
        ),
    ] = None,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Show it again whenever it changes, until Ctrl-C.")] = False,
    format: Format = OutputFormat.TEXT,
) -> Exit:
    """Show nodes with their GPUs, and the workloads on them.

    By rack (as a topology binding names them) and NVLink clique: the GPUs that pods request, those that are free, and the replicas and
    cliques on each node. Then the gangs that wait for room, and what they lack. -n: only nodes of sets in that namespace.
    """
    from enginectl.actions.top import show_top
    from enginectl.base.exit_codes import UsageError
    from enginectl.base.runner import conclude
    from enginectl.wiring.configuration import wire
    from enginectl.wiring.published_configuration import run_reading

    if watch and format is OutputFormat.JSON:
        raise UsageError("--watch is for people: leave out -o json, and call top again for another document")
    wiring = wire(options(ctx))
    chosen = tuple(names or ())
    return conclude(run_reading(wiring, lambda known: show_top(known, chosen, format, watch=watch)), format)
