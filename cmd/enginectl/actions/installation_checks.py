"""Installation checks: what `engine preflight` finds about the installation of a cluster, and about Grove's own operator."""

from collections.abc import Iterator
from typing import Final

from engine.version import VERSION
from enginectl.base.errors import MissingRequirement
from enginectl.wiring.configuration import Wiring
from enginectl.wiring.other_writers import OtherWriter
from enginectl.wiring.published import (
    INSTALL,
    OTHERWISE,
    KnownConfiguration,
    PublicationState,
    PublishedConfiguration,
    fault_lines,
    installation_called,
    source_of_options,
    with_published,
)
from resources.install.publication import CALLED, GROVE_OPERATOR, place_of
from resources.ports.checks import Check, CheckResult, Severity, unknown

INSTALLATION: Final = "installation"
OPERATOR: Final = "Grove's operator"
MIGRATING: Final = "stop it before you install the engine or sync (docs/migrating.md)"


def installation_checks(
    wiring: Wiring, published: PublishedConfiguration, grove: OtherWriter
) -> tuple[KnownConfiguration, tuple[Check, ...]]:
    """The configuration that is checked, and the checks. `grove`: who holds the Lease of Grove's operator."""
    try:
        known = with_published(wiring, published, writes=True)
    except MissingRequirement as refusal:
        # What else is found is worth knowing as well.
        is_usable = published.state is not PublicationState.UNUSABLE and wiring.options.config is None
        known = with_published(wiring, published, writes=False) if is_usable else KnownConfiguration(wiring, source_of_options(wiring))
        return known, (*_refused(published, str(refusal)), *_grove_checks(known.wiring, grove))
    return known, (*_installed(published, known.remarks), *_grove_checks(known.wiring, grove))


def _refused(published: PublishedConfiguration, refusal: str) -> Iterator[Check]:
    """The check of an installation under which nothing may be written."""
    if published.state is PublicationState.FORBIDDEN:
        yield unknown(Severity.WARNING, INSTALLATION, f"{CALLED} may not be read: {published.faults[0]}", OTHERWISE)
    elif published.state is PublicationState.UNUSABLE:
        yield from (
            Check(Severity.HARD, INSTALLATION, CheckResult.BAD, line, f"install it again: {INSTALL}") for line in fault_lines(published)
        )
    else:
        yield Check(
            Severity.HARD, INSTALLATION, CheckResult.BAD, refusal, "see docs/configuration.md, section What an installation publishes"
        )


def _installed(published: PublishedConfiguration, notes: tuple[str, ...]) -> Iterator[Check]:
    """The checks of an installation, or of its absence."""
    if published.state is PublicationState.ABSENT:
        yield Check(Severity.INFO, INSTALLATION, CheckResult.GOOD, f"none: there is no {CALLED}")
        return
    if published.state is not PublicationState.FOUND:
        yield from (unknown(Severity.WARNING, INSTALLATION, note) for note in notes)
        return
    called = installation_called(published.publication)
    yield Check(Severity.INFO, INSTALLATION, CheckResult.GOOD, called)
    for note in notes:
        yield Check(
            Severity.WARNING, INSTALLATION, CheckResult.BAD, note, f"use version {VERSION} and one configuration everywhere: {INSTALL}"
        )


def _grove_checks(wiring: Wiring, grove: OtherWriter) -> Iterator[Check]:
    """The check that Grove's operator does not run. Under the Lease of this configuration it only keeps the engine from writing."""
    if grove.unknown:
        yield unknown(Severity.WARNING, OPERATOR, grove.note)
    elif grove.holder is None or (grove.is_engine and _is_ours(wiring)):
        yield Check(Severity.INFO, OPERATOR, CheckResult.GOOD, f"the Lease {GROVE_OPERATOR} names none")
    else:
        level = Severity.WARNING if _is_ours(wiring) else Severity.HARD
        yield Check(level, OPERATOR, CheckResult.BAD, grove.fault, MIGRATING)


def _is_ours(wiring: Wiring) -> bool:
    return str(place_of(wiring.settings.leader_election)) == str(GROVE_OPERATOR)
