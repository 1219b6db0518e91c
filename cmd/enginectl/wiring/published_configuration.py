"""Published configuration: what a command works with: `--config`, or the configuration that the installation of the cluster publishes.

It is read by its name, once for each command, and before anything else is read: what is listed depends on it.
"""

from collections.abc import Awaitable, Callable, Iterator
from enum import StrEnum
from typing import Final

from anyio import CancelScope
from msgspec import Struct
from msgspec.structs import replace

from engine.errors import Forbidden, NotFound
from engine.report.printable import clipped, printable
from engine.resource import Body
from engine.runtime.provider import Client
from engine.version import VERSION
from enginectl.base import terminal
from enginectl.base.exit_codes import Exit, MissingRequirement
from enginectl.base.runner import run, run_cancellable, unsettled_if_late
from enginectl.wiring.configuration import Wiring, with_settings
from enginectl.wiring.configuration_file import configuration_in
from enginectl.wiring.scope import called
from resources.base.kinds import CONFIG_MAP
from resources.install.publication import (
    CALLED,
    FILE,
    NAME,
    NAMESPACE,
    InstallationRecord,
    LeasePlace,
    differences,
    place_faults,
    place_of,
    publication_in,
    published,
    value_of,
)
from resources.settings import LeaderElection, Settings

WIDTH: Final = 200
"""Characters that are shown of what the server or the object says."""
MAX_FAULTS: Final = 5
"""Faults of the object that a message names."""
INSTALL: Final = "helm upgrade, or `engine manifests all`"
OTHERWISE: Final = "name the configuration with --config FILE"
CHECKED: Final = "the configuration was known"


class PublicationState(StrEnum):
    """What came of reading the object."""

    FOUND = "found"
    ABSENT = "absent"
    FORBIDDEN = "forbidden"
    UNUSABLE = "unusable"
    """It exists, and is no valid configuration."""


class PublishedConfiguration(Struct, frozen=True):
    """What the installation of a cluster publishes."""

    state: PublicationState
    settings: Settings = Settings.model_construct()
    """The defaults unless it was found."""
    publication: InstallationRecord = InstallationRecord({})
    faults: tuple[str, ...] = ()
    """Why it could not be read, or what is wrong with it."""
    unknown: tuple[str, ...] = ()
    """Warnings about fields that this release does not know."""


class KnownConfiguration(Struct, frozen=True):
    """The configuration that a command works with."""

    wiring: Wiring
    source: str
    """Where it comes from, in a few words that are safe to print."""
    remarks: tuple[str, ...] = ()
    installed: LeaderElection | None = None
    """The leader election of the installation; None if there is none, or if it could not be read."""
    namespace: str = ""
    """The namespace in which the installation runs; empty if that is not known."""


def run_reading(wiring: Wiring, work: Callable[[Wiring], Awaitable[Exit]], *, give_up_at: float | None = None) -> Exit:
    """Run the work of a command that only reads, as `with_configuration` does it. A signal may cancel it at any point."""
    return run_cancellable(lambda: with_configuration(wiring, work, give_up_at=give_up_at))


def run_writing(
    wiring: Wiring, work: Callable[[Wiring, CancelScope], Awaitable[Exit]], *, give_up_at: float, runs_again: bool = False
) -> Exit:
    """Run the work of a command that writes, as `with_configuration` does it. A signal cancels the scope, see `run`.

    `runs_again`: for a job that continues later, it is no failure if the time is over before its first pass.
    """

    async def with_scope(stop: CancelScope) -> Exit:
        return await with_configuration(wiring, lambda known: work(known, stop), writes=True, give_up_at=give_up_at)

    return run(unsettled_if_late(with_scope) if runs_again else with_scope)


async def with_configuration(
    wiring: Wiring, work: Callable[[Wiring], Awaitable[Exit]], *, writes: bool = False, give_up_at: float | None = None
) -> Exit:
    """Do the work over one connection, with the configuration of `--config` or of the installation. One line says which it is.

    Raises `MissingRequirement` if it cannot be known (`known_configuration`), the cluster's errors, and `TimedOut` when the monotonic clock
    reaches `give_up_at` before it is known.
    """
    from enginectl.wiring.connection import connect

    async with connect(wiring) as (client, _):

        async def know() -> KnownConfiguration:
            return await known_configuration(wiring, client, writes=writes)

        if give_up_at is None:
            known = await know()
        else:
            from engine.runtime.clock import in_time

            known = await in_time(wiring.clock, give_up_at, know, CHECKED)
        tell(known)
        return await work(replace(known.wiring, client=client))


