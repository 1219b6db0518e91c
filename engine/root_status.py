"""Root status: what the status of a root says while its plan is not carried out, or not computed: why not, and that it was seen."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from msgspec.structs import replace

from engine.conditions import APPLIED, READY, applied, completed_generation, find, is_true
from engine.health import TYPES, Obstacle, Readiness, health, with_health
from engine.observed import Live, Observed, World, by_root
from engine.operation import WriteStatus
from engine.plan import Plan
from engine.resource import Body
from engine.resource_plan import status_write

DENIED: Final = "PlanDenied"
"""The reason of a root whose plan a guard refuses."""
NOTHING_PLANNED: Final[Body] = {}


def with_denials(plans: Sequence[Plan], world: World, now: datetime) -> tuple[Plan, ...]:
    """The plans; those that a guard refuses with the status in which their roots say so, unless they say it already.

    It says nothing of a manifest that a command would apply: then the root that is stored is not what is refused.
    """
    roots = by_root(world.roots)
    return tuple(_with_denial(plan, roots.get(plan.root), now) if plan.objections else plan for plan in plans)


def _with_denial(plan: Plan, observed: Observed | None, now: datetime) -> Plan:
    if observed is None or not plan.health_types or (observed.proposal is not None and observed.proposer is None):
        return plan
    message = "; ".join(f"{objection.rule}: {objection.message}" for objection in plan.objections)
    planned = (each.patch["status"] for each in plan.operations if isinstance(each, WriteStatus) and each.id == plan.root)
    status = next(planned, NOTHING_PLANNED)
    return replace(plan, denial=obstructed(observed.root, Obstacle(DENIED, message), now, plan.health_types, status))


def obstructed(
    root: Live, obstacle: Obstacle, now: datetime, types: tuple[str, ...] = TYPES, planned: Body = NOTHING_PLANNED
) -> WriteStatus | None:
    """The write after which the root is stalled by the obstacle, and its generation is seen; None if its status says so already.

    `types` are the conditions of health that the engine writes in it, `planned` is what else is to be written. Which generation was carried
    out completely stays known.
    """
    old = root.body.get("status") or {}
    status = {"conditions": old.get("conditions") or [], **planned}
    own_ready = READY not in types and is_true(status["conditions"], READY)
    readiness = Readiness(own_ready, obstacle.reason, obstacle.message, obstacle=obstacle, has_own_ready=READY not in types)
    if READY in types or "observedGeneration" in old:
        status["observedGeneration"] = root.generation
    completed = completed_generation(root.body)
    if completed is not None and READY in types and find(status["conditions"], APPLIED) is None:
        status["conditions"] = [*status["conditions"], applied(completed)]
    healthy = with_health(status, health(readiness, (), (), root, now), root)
    return status_write(root, healthy, f"its plan is not carried out: {obstacle.reason}")
