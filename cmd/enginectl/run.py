"""`engine run`: pass after pass, for ever."""

from typing import Annotated

import typer

from enginectl.exits import Exit
from enginectl.options import options


def run(
    ctx: typer.Context,
    interval: Annotated[str, typer.Option(metavar="DURATION", help="A full pass at least this often, as in 30s.")] = "60s",
) -> Exit:
    """Keep the cluster as desired, for ever.

    Lead, look, plan, apply, again and again, in all namespaces unless one is named.
    Ends in order on SIGTERM and SIGINT.
    """
    import anyio

    from engine.runtime import loop
    from enginectl import fitness, running, wiring
    from enginectl.manifest_files import NO_FILES
    from enginectl.values import seconds

    every = seconds(interval, "--interval")
    wired = wiring.wired(options(ctx))

    async def work(stop: anyio.CancelScope) -> Exit:
        where = wiring.where(wired, NO_FILES)
        async with wiring.cluster(wired) as (client, provider):
            await wiring.require_roots(provider, where)
            await fitness.require(wired, provider)
            engine = wiring.engine_of(wired, provider, where)
            await loop.run(engine, wiring.lease(wired, client), wired.log, interval=every, stop=stop)
        return Exit.DONE

    return running.run(work)
