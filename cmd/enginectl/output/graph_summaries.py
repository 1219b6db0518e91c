"""Graphs: the summaries of the DynamoGraphDeployments that a pass has observed."""

from collections.abc import Mapping

from engine.ids import ResourceId
from engine.observed import Observed
from engine.plan import Plan
from engine.runtime.passes import Pass
from resources.admission.admit import admit
from resources.admission.request import Act, Request
from resources.base.kinds import DYNAMO_GRAPH
from resources.dynamo.model.graph import InferenceGraph, read_graph
from resources.ports.configuration import Configuration
from resources.reports.graph_summary import GraphSummary, graph_summary, nested_plans


def graph_summaries(result: Pass, configuration: Configuration) -> tuple[GraphSummary, ...]:
    """The summaries of all graphs, sorted by namespace and name."""
    plans = {plan.root: plan for plan in result.planned.plans}
    graphs = (observed for observed in result.world.roots if observed.root.id.kind == DYNAMO_GRAPH.name)
    return tuple(_summary(observed, plans, configuration) for observed in graphs)


def _summary(observed: Observed, plans: Mapping[ResourceId, Plan], configuration: Configuration) -> GraphSummary:
    sets = nested_plans(observed, plans.values())
    return graph_summary(observed, stored_graph(observed, configuration), plans[observed.root.id], sets)


def stored_graph(observed: Observed, configuration: Configuration) -> InferenceGraph | None:
    """The graph as specified, with its defaults; None if it is not valid."""
    root = observed.root
    decision = admit(Request(Act.CREATE, root.id, root.body), configuration)
    return None if decision.issues or decision.body is None else read_graph(root.id, decision.body)
