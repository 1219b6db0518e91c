"""`engine run`: passes without end, until a signal stops them."""

from dataclasses import replace

import anyio

from engine.runtime import loop
from engine.runtime.logs import ReplaceableLog
from enginectl.actions import requirements
from enginectl.actions.reload import reload_of
from enginectl.base.exit_codes import Exit
from enginectl.wiring.cluster import connect, engine_of, lease_of, purpose_of, shard_count
from enginectl.wiring.configuration import Wiring
from enginectl.wiring.scope import select


async def run_loop(wiring: Wiring, interval: float, stop: anyio.CancelScope, shards: int | None = None) -> Exit:
    """Reconcile until `stop` is cancelled, with a pass at least every `interval` seconds.

    `shards`: see `shard_count`.
    """
    count = shard_count(wiring, shards)
    selection, log = select(wiring), ReplaceableLog(wiring.log)
    async with connect(wiring, log) as (client, provider):
        await requirements.require(wiring, provider, selection)
        engine, lease = engine_of(wiring, provider, selection), lease_of(wiring, client, purpose_of("run", (), selection))
        await loop.run(
            replace(engine, log=log), lease, log, interval=interval, stop=stop, reload=reload_of(wiring, selection, log), shards=count
        )
    return Exit.DONE
