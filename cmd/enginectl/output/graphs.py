"""The state of graphs: a table with details for people, and entries of the JSON document."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from engine.ids import ResourceId
from engine.memo import Memo, blueprint_memo
from engine.observed import Observed
from engine.plan import Plan
from engine.report.alike import without_repetition
from engine.report.json import moment_text
from engine.report.printable import Line, clipped, printable
from engine.report.shapes import identity
from engine.runtime.passes import Pass
from enginectl.output.status import MAX_ADVICE, TONES, advice_lines, alarm_entries, wait_entries, wait_lines, warning_lines
from enginectl.output.tables import age, table
from resources.base.kinds import DYNAMO_GRAPH
from resources.ports.configuration import Configuration
from resources.reports.graph_summary import GraphSummary, ServiceSummary
from resources.reports.waiting_gangs import waiting_text

HEADERS = ("NAMESPACE", "NAME", "STATE", "GRAPH STATE", "ORCHESTRATOR", "SERVICES READY", "AGE")
MAX_NAME = 120
MAX_WAITING = 8


def graph_lines(graphs: Sequence[GraphSummary], now: datetime, *, verbose: bool) -> Iterator[Line]:
    """The table of graphs, and below each row what is not settled and why; with `verbose` every service as well."""
    head, *rows = table(HEADERS, [graph_row(graph, now) for graph in graphs])
    yield Line(head, "head")
    for graph, row in zip(graphs, rows, strict=True):
        yield Line(row, TONES.get(graph.state, ""))
        for problem in graph.problems:
            yield Line(f"  problem: {printable(problem)}", "bad")
        for note in graph.notes:
            yield Line(f"  note: {printable(note)}", "later")
        yield from warning_lines(graph.alarms)
        if verbose:
            yield from service_lines(graph)
        yield from waiting_lines(graph)
        yield from wait_lines(graph.waits, now, verbose)


def graph_row(graph: GraphSummary, now: datetime) -> tuple[str, ...]:
    """The cells of one graph."""
    return (
        printable(graph.id.namespace),
        printable(graph.id.name),
        graph.state,
        clipped(graph.graph_state, MAX_NAME) or "-",
        graph.orchestrator or "-",
        f"{graph.ready}/{len(graph.services)}",
        age(now, graph.created_at),
    )


def service_lines(graph: GraphSummary) -> Iterator[Line]:
    """A line for each service, e.g. `service decode: 1 of 2 replicas ready, 2 nodes each, PodCliqueScalingGroup/g-0-decode`."""
    for service in graph.services:
        yield Line(f"  {graph.noun} {clipped(service.name, MAX_NAME)}: {service_text(service)}", "faint")


def waiting_lines(graph: GraphSummary) -> Iterator[Line]:
    """The groups of LeaderWorkerSets that wait for room: how much of each has room, what is missing, who has it, and what to do."""
    advised = set[str]()
    for diagnosis in graph.waiting[:MAX_WAITING]:
        about = f"{diagnosis.about.kind} {diagnosis.about.name}"
        yield Line(
            f"  {clipped(about, MAX_NAME)} waits for room: {clipped(without_repetition(waiting_text(diagnosis)), MAX_ADVICE)}", "later"
        )
        yield from advice_lines(diagnosis.advice, advised)
    if (more := len(graph.waiting) - MAX_WAITING) > 0:
        yield Line(f"  … {more} more wait for room", "faint")


def service_text(service: ServiceSummary) -> str:
    """How many of its replicas can be used, on how many nodes each, and which object runs it."""
    state = service.state
    counted = "available" if state.ready_replicas is None else "ready"
    noun = "replica" if service.replicas == 1 else "replicas"
    nodes = f", {service.nodes} nodes each" if service.nodes > 1 else ""
    runner = f", {state.component_kind}/{clipped(state.component_name, MAX_NAME)}" if state.component_kind else ""
    return f"{service.usable} of {service.replicas} {noun} {counted}{nodes}{runner}"


def graph_entry(graph: GraphSummary) -> dict[str, Any]:
    """A graph in the JSON document."""
    return {
        "root": identity(graph.id),
        "state": graph.state,
        "graphState": graph.graph_state or None,
        "createdAt": moment_text(graph.created_at),
        "orchestrator": graph.orchestrator or None,
        "services": [service_entry(service) for service in graph.services],
        "sets": [identity(nested) for nested in graph.nested],
        "waits": wait_entries(graph.waits),
        "problems": list(graph.problems),
        "notes": list(graph.notes),
        "alarms": alarm_entries(graph.alarms),
        "waiting": [
            {"object": identity(each.about), "waiting": waiting_text(each), "advice": each.advice or None} for each in graph.waiting
        ],
    }


def service_entry(service: ServiceSummary) -> dict[str, Any]:
    """A service of a graph in the JSON document. Counts that its kind of object does not have are null."""
    state = service.state
    return {
        "name": service.name,
        "nodes": service.nodes,
        "replicas": service.replicas,
        "componentKind": state.component_kind or None,
        "componentName": state.component_name or None,
        "existingReplicas": state.replicas,
        "updatedReplicas": state.updated_replicas,
        "readyReplicas": state.ready_replicas,
        "availableReplicas": state.available_replicas,
        "ready": state.is_ready,
        "why": state.reason,
    }


def graph_summaries(result: Pass[Configuration], configuration: Configuration) -> tuple[GraphSummary, ...]:
    """The summaries of all graphs, sorted by namespace and name."""
    plans = {plan.root: plan for plan in result.planned.plans}
    graphs = (observed for observed in result.world.roots if observed.root.id.kind == DYNAMO_GRAPH.name)
    return tuple(_summary(observed, plans, configuration, blueprint_memo(result.memo, observed.root.id)) for observed in graphs)


def _summary(observed: Observed, plans: Mapping[ResourceId, Plan], configuration: Configuration, memo: Memo) -> GraphSummary:
    from resources.blueprints.graph_meaning import admitted_graph  # Most clusters have no graph.
    from resources.reports.summarized_graph import graph_summary, nested_plans

    root, sets = observed.root, nested_plans(observed, plans.values())
    graph = admitted_graph(root.id, root.body, configuration, memo).graph
    return graph_summary(observed, graph, plans[root.id], sets, configuration.schedulers, configuration.limits.of_set.pods)
