"""`engine demo`: the whole story in less than a minute, on a cluster of its own."""

from typing import Annotated

import typer

from enginectl.exits import Exit
from enginectl.options import Output, options


def demo(
    ctx: typer.Context,
    nodes: Annotated[int, typer.Option(min=1, max=100, help="Simulated nodes.")] = 4,
) -> Exit:
    """Watch an example go through preview, sync, scaling and teardown.

    On a cluster in memory that is gone afterwards; nothing outside is touched, and no Kubernetes is needed.
    """
    import anyio

    from enginectl import wiring
    from enginectl.running import concluded, run
    from enginectl.story import tell_story

    wired = wiring.wired(options(ctx))

    async def work(stop: anyio.CancelScope) -> Exit:
        with stop:
            return await tell_story(wired, nodes)
        return Exit.INTERRUPTED

    return concluded(run(work), Output.TEXT)
