"""`engine status`: the state of graphs, workloads and topology bindings."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.errors import ClusterError
from engine.focus import EVERYTHING, Focus, within
from engine.plan import Objection, Plan
from engine.report.printable import Line, printable
from engine.report.text import objection_text
from engine.runtime.passes import Engine, Pass
from engine.runtime.provider import Client, Provider
from engine.runtime.shard_leases import ShardHolder, shard_holders
from enginectl.actions.gang_room import waiting_for_room
from enginectl.actions.planning import pass_and_notices, report_errors, write_notices
from enginectl.base import terminal
from enginectl.base.exit_codes import Exit, worst
from enginectl.base.options import OutputFormat
from enginectl.input.roots import NO_ROOTS, select_for
from enginectl.input.targets import NO_NAMESPACE, instead_of, require_matches, where_of
from enginectl.output import watching
from enginectl.output.cluster_status import ClusterStatus, cluster_status
from enginectl.output.graphs import graph_entry, graph_lines
from enginectl.output.status import binding_entry, binding_lines, shard_entry, shard_lines, workload_entry, workload_lines
from enginectl.output.watching import note_line
from enginectl.wiring.cluster import engine_of
from enginectl.wiring.configuration import Wiring, default_namespace
from enginectl.wiring.connection import connect
from enginectl.wiring.leases import lease_of
from enginectl.wiring.scope import Selection
from enginectl.wiring.shared_templates import TemplateReadingProvider
from resources.base.kinds import PODCLIQUESET
from resources.ports.configuration import Configuration
from resources.preview.shown import gang_notices
from resources.reports.waiting_gangs import graph_with_room, with_room

VERSION = 2
"""Version of the JSON document; increased when a field is removed or changes its meaning."""

STATE_CODES = {"faulty": Exit.FAILED, "denied": Exit.DENIED, "completed": Exit.DONE, "settled": Exit.DONE}
"""State of a root -> the exit code with `--exit-code`. Every other state: not settled."""
EARLIEST: Final = datetime.min.replace(tzinfo=UTC)
"""A moment at which every age is zero."""


class Seen(Struct, frozen=True):
    """What one pass has observed of the roots in focus."""

    status: ClusterStatus
    plans: tuple[Plan, ...]
    objections: tuple[Objection, ...]
    shards: list[ShardHolder] | None
    notices: tuple[str, ...]
    """What the cluster lacks."""
    gang_notices: tuple[str, ...]
    where: str
    """Where roots were looked for."""
    missing: str = ""
    """Why there is no root of the name that was asked for; empty if there is."""
    is_namespace_missing: bool = False


async def show_status(
    wiring: Wiring, name: str, format: OutputFormat, *, focus: Focus = EVERYTHING, detailed: bool = False, watch: bool = False
) -> Exit:
    """Plan once, write the state of every root in focus (or of those called `name`), and return the exit code.

    1 if there is no root called `name`; 5 if something could not be listed; with `detailed` also 1, 3 or 8 for the worst state shown.
    `watch`: again and again, until a signal ends it.
    """
    async with connect(wiring) as (client, provider):
        selection = select_for(wiring, NO_ROOTS, (default_namespace(wiring),), focus)
        await require_matches(wiring, provider, selection, NO_ROOTS, focus)
        engine = engine_of(wiring, TemplateReadingProvider(provider), selection, tries=False)
        if watch:

            async def shown() -> tuple[list[Line], object]:
                seen = await look(wiring, name, client, provider, engine, selection, focus)
                remarks = [*map(note_line, remarks_of(seen, wiring))]
                return [*remarks, *status_lines(seen, name, wiring, seen.status.now)], (remarks, [*timeless_lines(seen, name, wiring)])

            await watching.watch(wiring.clock, shown)
        seen = await look(wiring, name, client, provider, engine, selection, focus)
    write_notices(seen.notices)
    status = seen.status
    if format is OutputFormat.JSON:
        terminal.print_json(
            {
                "version": VERSION,
                "graphs": [graph_entry(graph) for graph in status.graphs],
                "workloads": [workload_entry(workload) for workload in status.workloads],
                "bindings": [binding_entry(binding) for binding in status.bindings],
                "shards": [shard_entry(shard) for shard in seen.shards] if seen.shards is not None else None,
                "incomplete": status.incomplete,
            }
        )
    else:
        terminal.print_lines(status_lines(seen, name, wiring, status.now))
    write_notices(seen.gang_notices)
    terminal.incomplete(status.incomplete)
    for objection in seen.objections:
        terminal.warning(objection_text(objection))
    has_errors = report_errors(seen.plans, verbose=wiring.options.verbose)
    if seen.missing:
        terminal.error(seen.missing)
        return Exit.FAILED
    if seen.is_namespace_missing:
        terminal.note(f"{wiring.options.namespace}{NO_NAMESPACE}")
    states = {
        *(each.state for each in status.graphs),
        *(each.state for each in status.workloads),
        *(each.state for each in status.bindings),
    }
    codes = {STATE_CODES.get(state, Exit.UNSETTLED) for state in states} if detailed else set()
    codes |= {Exit.DENIED} if detailed and seen.objections else set()
    return worst(codes | {code for code, applies in ((Exit.FAILED, has_errors), (Exit.INCOMPLETE, status.incomplete)) if applies})


async def look(
    wiring: Wiring,
    name: str,
    client: Client,
    provider: Provider,
    engine: Engine[Configuration],
    selection: Selection,
    focus: Focus,
) -> Seen:
    """Plan once, and return the state of every root in focus, or of those called `name`."""
    current, notices = await pass_and_notices(engine)
    result = limited(current, focus)
    named = {observed.root.id: observed for observed in result.world.roots if name in ("", observed.root.id.name)}
    roots = list(named)
    waiting = await waiting_for_room(result, named.keys(), wiring.configuration, provider)
    instead = await instead_of(name, result.world, wiring, provider)
    plans = {plan.root: plan for plan in result.planned.plans}
    shown = tuple(plans[root] for root in roots)
    status = cluster_status(result, wiring.configuration, name)
    is_missing = name and not shown and not any(kind.name in status.incomplete for kind in selection.roots)
    return Seen(
        replace(
            status,
            workloads=tuple(with_room(each, waiting) for each in status.workloads),
            graphs=tuple(graph_with_room(each, named[each.id], waiting) for each in status.graphs),
        ),
        shown,
        result.planned.objections,
        await holders_of_shards(wiring, client),
        notices,
        tuple(gang_notices(result.world, shown, wiring.configuration)),
        where_of(selection),
        f"no workload is called {printable(name)} {where_of(selection)}{instead}" if is_missing else "",
        instead == NO_NAMESPACE,
    )


def status_lines(seen: Seen, name: str, wiring: Wiring, now: datetime) -> Iterator[Line]:
    """The tables of graphs, workloads, bindings and shards. Ages are those at `now`."""
    verbose, status, shards = wiring.options.verbose, seen.status, seen.shards
    graphs, workloads, bindings = status.graphs, status.workloads, status.bindings
    are_listed = bool(workloads) or not (graphs or bindings or PODCLIQUESET.name in status.incomplete)
    tables = [
        graph_lines(graphs, now, verbose=verbose) if graphs else None,
        workload_lines(workloads, now, where=seen.where, verbose=verbose) if are_listed else None,
        binding_lines(bindings, now, verbose=verbose) if bindings else None,
        shard_lines(shards) if shards is not None and len(shards) > 1 and not name else None,
    ]
    return separated(lines for lines in tables if lines is not None)


def timeless_lines(seen: Seen, name: str, wiring: Wiring) -> Iterator[Line]:
    """The same tables without what only time changes: ages, and when holders of shards have renewed their Leases."""
    shards = [replace(shard, renewed_at="") for shard in seen.shards] if seen.shards is not None else None
    return status_lines(replace(seen, shards=shards), name, wiring, EARLIEST)


def remarks_of(seen: Seen, wiring: Wiring) -> Iterator[str]:
    """What else is written, above tables that are shown again and again."""
    yield from (*seen.notices, *seen.gang_notices)
    yield from terminal.incomplete_texts(seen.status.incomplete)
    yield from map(objection_text, seen.objections)
    yield from (f"internal error ({plan.root}): {printable(repr(plan.error))}" for plan in seen.plans if plan.error is not None)
    if seen.missing or seen.is_namespace_missing:
        yield seen.missing or f"{wiring.options.namespace}{NO_NAMESPACE}"


def limited(result: Pass[Configuration], focus: Focus) -> Pass[Configuration]:
    """The pass with the roots in focus only."""
    focused = within(result.planned.plans, result.world, focus)
    planned = replace(result.planned, plans=focused.plans, others=focused.others)
    return replace(result, world=replace(result.world, roots=focused.roots), planned=planned)


async def holders_of_shards(wiring: Wiring, client: Client) -> list[ShardHolder] | None:
    """Who holds the shards; one shard if the namespaces are not divided. None without leader election or the right to read its Leases."""
    lease = lease_of(wiring, client, "")
    try:
        return await shard_holders(lease) if lease is not None else None
    except ClusterError:
        return None


def separated(tables: Iterable[Iterable[Line]]) -> Iterator[Line]:
    """The lines of all tables, with an empty line between two of them."""
    for index, lines in enumerate(tables):
        if index:
            yield Line("")
        yield from lines
