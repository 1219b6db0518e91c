"""Summarized graph: the summary of one graph, from what was observed and planned. Imported for the first graph."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from msgspec.structs import replace

from engine.ids import ResourceId
from engine.observed import Live, Observed
from engine.plan import Plan, Wait, blocked_by
from engine.report.meaning import needed
from resources.base.fields import annotations_of, mapping
from resources.dynamo import orchestrator
from resources.dynamo.model.graph import GraphService, InferenceGraph, Orchestrator, is_beta_as_written
from resources.dynamo.model.state import ServiceState
from resources.dynamo.objects.group_scheduler import group_schedulers
from resources.dynamo.objects.replica_limit import allowed_replicas, limited
from resources.dynamo.objects.scaling_adapter import scaled
from resources.dynamo.readiness_components import component_states
from resources.dynamo.readiness_grove import service_states
from resources.dynamo.versions.api_versions import served_as
from resources.ports.configuration import ONLY, SET_LIMITS
from resources.ports.scheduler import Scheduler
from resources.reports.graph_summary import GraphSummary, ServiceSummary
from resources.reports.summary import WaitSince, alarms_of, problems_of, state_of, unchanged_since

ORCHESTRATORS: Final = {Orchestrator.GROVE: "Grove", Orchestrator.COMPONENTS: "components"}
"""How the orchestrators are called in reports."""
NOT_RUN: Final = "nothing runs it"
"""Why a service is not ready while nothing can run its graph."""


def graph_summary(
    observed: Observed,
    graph: InferenceGraph | None,
    plan: Plan,
    sets: Sequence[Plan] = (),
    schedulers: Mapping[str, Scheduler] = MappingProxyType({}),
    most_pods: int = SET_LIMITS.pods,
) -> GraphSummary:
    """The summary of a stored graph. `graph`: the graph as specified, None if it is not valid.

    `plan` is the plan of the next pass for the graph, `sets` are those for the PodCliqueSets that it consists of; `schedulers` are the
    enabled back ends.
    """
    choice = _orchestrator(observed, graph, schedulers) if graph else None
    graph = scaled(observed, graph, choice) if graph else None
    deferred = [*plan.later, *(wait for each in (plan, *sets) for wait in blocked_by(each))]
    first = {wait.id: wait for wait in reversed((*deferred, *plan.pending))}
    return GraphSummary(
        observed.root.id,
        state_of(observed, _with_sets(plan, sets)),
        str(mapping(observed.root.body.get("status")).get("state") or ""),
        observed.root.created_at,
        ORCHESTRATORS[choice] if choice else "",
        tuple(_services(observed, graph, choice, most_pods)) if graph else (),
        tuple(_wait_since(observed, first[id]) for id in sorted(first)),
        problems_of(plan),
        plan.notes,
        tuple(sorted({*observed.nested, *(each.root for each in sets)})),
        alarms_of(plan),
        "component" if is_beta_as_written(served_as(observed.root.body), annotations_of(observed.root.body)) else "service",
    )


def _orchestrator(observed: Observed, graph: InferenceGraph, schedulers: Mapping[str, Scheduler]) -> Orchestrator | None:
    """What runs the graph; None if nothing can."""
    groups = group_schedulers(graph, observed.slice(ONLY), schedulers, observed.unserved).values()
    kinds_of_groups = tuple(dict.fromkeys(scheduler.kind for scheduler in groups))
    return orchestrator.choose(graph, observed.unserved, orchestrator.recorded_orchestrator(observed), groups=kinds_of_groups).orchestrator


def _with_sets(plan: Plan, sets: Sequence[Plan]) -> Plan:
    """One plan with everything that is to be done for the graph and its sets."""
    every = (plan, *sets)
    return replace(
        plan,
        operations=tuple(operation for each in every for operation in each.operations),
        deferred=tuple(wait for each in every for wait in each.deferred),
        pending=tuple(wait for each in every for wait in each.pending),
        objections=tuple(objection for each in every for objection in each.objections),
        problems=tuple(problem for each in every for problem in each.problems),
        alarms=tuple(alarm for each in every for alarm in each.alarms),
        is_unplanned=any(each.is_unplanned for each in every),
        error=next((each.error for each in every if each.error), None),
    )


def nested_plans(observed: Observed, plans: Iterable[Plan]) -> tuple[Plan, ...]:
    """The plans of the roots that a root consists of, whether these exist or not, sorted by their ids."""
    nested = (plan for plan in plans if plan.parent == observed.root.id or plan.root in observed.nested)
    return tuple(sorted(nested, key=lambda plan: plan.root))


def _services(observed: Observed, graph: InferenceGraph, choice: Orchestrator | None, most_pods: int) -> Iterator[ServiceSummary]:
    """Every service with its state, in the order of the graph."""
    states = {state.service: state for state in _states(observed, graph, choice, most_pods)}
    for service in graph.services:
        state = states.get(service.name) or ServiceState(service.name, "", "", ready_replicas=0, reason=NOT_RUN)
        yield ServiceSummary(service.name, service.nodes, _replicas(service, state), state)


def _states(observed: Observed, graph: InferenceGraph, choice: Orchestrator | None, most_pods: int) -> tuple[ServiceState, ...]:
    if choice is None:
        return ()
    if choice is Orchestrator.GROVE:
        return service_states(graph, observed.elsewhere)
    return component_states(limited(graph, allowed_replicas(graph, observed, most_pods)), observed.find)


def _replicas(service: GraphService, state: ServiceState) -> int:
    return service.replicas if not service.is_scaled_by_others else max(state.replicas, service.replicas)


def _wait_since(observed: Observed, wait: Wait) -> WaitSince:
    """The wait with the time since when its object is in its present state; None if the object does not exist."""
    live = _live(observed, wait.id)
    return WaitSince(wait.id, wait.why, unchanged_since(live) if live else None, wait.until, needed(wait), wait.reason)


def _live(observed: Observed, id: ResourceId) -> Live | None:
    """The graph, one of its objects, or an object of the sets that it consists of."""
    return observed.root if id == observed.root.id else observed.find(id) or observed.elsewhere(id)
