"""`engine why`: explains one object."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from msgspec.structs import replace

from engine.errors import InputError
from engine.forecast.simulation import existing
from engine.ids import Kind, ResourceId
from engine.observed import Observed, World, unlisted_texts
from engine.report.printable import printable
from engine.runtime.passes import Pass
from engine.runtime.provider import Client, Provider
from enginectl.actions.gang_room import waiting_for_room
from enginectl.actions.planning import planned_pass, report_errors
from enginectl.base import terminal
from enginectl.base.exit_codes import Exit, UsageError
from enginectl.base.options import OutputFormat
from enginectl.input.targets import ambiguous, instead_of
from enginectl.output.cluster_status import cluster_status
from enginectl.output.explanation import ObjectReport, report_document, report_lines
from enginectl.output.graphs import graph_summaries
from enginectl.wiring.cluster import engine_of
from enginectl.wiring.configuration import Wiring, default_namespace
from enginectl.wiring.connection import connect
from enginectl.wiring.scope import EVERYTHING, ROOTS, Selection, scope_of
from enginectl.wiring.shared_templates import TemplateReadingProvider
from providers.queries import DiscoveryClient, run_queries, served_apis
from resources.base import kinds, labels
from resources.cluster_model.component_pods import selector_of
from resources.cluster_model.pods import is_component
from resources.domains.added_annotations import added_annotations
from resources.domains.domain_users import domain_users
from resources.domains.release import claims_template
from resources.domains.requests import requested_by_sets, scaled_groups
from resources.domains.status import DomainStatus, domain_statuses
from resources.dynamo.objects.scaling_adapter import unused
from resources.model.membership import effective_body
from resources.ports.checks import Diagnosis, Query, QueryResult
from resources.ports.configuration import Configuration
from resources.preview.shown import gang_notices
from resources.registry import BLUEPRINTS
from resources.reports.explanation import Explanation, explain
from resources.reports.graph_summary import GraphSummary
from resources.reports.obstacles import Standstill, pods_of, standstill
from resources.reports.provenance import Sources, provenance
from resources.reports.summary import WorkloadSummary
from resources.reports.waiting_gangs import graph_with_room, with_room

NAMESPACED: Final = tuple(kind for kind in ROOTS if kind.namespaced)
BLUEPRINTS_BY_KIND = {blueprint.kind.name: blueprint for blueprint in BLUEPRINTS}


async def explain_object(wiring: Wiring, word: str, name: str, format: OutputFormat) -> Exit:
    """Plan once, write the explanation of the object of that kind and name, and return the exit code.

    `word` names the kind as kubectl accepts it; empty: the name is that of a workload, or of anything that one has. 1 if the object neither
    exists nor is desired; 5 if something could not be listed.
    """
    namespace = wiring.options.namespace or default_namespace(wiring)
    async with connect(wiring) as (client, provider):
        named = await kinds_called(client, wiring, word) if word else []

        async def planned(selection: Selection) -> Pass[Configuration]:
            return await planned_pass(engine_of(wiring, TemplateReadingProvider(provider), selection, tries=False))

        result = await planned(Selection((namespace,), NAMESPACED) if not word or named[0].namespaced else EVERYTHING)
        if not word:
            called = id_called(name, namespace, result)
            if called is None:  # What is in no namespace is read for this alone: few users may.
                result = await planned(Selection((namespace,)))
                called = id_called(name, namespace, result)
            if called is None:
                return await not_found(wiring, client, provider, name, namespace, result)
            named = [kind for kind in known_kinds(wiring.configuration) if (kind.group, kind.name) == (called.group, called.kind)]
        kind, *others = named
        id = kind.id(namespace, name)
        with_sources = format is OutputFormat.JSON or wiring.options.verbose
        report = await object_report(wiring, client, provider, kind, id, result, with_sources=with_sources)
        for other in (other for other in others if other.namespaced == kind.namespaced):
            if report.exists:
                break
            other_id = other.id(id.namespace, name)
            other_report = await object_report(wiring, client, provider, other, other_id, result, with_sources=with_sources)
            id, report = (other_id, other_report) if other_report.exists else (id, report)
        is_workload = kind.name in BLUEPRINTS_BY_KIND and not report.exists
        instead = await instead_of(name, result.world, wiring, provider) if is_workload else ""
    verbose = wiring.options.verbose
    if format is OutputFormat.JSON:
        terminal.print_json(report_document(report))
    else:
        terminal.print_lines(report_lines(report, result.now, verbose=verbose))
    terminal.incomplete(report.incomplete)
    if report_errors(result.planned.plans, verbose=verbose):
        return Exit.FAILED
    if not report.exists and not report.incomplete:
        terminal.error(f"{printable(str(id))} does not exist, and no workload desires it{instead}")
        return Exit.FAILED
    return Exit.INCOMPLETE if report.incomplete else Exit.DONE


def id_called(name: str, namespace: str, result: Pass[Configuration]) -> ResourceId | None:
    """The workload of that name that is no part of another one of that name, or else the object of that name; None if there is none.

    Raises `UsageError` if there are several.
    """
    roots = {observed.root.id: observed.proposer for observed in result.world.roots if observed.root.id.name == name}
    ids = sorted(id for id, proposer in roots.items() if proposer is None or proposer.id not in roots)
    ids = ids or sorted(live.id for live in existing(result.world) if (live.id.namespace, live.id.name) == (namespace, name))
    if len(ids) > 1:
        raise ambiguous(name, ids)
    return ids[0] if ids else None


async def not_found(wiring: Wiring, client: Client, provider: Provider, name: str, namespace: str, result: Pass[Configuration]) -> Exit:
    """Say that nothing has that name, and what there is. Returns the exit code. Raises `UsageError` if the name is a word for a kind."""
    incomplete = unlisted_texts(result.world.incomplete)
    if incomplete:
        terminal.incomplete(incomplete)
        return Exit.INCOMPLETE
    try:
        await kinds_called(client, wiring, name)
    except UsageError:
        instead = await instead_of(name, result.world, wiring, provider)
        raise InputError(f"nothing is called {printable(name)} in {printable(namespace)}{instead}") from None
    raise UsageError(f"{name}: expected KIND/NAME, e.g. pod/x or pclq/x")


async def kinds_called(client: Client, wiring: Wiring, word: str) -> list[Kind]:
    """The kinds that a word names, in any case: kind, plural, singular or short name, alone or with the group. Raises `UsageError`.

    Several groups may have a kind of one name, e.g. PodGroup. Those that the engine works with come first.
    """
    in_scope = known_kinds(wiring.configuration)
    names = {kind: {kind.name, kind.plural, f"{kind.plural}.{kind.group}"} for kind in in_scope}
    if isinstance(client, DiscoveryClient):
        for served in (await client.discover()).served:
            kind = next((kind for kind in in_scope if (kind.group, kind.name) == (served.kind.group, served.kind.name)), served.kind)
            plural = served.kind.plural
            short = {served.kind.name, plural, served.singular, *served.short_names}
            names.setdefault(kind, set()).update(short | {f"{name}.{served.kind.group}" for name in short})
    matches = [kind for kind, known in names.items() if word.lower() in {name.lower() for name in known}]
    if not matches:
        raise UsageError(f"{word}: the cluster serves no such kind")
    return matches


async def object_report(
    wiring: Wiring, client: Client, provider: Provider, kind: Kind, id: ResourceId, result: Pass[Configuration], *, with_sources: bool
) -> ObjectReport:
    """What the pass says about the object, and the diagnoses of its domains. `with_sources` renders the root once per field."""
    apis = await served_apis(client)
    query = Query(kind, id.namespace, id.name)
    lookup = (await run_queries(client, [query], apis)).of(query)
    plans = {plan.root: plan for plan in result.planned.plans}
    other = next(iter(lookup.objects), None)
    explanation = explain(result.world, plans, BLUEPRINTS_BY_KIND, id, wiring.configuration, result.now, other)
    lookups: dict[Query, QueryResult] = {query: lookup}
    diagnoses: list[Diagnosis] = []
    for domain in dict.fromkeys((*domains_of(wiring.configuration, explanation, result.world), *lost_domains(explanation, result, wiring))):
        fabric = next(fabric for fabric in wiring.configuration.fabrics if fabric.kind.name == domain.kind)
        results = await run_queries(client, fabric.domain_queries(domain), apis)
        lookups |= results.results
        diagnoses += relevant(explanation, domain, fabric.diagnose(domain, results, result.now))
    waiting = await waiting_for_room(result, roots_of(explanation, result.world), wiring.configuration, provider)
    diagnoses += [
        each for each in waiting.values() if id in each.pods or (id.namespace, id.name) == (each.about.namespace, each.about.name)
    ]
    statuses = tuple(statuses_of(wiring.configuration, id, result))
    errors = {query.kind.key: lookup.error for query, lookup in lookups.items() if lookup.error}
    graph = graph_of(id, result, wiring.configuration, waiting)
    workload = workload_of(id, result, wiring.configuration)
    return ObjectReport(
        explanation,
        tuple(dict.fromkeys(diagnoses)),
        tuple(status for _, status in statuses),
        graph,
        sources_of(wiring.configuration, explanation, result) if with_sources else {},
        {**unlisted_texts(result.world.incomplete), **errors},
        tuple(domain_users(id, statuses, result.world.roots, wiring.configuration)) if statuses else (),
        tuple(notes_about(explanation, result, wiring.configuration)),
        with_room(workload, waiting) if workload is not None else None,
        standstill_of(explanation, graph.nested if graph else (), result, wiring.configuration),
        is_ours(wiring.configuration, kind),
        tuple(makers_of(explanation, result.world)),
    )


def roots_of(explanation: Explanation, world: World) -> Collection[ResourceId]:
    """The roots that own the object; of a pod that the controller of a component has made, those that own the component."""
    return explanation.roots or [root for root, _ in makers_of(explanation, world)]


def makers_of(explanation: Explanation, world: World) -> Iterator[tuple[ResourceId, ResourceId]]:
    """The Deployment or LeaderWorkerSet of a graph whose controller has made a pod, after the graph; none for other objects."""
    id, live = explanation.id, explanation.live
    if live is None or id.kind != kinds.POD.name or explanation.roots:
        return
    graphs = (observed for observed in world.roots if observed.root.id.kind == kinds.DYNAMO_GRAPH.name)
    components = ((graph.root.id, each) for graph in graphs for each in graph.lives() if is_component(each.id))
    for graph, component in components:
        selector = selector_of(component)
        if selector is not None and selector.selects(id.namespace, live.labels):
            yield graph, component.id


def graph_of(
    id: ResourceId, result: Pass[Configuration], configuration: Configuration, waiting: Mapping[ResourceId, Diagnosis]
) -> GraphSummary | None:
    """The summary of the graph of that id, as `engine status` has it; None if the object is no graph."""
    summary = next((graph for graph in graph_summaries(result, configuration) if graph.id == id), None)
    observed = next((observed for observed in result.world.roots if observed.root.id == id), None)
    return graph_with_room(summary, observed, waiting) if summary is not None and observed is not None else summary


def workload_of(id: ResourceId, result: Pass[Configuration], configuration: Configuration) -> WorkloadSummary | None:
    """The summary of the set of that id, as `engine status` has it; None if the object is no set."""
    if id.kind != kinds.PODCLIQUESET.name:
        return None
    workloads = cluster_status(result, configuration, id.name, id.namespace).workloads
    return next((workload for workload in workloads if workload.id == id and workload.created_at is not None), None)


def standstill_of(
    explanation: Explanation, nested: Collection[ResourceId], result: Pass[Configuration], configuration: Configuration
) -> Standstill:
    """What keeps the object from running, in the sets that own it or, for a graph, of which it consists."""
    plans = {plan.root: plan for plan in result.planned.plans}
    standstills: list[Standstill] = []
    for observed in result.world.roots:
        root = observed.root.id
        if root.kind == kinds.PODCLIQUESET.name and root in plans and (root in explanation.roots or root in nested):
            about = root if root in nested else explanation.id
            standstills.append(standstill(pods_of(observed, result.world, configuration), plans[root], about, result.now))
    obstacles = tuple(obstacle for each in standstills for obstacle in each.obstacles)
    return Standstill(obstacles, () if nested else tuple(wait for each in standstills for wait in each.waits))


def is_ours(configuration: Configuration, kind: Kind) -> bool:
    """Whether the engine manages objects of that kind, or sets refer to them."""
    return kind.key in {other.key for other in known_kinds(configuration)}


def known_kinds(configuration: Configuration) -> list[Kind]:
    """The kinds that the engine manages, and those that they refer to."""
    scope = scope_of(configuration)
    return list(dict.fromkeys((*scope.roots, *scope.children, *scope.references)))


def notes_about(explanation: Explanation, result: Pass[Configuration], configuration: Configuration) -> Iterator[str]:
    """Annotations for domains that a PodClique or scaling group has and its template has not; what places the pods of a set or gang; that
    a scaling adapter is not the one that counts."""
    id = explanation.id
    if id.kind == kinds.SCALING_ADAPTER.name and explanation.live is not None and (note := unused(explanation.live)):
        yield f"it {note}"
    if id.kind in (kinds.PODCLIQUESET.name, kinds.PODGANG.name, kinds.POD.name):
        plans = (plan for plan in result.planned.plans if plan.root in explanation.roots)
        yield from gang_notices(result.world, plans, configuration)
    if id.kind in (kinds.PODGANG.name, kinds.POD.name):
        yield from alarms_about_gang(explanation, result)
    if id.kind in (kinds.PODCLIQUE.name, kinds.SCALING_GROUP.name):
        additions = (added for observed in result.world.roots for added in added_annotations(observed, configuration))
        yield from (replace(added, objects=(id,)).note for added in additions if id in added.objects)


def alarms_about_gang(explanation: Explanation, result: Pass[Configuration]) -> Iterator[str]:
    """What is wrong with the gang that the object is, or that the pod belongs to, although nothing is blocked by it."""
    id, live = explanation.id, explanation.live
    name = id.name if id.kind == kinds.PODGANG.name else live.labels.get(labels.PODGANG, "") if live is not None else ""
    gang = kinds.PODGANG.id(id.namespace, name)
    for plan in (plan for plan in result.planned.plans if plan.root in explanation.roots):
        yield from (alarm.text for alarm in plan.alarms if alarm.about == gang and not alarm.blocking)


def domains_of(configuration: Configuration, explanation: Explanation, world: World) -> Iterator[ResourceId]:
    """The domain that the object is, or the domains that the pod claims, whether they exist or are only requested."""
    id, live = explanation.id, explanation.live
    for fabric in configuration.fabrics:
        if (id.group, id.kind) == (fabric.kind.group, fabric.kind.name):
            yield id
        elif live is not None and id.kind == kinds.POD.name:
            existing = {domain.id: domain for domain in world.references.of(fabric.kind.name)}
            roots = [observed for observed in world.roots if observed.root.id.kind == kinds.PODCLIQUESET.name]
            sets = [(observed.root.id, effective_body(observed, configuration)) for observed in roots]
            known = {requested.id for requested in requested_by_sets(sets, fabric, scaled_groups(world.roots))} | existing.keys()
            for domain in sorted(domain for domain in known if domain.namespace == id.namespace):
                if claims_template(live, fabric.template_name(existing.get(domain), domain.name)):
                    yield domain


def lost_domains(explanation: Explanation, result: Pass[Configuration], wiring: Wiring) -> Iterator[ResourceId]:
    """The domains that the pod is cut off from; its claim may name the template of a domain that does not exist any more."""
    if explanation.id.kind == kinds.POD.name:
        owners = set(explanation.roots)
        for observed, status in all_statuses(wiring.configuration, result):
            if observed.root.id in owners and status.cut and explanation.id.name in status.cut.pods:
                yield status.id


def relevant(explanation: Explanation, domain: ResourceId, diagnoses: Iterable[Diagnosis]) -> Iterator[Diagnosis]:
    """All diagnoses if the object is the domain; of a pod, those about the pod, and those about the domain as a whole, which name it."""
    if explanation.id == domain:
        yield from diagnoses
        return
    for diagnosis in diagnoses:
        if diagnosis.about == domain:
            yield replace(diagnosis, observation=f"{domain.kind} {domain.name}: {diagnosis.observation}")
        elif diagnosis.about == explanation.id or explanation.id in diagnosis.pods:
            yield diagnosis


def statuses_of(configuration: Configuration, id: ResourceId, result: Pass[Configuration]) -> Iterator[tuple[Observed, DomainStatus]]:
    """If the object is a domain: each set that uses it, with the status of the domain from the view of that set."""
    if any((id.group, id.kind) == (fabric.kind.group, fabric.kind.name) for fabric in configuration.fabrics):
        yield from ((observed, status) for observed, status in all_statuses(configuration, result) if status.id == id)


def all_statuses(configuration: Configuration, result: Pass[Configuration]) -> Iterator[tuple[Observed, DomainStatus]]:
    """Each set with the status of each of its domains."""
    plans = {plan.root: plan for plan in result.planned.plans}
    for observed in result.world.roots:
        plan = plans.get(observed.root.id)
        if plan is not None:
            yield from ((observed, status) for status in domain_statuses(observed, plan, configuration))


def sources_of(configuration: Configuration, explanation: Explanation, result: Pass[Configuration]) -> Sources:
    """Field of the object -> the fields of the first root that desires it; empty if none does.

    The root of a nested root is the one that it is part of; a root that a user has made has none.
    """
    roots = {observed.root.id: observed.root for observed in result.world.roots}
    for desired in explanation.desired_by:
        root = desired.parent if desired.root == explanation.id else desired.root
        if explanation.live is not None and root is not None and root in roots:
            return provenance(BLUEPRINTS_BY_KIND[root.kind], roots[root], explanation.live, desired.part, result.now, configuration)
    return {}
