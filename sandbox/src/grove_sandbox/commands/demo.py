"""`engine demo`: the life of an example on a sandbox of its own."""

from typing import Annotated

import typer


def demo(
    ctx: typer.Context,
    nodes: Annotated[int, typer.Option(min=1, max=100, help="Simulated nodes.")] = 4,
) -> int:
    """Show preview, sync, scaling and teardown of an example.

    The cluster is in memory and exists only while the demo runs: no Kubernetes is needed, and no other cluster is touched.
    """
    from grove_sandbox.commands.demo_steps import run_demo
    from grove_sandbox.product import OutputFormat, conclude, options, run_cancellable, wire

    wiring = wire(options(ctx))
    return conclude(run_cancellable(lambda: run_demo(wiring, nodes)), OutputFormat.TEXT)
