"""`engine run`: passes without end, until a signal stops them."""

from dataclasses import replace

import anyio

from engine.runtime import loop
from engine.runtime.logs import ReplaceableLog
from enginectl.actions import requirements
from enginectl.actions.reload import reload_of
from enginectl.base.errors import UsageError
from enginectl.base.exit_codes import Exit
from enginectl.wiring.cluster import connect, engine_of, lease_of, purpose_of
from enginectl.wiring.configuration import Wiring
from enginectl.wiring.scope import select


async def run_loop(wiring: Wiring, interval: float, stop: anyio.CancelScope, shards: int | None = None) -> Exit:
    """Reconcile until `stop` is cancelled, with a pass at least every `interval` seconds.

    `shards`: into how many shards the namespaces are divided; None: as the configuration says. Raises `UsageError` for several shards
    without leader election.
    """
    count = shards or wiring.settings.leader_election.shards
    if count > 1 and not wiring.settings.leader_election.enabled:
        raise UsageError(f"{count} shards need leader election: leaderElection.enabled is false")
    selection, log = select(wiring), ReplaceableLog(wiring.log)
    async with connect(wiring, log) as (client, provider):
        await requirements.require(wiring, provider, selection)
        engine, lease = engine_of(wiring, provider, selection), lease_of(wiring, client, purpose_of("run", (), selection))
        await loop.run(
            replace(engine, log=log), lease, log, interval=interval, stop=stop, reload=reload_of(wiring, selection, log), shards=count
        )
    return Exit.DONE
