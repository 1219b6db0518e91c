"""Wiring: the only place that picks implementations: which blueprints, which clock, which provider, which lease."""

import os
import sys
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from engine.errors import ClusterError, InputError
from engine.guard import Limits
from engine.ids import Kind, ResourceId
from engine.report.printable import printable
from engine.resource import Body
from engine.runtime.client import Client
from engine.runtime.clock import Clock, SystemClock
from engine.runtime.identity import identify
from engine.runtime.lease import Durations, Lease
from engine.runtime.logs import Log, logger
from engine.runtime.passes import Engine
from engine.runtime.provider import Provider, Scope
from enginectl import output
from enginectl.manifest_files import Wanted, content, wanted
from enginectl.manifest_files import manifests as read_manifests
from enginectl.options import Options
from enginectl.running import Misuse
from providers.documents import read_documents
from providers.kubernetes.kubeconfig import Source, target
from providers.looking import ReadOnlyProvider
from providers.registry import SCHEDULERS, fabrics
from providers.snapshot import EMPTY, Snapshot, read
from resources import settings
from resources.ports.configuration import WAITER, Configuration, pinned
from resources.registry import BLUEPRINTS
from resources.reports.events import event_builder
from resources.schema.issues import Issue, Rejected
from resources.schema.parse import faults

ROOTS = tuple(blueprint.kind for blueprint in BLUEPRINTS)
NEEDED = tuple(kind for kind in ROOTS if kind.namespaced)
"""The roots without which a cluster has nothing to look after; it may be older than the others."""
USUAL = Limits()
LIVE, NOTHING = "live", "empty"
WAITER_VARIABLE = "GROVE_INIT_CONTAINER_IMAGE"
HOME = "default"
"""The namespace of a manifest that names none where no cluster says otherwise, and of the lease where no configuration does."""


@dataclass(frozen=True, slots=True)
class Wiring:
    """What the options and the configuration amount to."""

    options: Options
    settings: settings.Settings
    setup: Configuration
    clock: Clock

    @property
    def source(self) -> Source:
        """Where to look for a cluster."""
        return Source(str(self.options.kubeconfig or ""), self.options.context)

    @property
    def log(self) -> Log:
        """Where events are told."""
        asked, said = self.options.log_format, self.settings.log_format if "log_format" in self.settings.model_fields_set else None
        verbose = self.options.verbose or self.settings.log_level == "debug"
        return logger(sys.stderr, format=asked.value if asked else said, verbose=verbose, colour=output.coloured(sys.stderr))


def wired(options: Options) -> Wiring:
    """The wiring for these options. Raises `Misuse` and `InputError`."""
    if options.namespace and options.all_namespaces:
        raise Misuse("--namespace and --all-namespaces exclude each other")
    chosen = configuration(options.config) if options.config else settings.Settings()
    return Wiring(options, chosen, setup(chosen), SystemClock())


def setup(chosen: settings.Settings) -> Configuration:
    """What workloads depend on: the scheduler back ends that are both configured and there, and the image in which pods wait.

    What is not there is told on stderr.
    """
    schedulers = chosen.scheduler
    for name in schedulers.names:
        if name not in SCHEDULERS:
            output.tell(f"the scheduler {name} is configured, but there is no back end for it here: workloads that name it are refused")
    there = {name: SCHEDULERS[name] for name in schedulers.names if name in SCHEDULERS}
    return Configuration(
        there,
        schedulers.default_profile_name,
        waiter(chosen.init_container.image),
        topology=chosen.topology_aware_scheduling.enabled,
        fabrics=fabrics(chosen),
        drain=timedelta(seconds=settings.seconds(chosen.network.domain_drain_timeout)),
    )


def waiter(configured: str) -> str:
    """The image in which pods wait: what the environment says, else the configuration, else this release's own."""
    return pinned(os.environ.get(WAITER_VARIABLE, "").strip() or configured or WAITER)


def configuration(path: Path) -> settings.Settings:
    """The operator configuration in a file; what it says beyond what is known is told on stderr."""
    documents = list(read_documents(content(path), str(path)))
    try:
        chosen, unknown = settings.read(documents[0].value if documents else {})
    except Rejected as rejected:
        raise Misuse("\n".join(f"{documents[0].place(tuple(map(str, issue.path)))}: {issue}" for issue in rejected.issues)) from None
    for key in unknown:
        output.tell(f"{path}: {key} is not known here and ignored")
    return chosen


def manifests(wiring: Wiring, files: Sequence[Path], *, against: str = LIVE) -> Wanted:
    """The roots that the files ask for; what else lies in them is told on stderr."""
    options = wiring.options
    read = list(read_manifests(files))
    own = options.namespace or (home(wiring) if against == LIVE and read else HOME)
    found = wanted(read, ROOTS, check, namespace=own, forced=bool(options.namespace))
    for note in found.notes:
        output.tell(f"note: {note}")
    return found


def home(wiring: Wiring) -> str:
    """The namespace that the kubeconfig, or the pod that we run in, says we are in. Raises `InputError` when there is no cluster."""
    return target(wiring.source).namespace


