"""`engine run`: reconciles continuously."""

from typing import Annotated

import typer

from enginectl.base.exit_codes import Exit
from enginectl.base.options import options


def run(
    ctx: typer.Context,
    interval: Annotated[str, typer.Option(metavar="DURATION", help="Maximum time between two passes, e.g. 30s.")] = "60s",
    ui: Annotated[bool, typer.Option("--ui", help="Serve read-only pages about the workloads beside /debug/plan.")] = False,
) -> Exit:
    """Reconcile continuously, as the holder of the lease.

    A pass starts whenever something changes, and at least every --interval. All namespaces, unless -n names one.
    In a pod, or with a section `server` in the configuration, it serves webhooks, probes, metrics and /debug/plan, the pending plan.
    Plans and the pages of --ui are shown to clients on the same machine (on the port of the metrics; from elsewhere with kubectl
    port-forward), and on the port of the webhooks to callers whose bearer token may get /debug/plan.

    Ends in order on SIGTERM and SIGINT.
    """
    from enginectl.actions.run import run_loop
    from enginectl.base import runner
    from enginectl.base.durations import parse_seconds
    from enginectl.wiring.configuration import wire

    seconds = parse_seconds(interval, "--interval")
    wiring = wire(options(ctx))
    return runner.run(lambda stop: run_loop(wiring, seconds, stop, with_pages=ui))
