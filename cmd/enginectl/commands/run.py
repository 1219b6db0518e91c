"""`engine run`: reconciles continuously."""

from typing import Annotated

import typer

from enginectl.base.exit_codes import Exit
from enginectl.base.options import options


def run(
    ctx: typer.Context,
    interval: Annotated[str, typer.Option(metavar="DURATION", help="Maximum time between two passes, e.g. 30s.")] = "60s",
) -> Exit:
    """Reconcile continuously, as the holder of the lease.

    A pass starts whenever something changes, and at least every --interval. All namespaces, unless -n names one.
    Ends in order on SIGTERM and SIGINT.
    """
    from enginectl.actions.run import run_loop
    from enginectl.base import runner
    from enginectl.base.durations import parse_seconds
    from enginectl.wiring.configuration import wire

    seconds = parse_seconds(interval, "--interval")
    wiring = wire(options(ctx))
    return runner.run(lambda stop: run_loop(wiring, seconds, stop))
