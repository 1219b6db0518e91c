"""`engine preflight`: checks whether a cluster has what the configuration needs."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby
from typing import Any, Final

from msgspec.structs import replace

from engine.report.printable import Line, clipped
from engine.runtime.provider import Client
from engine.version import VERSION
from enginectl.base import terminal
from enginectl.base.exit_codes import Exit, MissingRequirement
from enginectl.base.options import OutputFormat
from enginectl.output.tables import aligned, column_widths
from enginectl.wiring.configuration import Wiring
from enginectl.wiring.connection import connect
from enginectl.wiring.other_writers import OtherWriter, other_writer
from enginectl.wiring.published_configuration import (
    INSTALL,
    OTHERWISE,
    KnownConfiguration,
    PublicationState,
    PublishedConfiguration,
    fault_lines,
    installation_called,
    read_published,
    source_of_options,
    tell,
    with_published,
)
from enginectl.wiring.scope import select
from providers.queries import missing_verbs, run_queries, served_apis
from resources.base import kinds
from resources.install.modes import Use
from resources.install.permissions import confined, installation_permissions, permissions
from resources.install.preflight import GRAPH_CRD, GROUPS_CRD, Rights, checks, failed, of_readers, reads_only
from resources.install.publication import CALLED, GROVE_OPERATOR, place_of
from resources.ports.checks import Check, CheckResult, Installation, Query, Severity, unknown
from resources.registry import is_managed, managed_blueprints

DOCUMENT_VERSION = 1
"""Version of the JSON document; increased when a field is removed or changes its meaning."""


async def run_checks(wiring: Wiring, format: OutputFormat) -> Exit:
    """Run every check, write the results, and return the exit code."""
    async with connect(wiring) as (client, _):
        published = await read_published(client)
        grove = await other_writer(client, wiring.clock, None)
        known, own_checks = installation_checks(wiring, published, grove)
        tell(replace(known, remarks=()))  # The checks say the same.
        wiring = known.wiring
        installation = await observe_installation(wiring, client)
        configuration = wiring.configuration
        allowed = await rights(wiring, client, installation, Use.RUN)
        is_reader = reads_only(allowed)
        if is_reader:
            allowed = await rights(wiring, client, installation, Use.READ)
        defined = [kind for kind in kinds.DEFINED if is_managed(kind, configuration)]
        schedulers, where_served = configuration.schedulers.values(), configuration.graph_scheduler_where_served
        judged = chain(own_checks, checks(installation, allowed, configuration.fabrics, schedulers, defined, where_served))
        results = tuple(of_readers(judged) if is_reader else judged)
    if format is OutputFormat.JSON:
        terminal.print_json({"version": DOCUMENT_VERSION, "kind": "Preflight", "checks": [check_entry(check) for check in results]})
    else:
        terminal.print_lines(check_lines(results))
    return exit_code(results)


async def observe_installation(wiring: Wiring, client: Client) -> Installation:
    """The served APIs, the sets, and the results of the queries of all fabrics and scheduler back ends."""
    apis = await served_apis(client)
    sets = Query(kinds.PODCLIQUESET)
    plug_ins = (*wiring.configuration.fabrics, *wiring.configuration.schedulers.values())
    queries = [query for plug_in in plug_ins for query in plug_in.installation_queries()]
    results = await run_queries(client, (sets, GRAPH_CRD, GROUPS_CRD, *queries), apis)
    listed = results.of(sets)
    return Installation(apis, results, listed.objects if listed.known and listed.served else None, wiring.clock.now())


async def rights(wiring: Wiring, client: Client, installation: Installation, use: Use) -> Rights:
    """The permissions that this use needs, each with the verbs that we are not allowed. Without the kind of graphs none for graphs."""
    roots, configuration = select(wiring).roots, wiring.configuration
    apis, graph = installation.apis, kinds.DYNAMO_GRAPH
    has_graphs = any(map(apis.serves, (graph, *kinds.NEWER[graph]))) or bool(apis.why_unknown(graph))
    blueprints = [each for each in managed_blueprints(configuration) if each.kind in roots and (has_graphs or each.kind != graph)]
    place = place_of(wiring.settings.leader_election)
    needed = (*permissions(blueprints, configuration, place, use), *installation_permissions(use))
    if not wiring.options.namespace:
        needed = confined(needed, configuration.namespaces)
    return await missing_verbs(client, needed, wiring.options.namespace)


def exit_code(results: Sequence[Check]) -> Exit:
    """7 if a hard requirement is not met, 5 if one could not be judged."""
    if failed(results):
        return Exit.PREFLIGHT
    unknown = any(check.level is Severity.HARD and check.outcome is CheckResult.UNKNOWN for check in results)
    return Exit.INCOMPLETE if unknown else Exit.DONE


HEADERS = ("LEVEL", "RESULT", "CHECK", "FOUND")
TONES = {CheckResult.GOOD: "", CheckResult.BAD: "bad", CheckResult.UNKNOWN: "later"}
MAX_CELL, MAX_FINDING = 120, 3000
"""Characters of a cell, and of a finding: it may be what an API server says, with what to do at its end, or name all missing rights."""
MAX_REMEDY = 600
"""Characters of a remedy. It may contain several commands, and a command that is cut cannot be used."""


def check_lines(checks: Sequence[Check]) -> Iterator[Line]:
    """The table of checks, and below each row that is not good what to do about it.

    A remedy is written once: below the last of the rows one after another that have it; later rows refer to it. So is a finding that
    several checks could not be judged for.
    """
    runs = [tuple(run) for _, run in groupby(with_unknown_together(checks), remedy_of)]
    rows = [
        [(str(check.level), str(check.outcome), clipped(check.subject, MAX_CELL), clipped(check.finding, MAX_FINDING)) for check in run]
        for run in runs
    ]
    widths = [*column_widths([HEADERS, *chain.from_iterable(rows)])[:-1], 0]
    indent = " " * (widths[0] + widths[1] + 6)
    written: dict[str, str] = {}
    yield Line(aligned(HEADERS, widths), "head")
    for run, cells in zip(runs, rows, strict=True):
        yield from (Line(aligned(row, widths), TONES[check.outcome]) for check, row in zip(run, cells, strict=True))
        remedy, last = remedy_of(run[-1]), cells[-1][2]
        if remedy:
            yield Line(f"{indent}do: {f'as for {written[remedy]}' if remedy in written else clipped(remedy, MAX_REMEDY)}", "faint")
            written.setdefault(remedy, last)


def remedy_of(check: Check) -> str:
    """What to do about a check that is not good; empty if it is."""
    return check.remedy if check.outcome is not CheckResult.GOOD else ""


def with_unknown_together(checks: Iterable[Check]) -> Iterator[Check]:
    """The checks; of those one after another that could not be judged for one reason only the first, which counts the others."""
    for _, run in groupby(checks, lambda check: (check.level, check.outcome, check.finding, check.remedy)):
        first, *others = run
        are_one = others and first.outcome is CheckResult.UNKNOWN
        yield from (replace(first, subject=f"{first.subject} and {len(others)} more"),) if are_one else (first, *others)


def check_entry(check: Check) -> dict[str, Any]:
    """A check in the JSON document."""
    return {
        "level": str(check.level),
        "result": str(check.outcome),
        "check": check.subject,
        "found": check.finding,
        "remedy": remedy_of(check),
    }


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
