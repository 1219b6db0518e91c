"""Binding summary: the state of a ClusterTopologyBinding, its levels, and whether the schedulers agree with it."""

from datetime import datetime
from typing import cast

from msgspec import Struct

from engine.ids import ResourceId
from engine.observed import Live, Observed
from engine.plan import Plan, blocked_by
from resources.base import kinds
from resources.reports.summary import WaitSince, problems_of, state_of, wait_since
from resources.schema.issues import Rejected
from resources.schema.parse import parse
from resources.schema.topology import ClusterTopologyBinding, ClusterTopologyBindingStatus
from resources.status.topology_binding import DRIFT


class SchedulerSummary(Struct, frozen=True):
    """What the binding's status says about one scheduler."""

    name: str
    topology: str
    """The scheduler's topology object."""
    in_sync: bool
    message: str
    """Why it is not in sync; empty if it is."""


class BindingSummary(Struct, frozen=True):
    """The summary of one binding at one moment."""

    id: ResourceId
    state: str
    """One of `resources.reports.summary.STATES`."""
    created_at: datetime
    levels: tuple[str, ...]
    """The topology domains, from the broadest to the narrowest."""
    drift: str
    """The reason of its drift condition: `InSync`, `Drift` or `TopologyNotFound`; empty if no scheduler has a topology object."""
    schedulers: tuple[SchedulerSummary, ...]
    waits: tuple[WaitSince, ...]
    problems: tuple[str, ...]


def binding_summary(observed: Observed, plan: Plan) -> BindingSummary:
    """The summary of a binding; `plan` is the plan of the next pass."""
    root = observed.root
    binding = _parsed(root)
    status = binding.status if binding is not None and binding.status is not None else ClusterTopologyBindingStatus()
    return BindingSummary(
        root.id,
        state_of(observed, plan),
        root.created_at,
        tuple(level.domain for level in binding.spec.levels) if binding is not None else (),
        next((condition.reason for condition in status.conditions if condition.type == DRIFT), ""),
        tuple(
            SchedulerSummary(entry.scheduler_name, entry.topology_reference, entry.in_sync, entry.message)
            for entry in status.scheduler_topology_statuses
        ),
        tuple(wait_since(observed, wait) for wait in (*blocked_by(plan), *plan.later)),
        problems_of(plan),
    )


def _parsed(root: Live) -> ClusterTopologyBinding | None:
    """The model of the binding; None if it violates the schema."""
    try:
        return cast(ClusterTopologyBinding, parse(kinds.TOPOLOGY_BINDING, root.body, strict=False))
    except Rejected:
        return None
