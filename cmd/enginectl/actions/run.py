"""`engine run`: passes without end, until a signal stops them."""

import anyio

from engine.runtime import loop
from enginectl.actions import requirements
from enginectl.base.exit_codes import Exit
from enginectl.wiring.cluster import connect, engine_of, lease_of, purpose_of
from enginectl.wiring.configuration import Wiring
from enginectl.wiring.scope import select


async def run_loop(wiring: Wiring, interval: float, stop: anyio.CancelScope) -> Exit:
    """Reconcile until `stop` is cancelled, with a pass at least every `interval` seconds."""
    selection = select(wiring)
    async with connect(wiring) as (client, provider):
        await requirements.require(wiring, provider, selection)
        lease = lease_of(wiring, client, purpose_of("run", (), selection))
        await loop.run(engine_of(wiring, provider, selection), lease, wiring.log, interval=interval, stop=stop)
    return Exit.DONE
