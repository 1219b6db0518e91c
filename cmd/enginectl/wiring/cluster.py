"""Cluster: what previews compare with, and the engine that passes run with."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from msgspec.structs import replace

from engine.guard import Limits
from engine.report.printable import printable
from engine.runtime.clock import Clock
from engine.runtime.passes import Engine
from engine.runtime.provider import Provider
from enginectl.base.exit_codes import UsageError
from enginectl.wiring.configuration import Wiring, default_namespace
from enginectl.wiring.scope import Selection, scope_of
from providers.snapshot import Snapshot, read
from resources.ports.configuration import Configuration, unserved_without_a_cluster
from resources.registry import BLUEPRINTS

LIVE, EMPTY = "live", "empty"
"""Values of `--against`; any other value is the path of a snapshot."""
DEFAULT_LIMITS = Limits()


@asynccontextmanager
async def open_baseline(wiring: Wiring, against: str) -> AsyncIterator[tuple[Provider, tuple[str, ...]]]:
    """What a preview compares with, read-only: the cluster, a snapshot or nothing. And the namespaces to read by default (none: all)."""
    if against == LIVE:
        from enginectl.wiring.connection import connect
        from providers.read_only import ReadOnlyProvider

        async with connect(wiring) as (_, provider):
            yield ReadOnlyProvider(provider), (default_namespace(wiring),)
    else:
        empty = against == EMPTY
        yield Snapshot(unserved=unserved_without_a_cluster(wiring.configuration)) if empty else read_snapshot(Path(against)), ()


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
    tries_new: bool = False,
) -> Engine[Configuration]:
    """The engine that passes over the selection run with.

    `clock`, if given, is used instead of that of the wiring. `tries`: whether the server is asked to check pods of new templates,
    with `tries_new` also those that replace none.
    """
    configuration = wiring.configuration
    return Engine(
        provider,
        clock or wiring.clock,
        scope_of(configuration, selection),
        BLUEPRINTS,
        configuration,
        limits,
        log=wiring.log,
        reads_namespaces=True,
        tries=tries,
        tries_new=tries_new,
    )


def with_events(engine: Engine[Configuration]) -> Engine[Configuration]:
    """The engine of a command that writes: it publishes Kubernetes Events, which previews and readers do not."""
    from resources.reports.events import event_builder

    return replace(engine, events_of=event_builder(engine.configuration))