def tell(known: KnownConfiguration) -> None:
    """Write to stderr which configuration is used: as text, or, if a format of the log was chosen, as a line of the log."""
    if known.wiring.options.log_format:
        log_configuration(known)
        return
    managed = known.wiring.configuration.namespaces
    terminal.remark(f"configuration: {known.source}" + (f"; only for the namespaces {called(managed)}" if managed else ""))
    for note in known.remarks:
        terminal.note(note)


def log_configuration(known: KnownConfiguration) -> None:
    """Write the same as lines of the log."""
    log = known.wiring.log
    managed = known.wiring.configuration.namespaces
    log.info("configuration", source=known.source, **({"namespaces": called(managed)} if managed else {}))
    for note in known.remarks:
        log.warning("configuration", reason=note)


async def known_configuration(wiring: Wiring, client: Client, *, writes: bool) -> KnownConfiguration:
    """The wiring with the configuration of `--config`, else with that of the installation, else with the defaults.

    A command that `writes` holds the Leases of the installation, whatever it plans with. Raises `MissingRequirement` if the object is
    unusable; for a command that writes also if it may not be read, is incomplete, or names other Leases than `--config`, and if Grove's
    operator runs; and the cluster's other errors.
    """
    known = with_published(wiring, await read_published(client), writes=writes)
    if not writes:
        return known
    # Imported here, as below: commands that only read need none of it.
    from enginectl.wiring.other_writers import refuse_beside_others

    notes = await refuse_beside_others(client, wiring.clock, place_of(known.wiring.settings.leader_election))
    return replace(known, remarks=(*known.remarks, *notes))


def with_published(wiring: Wiring, read: PublishedConfiguration, *, writes: bool) -> KnownConfiguration:
    """The configuration of a command, given what the installation publishes. Raises `MissingRequirement`, see `known_configuration`."""
    if wiring.options.config is not None:
        return _of_file(wiring, read) if writes else _read_with_file(wiring, read)
    if read.state is PublicationState.UNUSABLE:
        raise MissingRequirement("\n".join((*fault_lines(read), f"repair it ({INSTALL}), or {OTHERWISE}")))
    if read.state is PublicationState.FORBIDDEN:
        if writes:
            consequence = "so neither the configuration nor the Lease of this cluster is known"
            raise MissingRequirement(f"{CALLED} may not be read, {consequence}: {read.faults[0]}; {OTHERWISE}")
        note = f"what is installed may plan otherwise than with the defaults: {OTHERWISE}"
        return KnownConfiguration(wiring, f"defaults ({CALLED} may not be read: {read.faults[0]})", (note,))
    if read.state is PublicationState.ABSENT:
        return KnownConfiguration(wiring, f"defaults (no installation: there is no {CALLED})")
    return _of_installation(wiring, read, writes=writes)


def _of_installation(wiring: Wiring, read: PublishedConfiguration, *, writes: bool) -> KnownConfiguration:
    """The wiring with the configuration of the installation."""
    withheld = ", ".join(clipped(field, WIDTH) for field in read.publication.withheld[:MAX_FAULTS])
    missing = f"{CALLED} leaves out what may contain credentials ({withheld}), which graphs are planned with: {OTHERWISE}"
    if withheld and writes:
        raise MissingRequirement(missing)
    notes = (*([missing] if withheld else []), *_version_notes(read.publication), *read.unknown)
    return KnownConfiguration(
        with_settings(wiring, read.settings),
        installation_called(read.publication),
        notes,
        read.settings.leader_election,
        read.publication.namespace,
    )


def installation_called(publication: InstallationRecord) -> str:
    """An installation in a few words."""
    place = f" in {clipped(publication.namespace, WIDTH)}" if publication.namespace else ""
    version = f", version {clipped(publication.version, WIDTH)}" if publication.version else ""
    return f"installation{place}{version} ({CALLED})"


def _version_notes(publication: InstallationRecord) -> Iterator[str]:
    """A note if the installation is of another release than this command: their plans may differ."""
    if publication.version != VERSION:
        other = clipped(publication.version, WIDTH) or "unknown"
        yield f"the version of the installation is {other}, that of this command {VERSION}: it may plan otherwise than is shown here"


def _read_with_file(wiring: Wiring, read: PublishedConfiguration) -> KnownConfiguration:
    """The wiring of a command that only reads, with a configuration file: a note says where what is installed plans otherwise."""
    notes = tuple(_other_values(wiring, read)) if read.state is PublicationState.FOUND else ()
    return KnownConfiguration(wiring, source_of_options(wiring), notes)


