"""`engine status`: the state of each workload."""

from typing import Annotated, Final

import typer

from enginectl.base.exit_codes import Exit
from enginectl.base.options import Excluded, Format, OutputFormat, Selectors, Targets, options
from enginectl.commands.completion import objects

EXAMPLES: Final = """
engine status                    # the workloads of the namespace
engine status web -n prod        # one of them
engine status --watch            # again and again
engine status -A --exit-code     # all; exit 0 only if all are settled
"""


def status(
    ctx: typer.Context,
    name: Annotated[
        str, typer.Argument(metavar="[KIND/]NAME", help="One workload. Default: all.", show_default=False, autocompletion=objects)
    ] = "",
    targets: Targets = None,
    selectors: Selectors = None,
    excluded: Excluded = None,
    format: Format = OutputFormat.TEXT,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Show it again whenever it changes, until Ctrl-C.")] = False,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="Exit with 0 only if everything is settled: 1 faulty, 3 denied, 8 not settled.")
    ] = False,
) -> Exit:
    """Show the state of each workload.

    Graphs and their services; replicas, gangs, pods and domains of sets; and what is not settled, why and since when.
    If the namespaces are divided into shards: also who holds which.
    """
    from enginectl.actions.status import show_status
    from enginectl.base.exit_codes import UsageError
    from enginectl.base.runner import conclude
    from enginectl.input.roots import NO_ROOTS
    from enginectl.input.targets import Words, focus_on
    from enginectl.wiring.configuration import Wiring, wire
    from enginectl.wiring.published_configuration import run_reading

    if watch and (format is OutputFormat.JSON or exit_code):
        raise UsageError("--watch is for people: leave out -o json and --exit-code, or call status again for another answer")
    wiring = wire(options(ctx))
    named = [name] if "/" in name else []
    _, focus = focus_on(NO_ROOTS, Words([*(targets or ()), *named], selectors or (), excluded or ()))

    async def work(known: Wiring) -> Exit:
        return await show_status(known, "" if named else name, format, focus=focus, detailed=exit_code, watch=watch)

    return conclude(run_reading(wiring, work), format)