def check(kind: Kind, body: Body) -> Sequence[Issue]:
    """What is wrong with a manifest of one of the roots."""
    return faults(kind, body)


@dataclass(frozen=True, slots=True)
class Where:
    """Where to look: in which namespaces (none: everywhere), and for roots of which kinds."""

    namespaces: tuple[str, ...] = ()
    roots: tuple[Kind, ...] = ROOTS


EVERYWHERE = Where()


def where(wiring: Wiring, files: Wanted, *, otherwise: Iterable[str] = ()) -> Where:
    """Where to look. Files alone say it when no option does.

    Roots that are in no namespace belong to nobody's in particular: they are looked at with everything, or where a file holds one.
    """
    options = wiring.options
    named = (options.namespace,) if options.namespace else files.namespaces or tuple(otherwise)
    if options.all_namespaces or not named:
        return EVERYWHERE
    return Where(named, tuple(kind for kind in ROOTS if kind.namespaced or kind.name in files.kinds))


def scope(setup: Configuration, where: Where = EVERYWHERE) -> Scope:
    """Roots, children and what tells them, and what they refer to, as the blueprints have it."""
    blueprints = [blueprint for blueprint in BLUEPRINTS if blueprint.kind in where.roots]
    children = tuple(dict.fromkeys(kind for blueprint in blueprints for kind in blueprint.children(setup)))
    references = tuple(dict.fromkeys(kind for blueprint in blueprints for kind in blueprint.references(setup)))
    (selector,) = {blueprint.selector for blueprint in blueprints}
    return Scope(where.roots, children, selector, where.namespaces, references)


def engine_of(wiring: Wiring, provider: Provider, where: Where, limits: Limits = USUAL) -> Engine:
    """What passes need."""
    return Engine(
        provider, wiring.clock, scope(wiring.setup, where), BLUEPRINTS, wiring.setup, limits, events_of=event_builder(wiring.setup)
    )


def part_of(root: ResourceId, child: ResourceId) -> str:
    """The part of a root that a child belongs to, as a reader calls it; empty for what the root has once."""
    blueprint = next(blueprint for blueprint in BLUEPRINTS if blueprint.kind.name == root.kind)
    part = blueprint.part_of(root, child)
    return f"replica {part}" if part.isdecimal() else ""


@asynccontextmanager
async def cluster(wiring: Wiring) -> AsyncIterator[tuple[Client, Provider]]:
    """The cluster that the options lead to. Raises `InputError` when there is none, in a line that says what to do."""
    # A third of a second to import, which a preview without a cluster need not pay.
    from providers.kubernetes.connect import connected
    from providers.watched import WatchingCluster

    async with connected(wiring.source, wiring.clock) as client:
        yield client, WatchingCluster(client, wiring.clock)


async def unserved(provider: Provider, roots: Iterable[Kind] = NEEDED) -> str:
    """What to do where the cluster does not know these roots; empty where it does, or where nobody can tell."""
    try:
        unknown = [kind for kind in roots if not await provider.serves(kind)]
    except ClusterError:
        return ""  # Whatever ails the server, the look itself meets it and says it better.
    names = ", ".join(f"{kind.name} ({kind.api_version})" for kind in unknown)
    return f"the cluster does not serve {names}: first `engine manifests crds | kubectl apply --server-side -f -`" if names else ""


async def require_roots(provider: Provider, where: Where) -> None:
    """Raise `InputError`, with what to do, where the cluster does not know the roots without which there is nothing to look after.

    It may be older than the others: those are told of, and left out.
    """
    if what_to_do := await unserved(provider):
        raise InputError(what_to_do)
    if what_to_do := await unserved(provider, where.roots):
        output.tell(f"note: {what_to_do}")


@asynccontextmanager
async def world(wiring: Wiring, against: str) -> AsyncIterator[tuple[Provider, tuple[str, ...]]]:
    """What a preview looks at (a cluster, a snapshot or nothing), and the namespaces that it means when nobody says any."""
    if against == LIVE:
        async with cluster(wiring) as (_, provider):
            yield ReadOnlyProvider(provider), (home(wiring),)
    else:
        yield EMPTY if against == NOTHING else snapshot(Path(against)), ()


def snapshot(path: Path) -> Snapshot:
    """The snapshot in a file. Raises `Misuse` when there is none, and `InputError` when it is none."""
    if not path.is_file():
        raise Misuse(f"--against {printable(str(path))}: no such file; it takes {LIVE}, {NOTHING} or a snapshot")
    return read(path)


def lease(wiring: Wiring, client: Client) -> Lease:
    """The lease that every writer holds, wherever it runs: its place does not depend on who asks."""
    election = wiring.settings.leader_election
    durations = Durations(*map(settings.seconds, (election.lease_duration, election.renew_deadline, election.retry_period)))
    return Lease(client, wiring.clock, election.resource_namespace or HOME, election.resource_name, identify(), durations)
