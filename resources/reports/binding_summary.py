"""Binding summary: how a ClusterTopologyBinding is doing, for people: its levels, and whether the schedulers agree."""

from dataclasses import dataclass
from datetime import datetime
from typing import cast

from engine.ids import ResourceId
from engine.observed import Live, Observed
from engine.plan import Plan
from resources.base import kinds
from resources.reports.summary import Waiting, state, wait
from resources.schema.issues import Rejected
from resources.schema.parse import parse
from resources.schema.topology import ClusterTopologyBinding, ClusterTopologyBindingStatus
from resources.status.topology_binding import DRIFT


@dataclass(frozen=True, slots=True)
class Scheduler:
    """What is said of one scheduler."""

    name: str
    topology: str
    in_sync: bool
    message: str


@dataclass(frozen=True, slots=True)
class Binding:
    """One binding at one moment."""

    id: ResourceId
    state: str
    """As that of a workload."""
    created_at: datetime
    levels: tuple[str, ...]
    """The domains, from the broadest to the narrowest."""
    drift: str
    """`InSync`, `Drift` or `TopologyNotFound`; empty where there is no scheduler to agree with it."""
    schedulers: tuple[Scheduler, ...]
    waits: tuple[Waiting, ...]
    problems: tuple[str, ...]


def binding_summary(observed: Observed, plan: Plan) -> Binding:
    """How a binding is doing, given what a pass would still do about it."""
    root = observed.root
    said = _said(root)
    status = said.status if said is not None and said.status is not None else ClusterTopologyBindingStatus()
    return Binding(
        root.id,
        state(observed, plan),
        root.created_at,
        tuple(level.domain for level in said.spec.levels) if said is not None else (),
        next((one.reason for one in status.conditions if one.type == DRIFT), ""),
        tuple(
            Scheduler(one.scheduler_name, one.topology_reference, one.in_sync, one.message) for one in status.scheduler_topology_statuses
        ),
        tuple(wait(observed, one) for one in plan.deferred),
        (*plan.problems, *(objection.message for objection in plan.objections)),
    )


def _said(root: Live) -> ClusterTopologyBinding | None:
    """The binding, unless nobody can read it as one."""
    try:
        return cast(ClusterTopologyBinding, parse(kinds.TOPOLOGY_BINDING, root.body, strict=False))
    except Rejected:
        return None
