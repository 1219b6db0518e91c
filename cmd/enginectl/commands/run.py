"""`engine run`: reconciles continuously."""

from pathlib import Path
from typing import Annotated, Final

import typer

from enginectl.base.exit_codes import Exit
from enginectl.base.options import options

MAX_SHARDS = 100
"""That of `engine.shards`, which is not imported here so that `engine --help` is fast."""


EXAMPLES: Final = """
engine run                       # all namespaces, until Ctrl-C
engine run -n prod --ui          # one namespace, with pages about its workloads
"""


def run(
    ctx: typer.Context,
    interval: Annotated[str, typer.Option(metavar="DURATION", help="Maximum time between two passes, e.g. 30s.")] = "60s",
    shards: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=MAX_SHARDS,
            metavar="N",
            help="Divide the namespaces into N shards with a lease each. Default: leaderElection.shards of the configuration, or 1.",
            show_default=False,
        ),
    ] = None,
    profile: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Append a time profile to FILE: what the process did (planning, waiting, …), as JSON lines of 0.1 s."
        ),
    ] = None,
    ui: Annotated[bool, typer.Option("--ui", help="Serve read-only pages about the workloads beside /debug/plan.")] = False,
) -> Exit:
    """Reconcile continuously, as the holder of the lease.

    With --shards the namespaces are divided among the replicas that run: each holds the leases of its share, and takes over those of a dead
    one. Another number than that of running replicas waits until they have ended.

    A pass starts whenever something changes, and at least every --interval. All namespaces, unless -n names one.
    In a pod, or with a section `server` in the configuration, it serves webhooks, probes, metrics and /debug/plan, the pending plan.
    Plans and the pages of --ui are shown to clients on the same machine (on the port of the metrics; from elsewhere with kubectl
    port-forward), and on the port of the webhooks to callers whose bearer token may get /debug/plan.

    Ends in order on SIGTERM and SIGINT.
    """
    from enginectl.actions.run import run_loop
    from enginectl.base import runner
    from enginectl.base.options import parse_seconds
    from enginectl.wiring.configuration import wire

    seconds = parse_seconds(interval, "--interval")
    wiring = wire(options(ctx))
    return runner.run(lambda stop: run_loop(wiring, seconds, stop, shards=shards, with_pages=ui, profile=profile))
