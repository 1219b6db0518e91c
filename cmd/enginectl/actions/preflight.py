"""`engine preflight`: checks whether a cluster has what the configuration needs."""

from collections.abc import Sequence
from itertools import chain

from msgspec.structs import replace

from engine.runtime.provider import Client
from enginectl.actions.installation_checks import installation_checks
from enginectl.base import terminal
from enginectl.base.exit_codes import Exit
from enginectl.base.options import OutputFormat
from enginectl.output.preflight import check_entry, check_lines
from enginectl.wiring.configuration import Wiring
from enginectl.wiring.connection import connect
from enginectl.wiring.other_writers import other_writer
from enginectl.wiring.published import read_published, tell
from enginectl.wiring.scope import select
from providers.queries import missing_verbs, run_queries, served_apis
from resources.base import kinds
from resources.install.modes import Use
from resources.install.permissions import confined, installation_permissions, permissions
from resources.install.preflight import Rights, checks, failed, of_readers, reads_only
from resources.install.publication import place_of
from resources.ports.checks import Check, CheckResult, Installation, Query, Severity
from resources.registry import is_managed, managed_blueprints

VERSION = 1
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
        judged = chain(own_checks, checks(installation, allowed, configuration.fabrics, configuration.schedulers.values(), defined))
        results = tuple(of_readers(judged) if is_reader else judged)
    if format is OutputFormat.JSON:
        terminal.print_json({"version": VERSION, "kind": "Preflight", "checks": [check_entry(check) for check in results]})
    else:
        terminal.print_lines(check_lines(results))
    return exit_code(results)


async def observe_installation(wiring: Wiring, client: Client) -> Installation:
    """The served APIs, the sets, and the results of the queries of all fabrics and scheduler back ends."""
    apis = await served_apis(client)
    sets = Query(kinds.PODCLIQUESET)
    plug_ins = (*wiring.configuration.fabrics, *wiring.configuration.schedulers.values())
    queries = [query for plug_in in plug_ins for query in plug_in.installation_queries()]
    results = await run_queries(client, (sets, *queries), apis)
    listed = results.of(sets)
    return Installation(apis, results, listed.objects if listed.known and listed.served else None)


async def rights(wiring: Wiring, client: Client, installation: Installation, use: Use) -> Rights:
    """The permissions that this use needs, each with the verbs that we are not allowed. Without the kind of graphs none for graphs."""
    roots, configuration = select(wiring).roots, wiring.configuration
    apis, graph = installation.apis, kinds.DYNAMO_GRAPH
    has_graphs = apis.serves(graph) or bool(apis.why_unknown(graph))
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
