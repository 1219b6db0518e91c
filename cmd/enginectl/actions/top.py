"""`engine top`: racks, NVLink cliques, nodes and GPUs, the workloads on them, and the gangs that wait for room."""

from collections.abc import Mapping, Sequence
from typing import Final

from engine.errors import ClusterError, Forbidden
from engine.forecast.simulation import existing
from engine.ids import ResourceId
from engine.observed import Observed, unlisted_texts
from engine.report.printable import Line, printable
from engine.runtime.passes import Engine, Pass
from engine.runtime.provider import Provider, ScanningProvider
from enginectl.actions.facts import FactReader, capacity_of
from enginectl.actions.gang_room import waiting_for_room
from enginectl.actions.node_reading import ON_NODES, nodes_of, recorded_nodes
from enginectl.actions.planning import first_pass
from enginectl.base import terminal
from enginectl.base.exit_codes import Exit
from enginectl.base.options import OutputFormat
from enginectl.input.targets import NO_NAMESPACE, is_namespace_missing
from enginectl.output import watching
from enginectl.output.node_table import Top, top_document, top_lines
from enginectl.output.watching import note_line
from enginectl.wiring.cluster import engine_of
from enginectl.wiring.configuration import Wiring
from enginectl.wiring.connection import connect
from enginectl.wiring.scope import select
from enginectl.wiring.shared_templates import TemplateReadingProvider
from resources.base import kinds
from resources.base.fields import mapping, mappings
from resources.placement.cluster_room import RoomNode
from resources.ports.configuration import Configuration
from resources.reports.node_table import NodePods, NodeTable, of_workloads
from resources.reports.summary import lives_of

RACK: Final = "rack"
"""The level of a topology binding that says which label of nodes names their rack."""
READ: Final = frozenset(kind.key for kind in (kinds.PODCLIQUESET, kinds.PODGANG, kinds.POD))
"""The kinds of the pass that it shows something of: whether others could be listed changes nothing."""
NO_NODES: Final = "racks, GPUs and free room are not known: {why}; ask for the right to list nodes"
NO_RACKS: Final = "racks are not known: {why}; ask for the right to list ClusterTopologyBindings"
NO_PODS: Final = "GPUs that other workloads have count as free: {why}; ask for the right to list the pods of all namespaces"
ONE_NAMESPACE: Final = "engine top -n NAMESPACE shows the sets of one namespace, for which the right to list them there is enough"
NO_DOMAINS: Final = "which nodes run a pod of a domain is not known: you may not list {resources}; ask for the right to list them"
OTHER_DOMAIN: Final = "another"
"""Stands for the name of a domain that is not known, e.g. of one in a namespace that is not read."""


async def show_top(wiring: Wiring, names: Sequence[str], format: OutputFormat, *, watch: bool) -> Exit:
    """Write the nodes and the workloads on them, and return the exit code; with `watch` again and again, until a signal ends it.

    1 if there is no set of one of these names; 5 if something could not be listed.
    """
    async with connect(wiring) as (_, provider):
        selection = select(wiring, kinds={kinds.TOPOLOGY_BINDING.name})  # They are in no namespace, and name the racks of all.
        engine = engine_of(wiring, TemplateReadingProvider(provider), selection, tries=False)
        if watch:

            async def shown() -> tuple[list[Line], object]:
                top, unknown = await look(wiring, engine, provider, names)
                lines = [*map(note_line, [*top.notes, *_missing(unknown)]), *top_lines(top, verbose=wiring.options.verbose)]
                return lines, lines

            await watching.watch(wiring.clock, shown)
        top, unknown = await look(wiring, engine, provider, names)
    if format is OutputFormat.JSON:
        terminal.print_json(top_document(top))
    else:
        terminal.print_lines(top_lines(top, verbose=wiring.options.verbose))
    for note in top.notes:
        terminal.note(note)
    terminal.incomplete(top.incomplete)
    if unknown and kinds.PODCLIQUESET.key not in top.incomplete:
        terminal.error(*_missing(unknown))
        return Exit.FAILED
    return Exit.INCOMPLETE if top.incomplete else Exit.DONE


def _missing(unknown: Sequence[str]) -> list[str]:
    """Which sets do not exist; nothing if all do."""
    return [f"there is no set called {', '.join(map(printable, unknown))}"] if unknown else []


def _asked(current: Pass[Configuration], names: Sequence[str], namespace: str) -> set[ResourceId]:
    """The sets and graphs of a pass of these names and in that namespace. Empty: any."""
    roots = (each.root.id for each in current.world.roots if each.root.id.kind in (kinds.PODCLIQUESET.name, kinds.DYNAMO_GRAPH.name))
    return {id for id in roots if namespace in ("", id.namespace) and (not names or id.name in names)}


