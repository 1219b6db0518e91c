"""Cluster status: the summaries of everything that a pass has planned for. `engine status` and the page of `engine run` show it."""

from collections.abc import Mapping
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from engine.observed import Observed, unlisted_texts
from engine.plan import Plan
from engine.runtime.passes import Pass
from enginectl.output.graphs import graph_summaries
from resources.base.kinds import PODCLIQUESET, TOPOLOGY_BINDING
from resources.domains.status import domain_statuses
from resources.ports.configuration import Configuration
from resources.reports.binding_summary import BindingSummary, binding_summary
from resources.reports.graph_summary import GraphSummary
from resources.reports.obstacles import advised, pods_of
from resources.reports.summary import WorkloadSummary, summary


class ClusterStatus(Struct, frozen=True):
    """The state of every root at one moment, sorted by namespace and name."""

    now: datetime
    graphs: tuple[GraphSummary, ...]
    workloads: tuple[WorkloadSummary, ...]
    bindings: tuple[BindingSummary, ...]
    incomplete: Mapping[str, str]
    """Kind -> why it could not be listed completely."""


def cluster_status(result: Pass[Configuration], configuration: Configuration, name: str = "", namespace: str = "") -> ClusterStatus:
    """The state of all roots, or of those of that name and in that namespace."""

    def is_asked(observed: Observed) -> bool:
        return name in ("", observed.root.id.name) and namespace in ("", observed.root.id.namespace)

    plans = {plan.root: plan for plan in result.planned.plans}
    asked = [(observed, plans[observed.root.id]) for observed in result.world.roots if is_asked(observed)]
    return ClusterStatus(
        result.now,
        tuple(
            graph
            for graph in graph_summaries(result, configuration)
            if name in ("", graph.id.name) and namespace in ("", graph.id.namespace)
        ),
        tuple(workload(observed, plan, result, configuration) for observed, plan in asked if observed.root.id.kind == PODCLIQUESET.name),
        tuple(binding_summary(observed, plan) for observed, plan in asked if observed.root.id.kind == TOPOLOGY_BINDING.name),
        unlisted_texts(result.world.incomplete),
    )


def workload(observed: Observed, plan: Plan, result: Pass[Configuration], configuration: Configuration) -> WorkloadSummary:
    """The summary of a set, with its domains. The plan has the notes of previews."""
    whole = summary(observed, plan, domain_statuses(observed, plan, configuration))
    if not whole.waits:
        return whole
    return replace(whole, waits=advised(whole.waits, pods_of(observed, result.world, configuration), result.now))
