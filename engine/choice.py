"""Choice: which operations of planned roots are executed now. What previews forecast and what `sync` and `run` send is chosen here."""

from collections.abc import Callable, Iterable
from functools import partial

from msgspec.structs import replace

from engine.ids import ResourceId
from engine.observed import World
from engine.operation import Operation, Unknown, is_shared
from engine.plan import Plan, noteworthy, without
from engine.tick import Plans
from engine.verb import Verb


def executable(world: World, planned: Plans, excluded: Callable[[Operation], bool] = lambda operation: False) -> tuple[Plan, ...]:
    """The plans with the operations that may be executed in this pass; some of them may have none left. Plans without any may be absent.

    Left out are plans that a guard objects to, and `excluded` operations with those that come after them.
    An object that roots share is created for one of them: the others find it in the next pass and join (N28).
    What is to be carried out before everything else (`Plans.first`) is carried out alone.
    A root that does not exist yet is created alone: its children need its uid, as it needs that of the root it is a part of.
    When a guard objects to the pass as a whole, only plans without a root are executed: they finish deletions that somebody else
    has started.
    """
    plans = [plan for plan in noteworthy(planned.plans) if plan.operations and planned.first in (None, plan.root)]
    if planned.objections and plans:
        roots = {observed.root.id for observed in world.roots}
        plans = [plan for plan in plans if plan.root not in roots]
    allowed = (plan for plan in plans if not plan.objections)
    return tuple(_creating_once(without(_creation_first(plan), excluded) for plan in allowed))


def _creation_first(plan: Plan) -> Plan:
    """Only the creation of the root, if the plan contains it; nothing while the root that it is nested in does not exist."""
    creation = tuple(operation for operation in plan.operations if operation.verb is Verb.CREATE and operation.id == plan.root)
    if not creation:
        return plan
    needs_owner = any(isinstance(owner.uid, Unknown) for operation in creation for owner in operation.owners)
    return replace(plan, operations=() if needs_owner else creation)


def _creating_once(plans: Iterable[Plan]) -> list[Plan]:
    """The plans, with the creation of an object that roots share in the first one that has it only."""
    creators: dict[ResourceId, ResourceId] = {}

    def is_created_before(plan: Plan, operation: Operation) -> bool:
        return operation.verb is Verb.CREATE and is_shared(operation) and creators.setdefault(operation.id, plan.root) != plan.root

    return [without(plan, partial(is_created_before, plan)) if plan.operations else plan for plan in plans]