async def look(wiring: Wiring, engine: Engine[Configuration], provider: Provider, names: Sequence[str]) -> tuple[Top, list[str]]:
    """What is observed now, and those of the names that no set has."""
    current, _ = await first_pass(engine)
    known = {each.root.id.name for each in sets_of(current)}
    top = await top_of(current, provider, names, wiring.options.namespace)
    unlisted = current.world.incomplete.get(kinds.PODCLIQUESET.key)
    if unlisted is not None and unlisted.is_forbidden and not wiring.options.namespace:
        top = Top(top.table, top.waiting, (*top.notes, ONE_NAMESPACE), top.incomplete)
    if await is_namespace_missing(current.world, wiring, provider):
        top = Top(top.table, top.waiting, (*top.notes, f"{printable(wiring.options.namespace)}{NO_NAMESPACE}"), top.incomplete)
    return top, [name for name in names if name not in known]


def sets_of(current: Pass[Configuration], names: Sequence[str] = (), namespace: str = "") -> list[Observed]:
    """The sets of a pass of these names and in that namespace. Empty: any."""
    sets = (each for each in current.world.roots if each.root.id.kind == kinds.PODCLIQUESET.name)
    return [each for each in sets if namespace in ("", each.root.id.namespace) and (not names or each.root.id.name in names)]


async def top_of(current: Pass[Configuration], provider: Provider, names: Sequence[str] = (), namespace: str = "") -> Top:
    """The nodes of the cluster of a pass, the workloads on them, and the gangs that wait. Nodes and pods are read for this call.

    `names` and `namespace`: only the nodes of these sets; empty: all nodes.
    """
    waiting = await waiting_for_room(current, _asked(current, names, namespace), current.configuration, provider)
    notes: list[str] = []
    nodes = await _nodes(provider, notes)
    pods = await _pods(provider, current, notes)
    if nodes is not None and (why := current.world.incomplete.get(kinds.TOPOLOGY_BINDING.key)) is not None:
        notes.append(NO_RACKS.format(why=printable(why.text)))
    domains = await _domains(provider, current, notes)
    shown = of_workloads(_table(pods, nodes, domains, current), names, namespace)
    incomplete = {key: why for key, why in current.world.incomplete.items() if key in READ}
    return Top(shown, tuple(waiting.values()), tuple(notes), unlisted_texts(incomplete))


async def _nodes(provider: Provider, notes: list[str]) -> Sequence[RoomNode] | None:
    """All nodes; None if they could not be listed: then a note says so."""
    if not isinstance(provider, ScanningProvider):
        return await recorded_nodes(provider)
    try:
        return await nodes_of(provider)
    except ClusterError as error:
        notes.append(NO_NODES.format(why=_why(error, "nodes")))
        return None


async def _pods(provider: Provider, current: Pass[Configuration], notes: list[str]) -> NodePods:
    """The pods of the cluster on its nodes; those of the sets alone if they could not be listed: then a note says so."""
    if isinstance(provider, ScanningProvider):
        listed = NodePods()
        try:
            await provider.scan(kinds.POD, listed.add, fields=ON_NODES)
        except ClusterError as error:
            notes.append(NO_PODS.format(why=_why(error, "the pods of all namespaces")))
        else:
            return listed
    of_sets = NodePods()
    for observed in current.world.roots:
        for live in lives_of(observed, kinds.POD.name):
            of_sets.add(live.body)
    return of_sets


async def _domains(provider: Provider, current: Pass[Configuration], notes: list[str]) -> Mapping[str, str]:
    """Node -> the domain whose pod it runs, of fabrics of which a node has one place.

    Claims are read only where there are domains. If they could not be listed, a note says so.
    """
    lives = list(existing(current.world))
    keys = {key for live in lives for key in live.id.keys()}
    names = {live.uid: f"{live.id.namespace}/{live.id.name}" for live in lives}
    reader = FactReader(provider, current.configuration.namespaces)
    domain_of: dict[str, str] = {}
    for fabric in current.configuration.fabrics:
        if fabric.kind.key in keys and (capacity := await capacity_of(fabric, reader, complete=False)) is not None:
            domain_of |= {node: names.get(uid, OTHER_DOMAIN) for node, uid in capacity.taken.items()}
    if reader.forbidden:
        notes.append(NO_DOMAINS.format(resources=", ".join(sorted(reader.forbidden))))
    return domain_of


def _why(error: ClusterError, what: str) -> str:
    return f"you may not list {what}" if isinstance(error, Forbidden) else f"{what} could not be listed: {printable(str(error))}"


def _table(pods: NodePods, nodes: Sequence[RoomNode] | None, domains: Mapping[str, str], current: Pass[Configuration]) -> NodeTable:
    """The nodes with these pods, by the labels that the cluster's topology and its fabric name."""
    islands = next((fabric.islands for fabric in current.configuration.fabrics if fabric.islands is not None), None)
    label, noun = (islands.label, islands.noun) if islands is not None else ("", "")
    return pods.table(nodes, rack_label(current), label, noun, domains)


def rack_label(current: Pass[Configuration]) -> str:
    """The label of nodes that names their rack, as a topology binding says; empty if none does."""
    bindings = (each.root.body for each in current.world.roots if each.root.id.kind == kinds.TOPOLOGY_BINDING.name)
    levels = (level for body in bindings for level in mappings(mapping(body.get("spec")).get("levels")))
    return next((str(level.get("key")) for level in levels if level.get("domain") == RACK and level.get("key")), "")
