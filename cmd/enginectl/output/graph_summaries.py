"""Graphs: the summaries of the DynamoGraphDeployments that a pass has observed."""

from collections.abc import Mapping

from engine.ids import ResourceId
from engine.memo import Memo, blueprint_memo
from engine.observed import Observed
from engine.plan import Plan
from engine.runtime.passes import Pass
from resources.base.kinds import DYNAMO_GRAPH
from resources.ports.configuration import Configuration
from resources.reports.graph_summary import GraphSummary


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
    return graph_summary(observed, graph, plans[root.id], sets)
