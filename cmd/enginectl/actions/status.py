"""`engine status`: the state of graphs, workloads and topology bindings."""

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from engine.errors import ClusterError
from engine.focus import EVERYTHING, Focus, within
from engine.observed import unlisted_texts
from engine.report.printable import Line, printable
from engine.report.text import objection_text
from engine.runtime.passes import Pass
from engine.runtime.provider import Client
from engine.runtime.shard_leases import ShardHolder, shard_holders
from enginectl.actions.gang_room import waiting_for_room
from enginectl.actions.planning import planned_pass, report_errors, write_notices
from enginectl.base import terminal
from enginectl.base.exit_codes import Exit, worst
from enginectl.base.options import OutputFormat
from enginectl.input.roots import NO_ROOTS, select_for
from enginectl.input.targets import NO_NAMESPACE, instead_of, require_matches, where_of
from enginectl.output.cluster_status import cluster_status
from enginectl.output.graphs import graph_entry, graph_lines
from enginectl.output.status import binding_entry, binding_lines, shard_entry, shard_lines, workload_entry, workload_lines
from enginectl.wiring.cluster import engine_of
from enginectl.wiring.configuration import Wiring, default_namespace
from enginectl.wiring.connection import connect
from enginectl.wiring.leases import lease_of
from enginectl.wiring.shared_templates import TemplateReadingProvider
from resources.ports.configuration import Configuration
from resources.preview.shown import gang_notices
from resources.reports.waiting_gangs import with_room

VERSION = 2
"""Version of the JSON document; increased when a field is removed or changes its meaning."""

STATE_CODES = {"faulty": Exit.FAILED, "denied": Exit.DENIED, "completed": Exit.DONE, "settled": Exit.DONE}
"""State of a root -> the exit code with `--exit-code`. Every other state: not settled."""


async def show_status(wiring: Wiring, name: str, format: OutputFormat, *, focus: Focus = EVERYTHING, detailed: bool = False) -> Exit:
    """Plan once, write the state of every root in focus (or of those called `name`), and return the exit code.

    1 if there is no root called `name`; 5 if something could not be listed; with `detailed` also 1, 3 or 8 for the worst state shown.
    """
    async with connect(wiring) as (client, provider):
        selection = select_for(wiring, NO_ROOTS, (default_namespace(wiring),), focus)
        await require_matches(wiring, provider, selection, NO_ROOTS, focus)
        result = limited(await planned_pass(engine_of(wiring, TemplateReadingProvider(provider), selection, tries=False)), focus)
        shards = await holders_of_shards(wiring, client)
        roots = {observed.root.id for observed in result.world.roots if name in ("", observed.root.id.name)}
        waiting = await waiting_for_room(result, roots, wiring.configuration, provider)
        instead = await instead_of(name, result.world, wiring, provider)
    plans = {plan.root: plan for plan in result.planned.plans}
    shown = [plans[observed.root.id] for observed in result.world.roots if name in ("", observed.root.id.name)]
    status = cluster_status(result, wiring.configuration, name)
    graphs, workloads, bindings = status.graphs, tuple(with_room(each, waiting) for each in status.workloads), status.bindings
    incomplete = unlisted_texts(result.world.incomplete)
    if format is OutputFormat.JSON:
        terminal.print_json(
            {
                "version": VERSION,
                "graphs": [graph_entry(graph) for graph in graphs],
                "workloads": [workload_entry(workload) for workload in workloads],
                "bindings": [binding_entry(binding) for binding in bindings],
                "shards": [shard_entry(shard) for shard in shards] if shards is not None else None,
                "incomplete": incomplete,
            }
        )
    else:
        verbose = wiring.options.verbose
        tables = [
            graph_lines(graphs, result.now, verbose=verbose) if graphs else None,
            workload_lines(workloads, result.now, verbose=verbose) if workloads or not (graphs or bindings) else None,
            binding_lines(bindings, result.now, verbose=verbose) if bindings else None,
            shard_lines(shards) if shards is not None and len(shards) > 1 and not name else None,
        ]
        terminal.print_lines(separated(lines for lines in tables if lines is not None))
    write_notices(gang_notices(result.world, shown, wiring.configuration))
    terminal.incomplete(incomplete)
    for objection in result.planned.objections:
        terminal.warning(objection_text(objection))
    has_errors = report_errors(shown, verbose=wiring.options.verbose)
    if name and not shown and not any(kind.name in incomplete for kind in selection.roots):
        terminal.error(f"no workload is called {printable(name)} {where_of(selection)}{instead}")
        return Exit.FAILED
    if instead == NO_NAMESPACE:
        terminal.note(f"{wiring.options.namespace}{instead}")
    states = {*(graph.state for graph in graphs), *(workload.state for workload in workloads), *(binding.state for binding in bindings)}
    codes = {STATE_CODES.get(state, Exit.UNSETTLED) for state in states} if detailed else set()
    codes |= {Exit.DENIED} if detailed and result.planned.objections else set()
    return worst(codes | {code for code, applies in ((Exit.FAILED, has_errors), (Exit.INCOMPLETE, incomplete)) if applies})


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
