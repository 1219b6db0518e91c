"""Cluster: the connection, the engine and the lease that commands use, and the snapshot that can stand in for a cluster."""

import os
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from engine.focus import EVERYTHING, Focus
from engine.guard import Limits
from engine.report.printable import printable
from engine.runtime.client import Client
from engine.runtime.clock import Clock
from engine.runtime.lease import Durations, Lease
from engine.runtime.lease_holder import identify
from engine.runtime.logs import Log
from engine.runtime.passes import Engine
from engine.runtime.provider import Provider
from enginectl.base.errors import UsageError
from enginectl.wiring.configuration import Wiring, default_namespace, pod_namespace
from enginectl.wiring.scope import Selection, scope_of
from providers.cache_state import CachingProvider, InformerObserver
from providers.kubernetes.request_observer import RequestObserver
from providers.read_only import ReadOnlyProvider
from providers.snapshot import EMPTY as EMPTY_CLUSTER
from providers.snapshot import Snapshot, read
from resources import settings
from resources.install.publication import place_of
from resources.registry import BLUEPRINTS
from resources.reports.events import event_builder

LIVE, EMPTY = "live", "empty"
"""Values of `--against`; any other value is the path of a snapshot."""
DEFAULT_LIMITS = Limits()
MAX_NAMES = 3
"""Files and namespaces that the purpose of a lease names; of others the number is given."""


@asynccontextmanager
async def connect(
    wiring: Wiring, log: Log | None = None, *, requests: RequestObserver | None = None, caches: InformerObserver | None = None
) -> AsyncIterator[tuple[Client, CachingProvider]]:
    """The cluster of the options. Raises `InputError` if there is none, with a message that says what to do.

    A connection that the wiring has is used, and stays open. `log`, if given, is used instead of the log of the options. `requests` and
    `caches` are told of every request, list and watch.
    """
    # Imported here: it takes a third of a second, which a preview without a cluster does not need.
    from providers.divided_watch import DivisibleCluster
    from providers.kubernetes.connect import connected

    if wiring.client is not None:
        yield wiring.client, DivisibleCluster(wiring.client, wiring.clock, log or wiring.log, caches)
        return
    async with connected(wiring.source, wiring.clock, observer=requests) as client:
        yield client, DivisibleCluster(client, wiring.clock, log or wiring.log, caches)


@asynccontextmanager
async def open_baseline(wiring: Wiring, against: str) -> AsyncIterator[tuple[Provider, tuple[str, ...]]]:
    """What a preview compares with, read-only: the cluster, a snapshot or nothing. And the namespaces to read by default (none: all)."""
    if against == LIVE:
        async with connect(wiring) as (_, provider):
            yield ReadOnlyProvider(provider), (default_namespace(wiring),)
    else:
        yield EMPTY_CLUSTER if against == EMPTY else read_snapshot(Path(against)), ()


def read_snapshot(path: Path) -> Snapshot:
    """The snapshot in a file. Raises `UsageError` if there is no such file, and `InputError` if it is no snapshot."""
    if not path.is_file():
        raise UsageError(f"--against {printable(str(path))}: no such file; it takes {LIVE}, {EMPTY} or a snapshot")
    return read(path)


def engine_of(
    wiring: Wiring,
    provider: Provider,
    selection: Selection,
    limits: Limits = DEFAULT_LIMITS,
    *,
    clock: Clock | None = None,
    tries: bool = True,
) -> Engine:
    """The engine that passes over the selection run with.

    `clock`, if given, is used instead of that of the wiring. `tries`: whether the server is asked to check pods of new templates.
    """
    configuration = wiring.configuration
    return Engine(
        provider,
        clock or wiring.clock,
        scope_of(configuration, selection),
        BLUEPRINTS,
        configuration,
        limits,
        events_of=event_builder(configuration),
        log=wiring.log,
        reads_namespaces=True,
        tries=tries,
    )


def lease_of(wiring: Wiring, client: Client, purpose: str) -> Lease | None:
    """The lease that every writer holds; None if the configuration disables leader election.

    Its place depends on the configuration only, never on who runs the command or where. `purpose` tells others what it is held for.
    """
    election = wiring.settings.leader_election
    if (place := place_of(election)) is None:
        return None
    durations = Durations(*map(settings.seconds, (election.lease_duration, election.renew_deadline, election.retry_period)))
    return Lease(client, wiring.clock, place.namespace, place.name, identify(own_pod()), durations, purpose)


def shard_count(wiring: Wiring, given: int | None) -> int:
    """Into how many shards `run` divides the namespaces. `given`: by the option of the command line; None: as the configuration says.

    Raises `UsageError` for several shards without leader election.
    """
    election = wiring.settings.leader_election
    count = given or election.shards
    if count > 1 and not election.enabled:
        raise UsageError(f"{count} shards need leader election: leaderElection.enabled is false")
    return count


def own_pod() -> str:
    """`namespace/name` of the pod that this process runs in; empty outside a pod."""
    namespace = pod_namespace()
    return f"{namespace}/{os.environ.get('POD_NAME') or socket.gethostname()}" if namespace else ""


def purpose_of(command: str, files: Sequence[Path], selection: Selection, focus: Focus = EVERYTHING) -> str:
    """What a command holds the lease for, e.g. `sync -f racks.yaml in namespace x`. Of files only their names, which say enough."""
    names = [f"-f {file.name or file}" for file in files]
    names += [f"--target {target}" for target in focus.targets] + [f"-l {selector.text}" for selector in focus.selectors]
    names += [f"--exclude {target}" for target in focus.excluded]
    namespaces = selection.namespaces
    place = f"in namespace{'s' if len(namespaces) > 1 else ''} {_first(namespaces, ', ')}" if namespaces else "in all namespaces"
    return " ".join(part for part in (command, _first(names, " "), place) if part)


def _first(words: Sequence[str], separator: str) -> str:
    """At most `MAX_NAMES` of the words, and how many more there are."""
    more = f" and {len(words) - MAX_NAMES} more" if len(words) > MAX_NAMES else ""
    return f"{separator.join(words[:MAX_NAMES])}{more}"