def _other_values(wiring: Wiring, read: PublishedConfiguration) -> Iterator[str]:
    """A note if the installation has other values of fields that plans depend on."""
    ourselves = published(wiring.settings, wiring.configuration.waiter_image, "")
    different = [field for field in differences(ourselves, read.publication) if not field.startswith("leaderElection.")]
    if different:
        whose = f"the {installation_called(read.publication)}"
        yield f"{whose} has other values of {', '.join(different)}: it plans otherwise, and its webhooks judge by them"


def _of_file(wiring: Wiring, read: PublishedConfiguration) -> KnownConfiguration:
    """The wiring of a command that writes with a configuration file, and holds the Leases of the installation if there is one."""
    source = source_of_options(wiring)
    if read.state is PublicationState.ABSENT:
        return KnownConfiguration(wiring, source)
    if read.state is not PublicationState.FOUND:
        first = read.faults[0] if read.state is PublicationState.FORBIDDEN else fault_lines(read)[0]
        note = f"{first}; so whether this is the Lease of the installation is not known"
        return KnownConfiguration(wiring, source, (note,))
    installed = read.settings.leader_election
    settings = with_leases_of(wiring.settings, installed)
    ours, theirs = place_of(settings.leader_election), place_of(installed)
    if str(ours) != str(theirs):
        other = f"the {installation_called(read.publication)} has {lease_called(theirs)}"
        raise MissingRequirement(
            f"{source} has {lease_called(ours)}, and {other}: two programs would write at the same time; leave leaderElection out of the "
            f"file, or move the installation ({INSTALL}); if it is gone: kubectl -n {NAMESPACE} delete configmap {NAME}"
        )
    known, notes = replace(wiring, settings=settings), (*_other_values(wiring, read), *_version_notes(read.publication))
    return KnownConfiguration(known, source, notes, installed, read.publication.namespace)


def with_leases_of(settings: Settings, installed: LeaderElection | None) -> Settings:
    """The settings with the leader election of the installation (None: there is none), as far as they do not name their own.

    How many shards there are is theirs alone.
    """
    if installed is None:
        return settings
    own = settings.leader_election
    # Grove's files have an empty `resourceNamespace`, which names nothing.
    named = {name: getattr(own, name) for name in own.model_fields_set if getattr(own, name) != "" or name != "resource_namespace"}
    return settings.model_copy(update={"leader_election": installed.model_copy(update={**named, "shards": own.shards})})


def lease_called(place: LeasePlace | None) -> str:
    """The place of a Lease in a few words; None: there is none."""
    return f"the Lease {place}" if place is not None else "no Lease"


def source_of_options(wiring: Wiring) -> str:
    """Where the configuration comes from if nothing is installed."""
    return "defaults" if wiring.options.config is None else f"file {clipped(str(wiring.options.config), WIDTH)}"


async def read_published(client: Client) -> PublishedConfiguration:
    """What the installation of the cluster publishes. Raises the server's errors, except that the object is absent or may not be read."""
    try:
        body = await client.get(CONFIG_MAP, NAMESPACE, NAME)
    except NotFound:
        return PublishedConfiguration(PublicationState.ABSENT)
    except Forbidden as error:
        return PublishedConfiguration(PublicationState.FORBIDDEN, faults=(clipped(str(error), WIDTH),))
    return published_in(body)


def published_in(body: Body) -> PublishedConfiguration:
    """What the object says: it is found, or unusable."""
    text = value_of(body, FILE)
    if not text:
        return PublishedConfiguration(PublicationState.UNUSABLE, faults=(f"data: {FILE} is missing",))
    file = configuration_in(text.encode(), CALLED)
    if file.settings is None:
        return PublishedConfiguration(
            PublicationState.UNUSABLE, faults=tuple(f"line {error.line or 1}: {error.message}" for error in file.errors)
        )
    place = place_of(file.settings.leader_election)
    if place is not None and (faults := tuple(place_faults(place))):
        return PublishedConfiguration(PublicationState.UNUSABLE, faults=faults)
    return PublishedConfiguration(
        PublicationState.FOUND, file.settings, publication_in(body, file.settings), unknown=tuple(str(warning) for warning in file.warnings)
    )


def fault_lines(read: PublishedConfiguration) -> list[str]:
    """The faults, each with the name of the object; at most `MAX_FAULTS`."""
    more = [f"{CALLED}: {len(read.faults) - MAX_FAULTS} more faults"] if len(read.faults) > MAX_FAULTS else []
    return [f"{CALLED}: {printable(fault)}" for fault in read.faults[:MAX_FAULTS]] + more
