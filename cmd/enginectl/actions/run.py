"""`engine run`: passes without end, until a signal stops them."""

from pathlib import Path

import anyio
from msgspec.structs import replace

from engine.runtime import loop
from engine.runtime.logs import ReplaceableLog
from engine.runtime.observers import Observers
from engine.runtime.passes import Pass
from enginectl.actions import requirements
from enginectl.actions.planning import report_of, shown_of_pass, shown_pass
from enginectl.actions.reload import reload_of
from enginectl.base.exit_codes import Exit
from enginectl.serving.debug import ShownPass
from enginectl.serving.loop_views import LoopViews
from enginectl.serving.observability import Observability
from enginectl.serving.serving import serving_of
from enginectl.wiring.cluster import connect, engine_of, lease_of, purpose_of, shard_count
from enginectl.wiring.configuration import Wiring
from enginectl.wiring.scope import select
from providers.profiling.profiler import profiled


async def run_loop(
    wiring: Wiring,
    interval: float,
    stop: anyio.CancelScope,
    *,
    shards: int | None = None,
    with_pages: bool = False,
    profile: Path | None = None,
) -> Exit:
    """Reconcile until `stop` is cancelled, with a pass at least every `interval` seconds; serve the endpoints meanwhile.

    `shards`: see `shard_count`. `with_pages`: serve pages about the workloads too.
    `profile`: the file to which is appended where the time goes.
    """
    count = shard_count(wiring, shards)
    selection, log = select(wiring), ReplaceableLog(wiring.log)
    election = wiring.settings.leader_election
    observability = Observability(wiring.clock, election.resource_name if election.enabled else "")
    metrics = observability.metrics
    with profiled(profile, wiring.clock, metrics.requests) as requests:
        async with connect(wiring, log, requests=requests, caches=metrics.caches) as (client, provider):
            await requirements.require(wiring, provider, selection)
            engine, lease = engine_of(wiring, provider, selection), lease_of(wiring, client, purpose_of("run", (), selection))
            views = LoopViews(wiring, show, with_pages=with_pages)
            endpoints = serving_of(wiring, selection, log, observability, views)
            observability.watch(provider)
            async with endpoints.served(), anyio.create_task_group() as tasks:
                tasks.start_soon(observability.heartbeat.run)
                await loop.run(
                    replace(engine, log=log, on_events=metrics.passes.published, reads_namespaces=False),
                    lease,
                    log,
                    interval=interval,
                    stop=stop,
                    reload=reload_of(wiring, selection, log, endpoints.use),
                    observer=Observers(observability.observer, views.observer),
                    shards=count,
                )
                tasks.cancel_scope.cancel()
    return Exit.DONE


def show(current: Pass) -> ShownPass:
    """A pass of the loop, as previews show it."""
    seen = shown_of_pass(current)
    return ShownPass(shown_pass(current, seen), report_of(seen))
