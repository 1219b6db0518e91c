"""`engine run`: passes without end, until a signal stops them."""

from functools import partial
from pathlib import Path

import anyio
from msgspec.structs import replace

from engine.memory_budget import bytes_for_objects
from engine.report.printable import clipped
from engine.runtime import loop
from engine.runtime.logs import ReplaceableLog
from engine.runtime.observers import Observers
from engine.runtime.passes import Pass
from engine.runtime.provider import TRANSIENT, Client
from enginectl.actions import requirements
from enginectl.actions.planning import first_pass_of, shown_of_pass, shown_pass
from enginectl.actions.publishing import Publisher
from enginectl.actions.reload import reload_of
from enginectl.base.exit_codes import Exit, MissingRequirement
from enginectl.output.node_table import Top
from enginectl.serving.debug import ShownPass
from enginectl.serving.loop_views import LoopViews
from enginectl.serving.observability import Observability
from enginectl.serving.serving import serving_of
from enginectl.wiring.cluster import engine_of, with_events
from enginectl.wiring.configuration import Wiring, pod_namespace
from enginectl.wiring.connection import connect
from enginectl.wiring.leases import lease_of, purpose_of, renewing, shard_count
from enginectl.wiring.published_configuration import KnownConfiguration, known_configuration, log_configuration
from enginectl.wiring.scope import Selection, select
from enginectl.wiring.tracing import traced
from providers.cluster import Cluster
from providers.metrics.process import memory_limit
from providers.profiling.profiler import profiled
from providers.read_only import ReadOnlyProvider
from resources.install.publication import CALLED, NAME, NAMESPACE
from resources.ports.configuration import Configuration
from resources.preview.pod_patterns import with_patterns
from resources.preview.shown import Shown

SHORTEST_PAUSE, LONGEST_PAUSE = 0.5, 5.0
"""Seconds between two attempts to read the configuration while the server does not answer."""


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
    `profile`: the file to which a time profile is appended.

    Raises `MissingRequirement` beside another installation and beside Grove's operator, also if these are started later.
    """
    shard_count(wiring, shards)  # What the command line rules out needs no cluster.
    known = await configuration_of_run(wiring, stop)
    if known is None:
        return Exit.DONE
    wiring = known.wiring
    count = shard_count(wiring, shards)
    selection, log = select(wiring), ReplaceableLog(wiring.log)
    election = wiring.settings.leader_election
    observability = Observability(wiring.clock, election.resource_name if election.enabled else "")
    metrics = observability.metrics
    with profiled(profile, wiring.clock, metrics.requests) as requests, traced(wiring.clock, log) as tracing:
        async with (
            renewing(wiring, log, requests=metrics.requests) as renewal,
            connect(wiring, log, requests=requests, caches=metrics.caches) as (client, provider),
        ):
            await requirements.require(wiring, provider, selection)
            engine = with_events(engine_of(wiring, provider, selection))
            lease = lease_of(wiring, client, purpose_of("run", (), selection), renewal)
            publisher = Publisher(wiring, client, log, namespace=pod_namespace(), shards=count, on_moved=stop.cancel)
            views = LoopViews(wiring, show, partial(foreseen, wiring, selection), partial(seen_nodes, wiring), with_pages=with_pages)
            endpoints = serving_of(wiring, selection, log, observability, views)
            observability.watch(provider)
            async with endpoints.served(), anyio.create_task_group() as tasks:
                tasks.start_soon(observability.heartbeat.run)
                tasks.start_soon(publisher.run)
                await loop.run(
                    replace(
                        engine,
                        log=log,
                        on_events=metrics.passes.published,
                        reads_namespaces=False,
                        looks_up_new=False,
                        memory_for_objects=partial(memory_for_objects, memory_limit()),
                    ),
                    lease,
                    log,
                    interval=interval,
                    stop=stop,
                    reload=reload_of(wiring, selection, log, endpoints.use, publisher.use, installed=known.installed),
                    observer=Observers(observability.observer, views.observer, publisher, *tracing),
                    shards=count,
                )
                tasks.cancel_scope.cancel()
    if publisher.moved:
        raise MissingRequirement(publisher.moved)
    return Exit.DONE


def memory_for_objects(memory: int) -> int | None:
    """How many bytes a process with that memory limit, in bytes, has for objects; None for 0, which is no limit."""
    return bytes_for_objects(memory) if memory else None


def show(current: Pass[Configuration]) -> ShownPass:
    """A pass of the loop, as previews show it."""
    return shown_to_people(current, shown_of_pass(current))


async def foreseen(wiring: Wiring, selection: Selection, current: Pass[Configuration], client: Client) -> ShownPass:
    """A pass of the loop with its forecast, as `diff` shows it. The facts that it needs are read with this client; nothing is written."""
    from enginectl.actions.facts import with_requirements  # Only some requests need it.
    from enginectl.actions.preview import shown_and_facts

    engine = replace(engine_of(wiring, ReadOnlyProvider(Cluster(client, wiring.clock)), selection), configuration=current.configuration)
    first = await with_requirements(engine, first_pass_of(current))
    seen, _ = await shown_and_facts(wiring, engine, first, in_thread=True)
    return shown_to_people(current, seen)


async def seen_nodes(wiring: Wiring, current: Pass[Configuration], client: Client, namespace: str, name: str) -> Top:
    """The nodes of the cluster and the workloads on them, as `engine top` shows them. They are read with this client."""
    from enginectl.actions.top import top_of  # Only some requests need it.

    return await top_of(current, ReadOnlyProvider(Cluster(client, wiring.clock)), (name,) if name else (), namespace)


def shown_to_people(current: Pass[Configuration], seen: Shown) -> ShownPass:
    """A pass with what is shown of it."""
    return ShownPass(shown_pass(current, seen), with_patterns(seen.report), seen.notices)


async def configuration_of_run(wiring: Wiring, stop: anyio.CancelScope) -> KnownConfiguration | None:
    """The configuration of this process, once the server answers; None if `stop` is cancelled before.

    Raises `MissingRequirement` beside another installation, or beside Grove's operator.
    """
    pause = SHORTEST_PAUSE
    async with connect(wiring) as (client, _):
        while not stop.cancel_called:
            try:
                known = await known_configuration(wiring, client, writes=True)
            except TRANSIENT as error:
                wiring.log.warning("configuration not read", error=error, retry_in=pause)
                await wiring.clock.sleep(pause)
                pause = min(LONGEST_PAUSE, pause * 2)
                continue
            require_own_namespace(known)
            log_configuration(known)
            return known
    return None


def require_own_namespace(known: KnownConfiguration) -> None:
    """Raise `MissingRequirement` if this process runs in a pod, and the installation of the cluster in another namespace."""
    own = pod_namespace()
    if own and known.namespace not in ("", own):
        raise MissingRequirement(
            f"this process runs in {own}, and the engine is installed in {clipped(known.namespace, 80)} ({CALLED}): one installation per "
            f"cluster; remove one of them, and if that one is gone: kubectl -n {NAMESPACE} delete configmap {NAME}"
        )
