"""`engine demo`: the life of an example on a sandbox of its own."""

from typing import Annotated

import typer

from enginectl.base.exit_codes import Exit
from enginectl.base.options import OutputFormat, options


def demo(
    ctx: typer.Context,
    nodes: Annotated[int, typer.Option(min=1, max=100, help="Simulated nodes.")] = 4,
) -> Exit:
    """Show preview, sync, scaling and teardown of an example.

    The cluster is in memory and exists only while the demo runs: no Kubernetes is needed, and no other cluster is touched.
    """
    from enginectl.base.extras import require_sandbox
    from enginectl.base.runner import conclude, run_cancellable
    from enginectl.wiring.configuration import wire

    require_sandbox()
    from enginectl.actions.demo import run_demo

    wiring = wire(options(ctx))

    return conclude(run_cancellable(lambda: run_demo(wiring, nodes)), OutputFormat.TEXT)
