"""Tick: from what a user asked for and what exists, what to do now. Preview, one-shot and loop call nothing else."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from datetime import datetime
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from engine import guard
from engine.answer import FailedCall
from engine.blueprint import Blueprint, C, Desired, incomplete_kinds
from engine.focus import EVERYTHING, NO_OTHERS, Focus, Others, within
from engine.guard import Limits
from engine.ids import ResourceId
from engine.intent import Record, Removal, recording, to_delete, with_removals
from engine.memo import PARTS, Memo, Revised, as_tuple
from engine.namespaces import held_back, with_places
from engine.observed import MemoryAllowance, Observed, World, by_root
from engine.operation import Create, Operation, Unknown, is_shared
from engine.operation_order import with_one_writer
from engine.plan import Objection, Plan, next_change, noteworthy, without
from engine.planner import plan, with_orphans

ORDINARY = "ordinary plans"
CARRIED = "roots that were not planned anew"
NOTHING_REMOVED: Mapping[ResourceId, Removal] = {}
NOTHING_CARRIED: Mapping[ResourceId, Plan] = {}
NOTHING_BESIDE: Mapping[ResourceId, str] = {}
NONE_PUT_OFF: Set[ResourceId] = frozenset()
UNPLANNED = "what is left to do is not known yet: other roots are planned first"


class Plans(Struct, frozen=True, eq=False):
    """The plans of all roots in focus, and the objections against applying any of them."""

    plans: tuple[Plan, ...]
    objections: tuple[Objection, ...] = ()
    others: Others = NO_OTHERS
    """The roots outside the focus that have changes."""
    first: ResourceId | None = None
    """The plan that is carried out before all others; None: there is none."""


def tick(blueprint: Blueprint[C], observed: Observed, now: datetime, configuration: C, memo: Memo) -> Plan:
    """The plan of one root, before the guards have judged it. Statuses contain `NOW` instead of `now`."""

    def make() -> Plan:
        return _plan_of(blueprint, observed, now, configuration, memo)

    return memo.recall_until("plan", (observed, configuration), now, make, next_change)


def _plan_of(blueprint: Blueprint[C], observed: Observed, now: datetime, configuration: C, memo: Memo) -> Plan:
    """The plan of one root, with everything that it asks for and may have."""
    if observed.allowance is not None:
        return _limited_plan(blueprint, observed, observed.allowance, now, configuration, memo)
    part_memo = memo.scope(PARTS)
    relevant = _with_relevant_incomplete(blueprint, observed, configuration)
    desired = blueprint.desire(relevant, now, configuration, part_memo)
    return _planned(blueprint, desired, relevant, now, configuration, part_memo)


def _limited_plan(
    blueprint: Blueprint[C], observed: Observed, allowance: MemoryAllowance, now: datetime, configuration: C, memo: Memo
) -> Plan:
    """The plan of one root, without what there is no memory for."""
    # Only with too little memory.
    from engine.memory_budget import is_waiting, waiting_plan, with_shortage, within_allowance

    if is_waiting(observed) and not blueprint.nested_kinds():  # A root that proposes others has a status of its own.
        return _nested(waiting_plan(observed, allowance, now), observed)
    part_memo = memo.scope(PARTS)
    relevant = _with_relevant_incomplete(blueprint, observed, configuration)
    desired = with_shortage(blueprint.desire(relevant, now, configuration, part_memo), observed, allowance)
    full = _planned(blueprint, desired, relevant, now, configuration, part_memo)
    return within_allowance(full, desired.graph, observed, allowance, blueprint.light_kinds)


def _planned(blueprint: Blueprint[C], desired: Desired, observed: Observed, now: datetime, configuration: C, memo: Memo) -> Plan:
    """The plan for what is desired of a root. Of what was computed before, what was not used for it is forgotten."""
    result = held_back(plan(desired, observed, now, blueprint.reads(configuration), memo), observed.namespace_phase)
    memo.forget_unused()
    return _nested(result, observed)


def _nested(plan: Plan, observed: Observed) -> Plan:
    """The plan with the root that it is a part of, if there is one."""
    return replace(plan, parent=observed.proposer.id) if observed.proposer is not None else plan


def plan_all(
    blueprints: Sequence[Blueprint[C]],
    world: World,
    now: datetime,
    configuration: C,
    memo: Memo,
    limits: Limits,
    *,
    focus: Focus = EVERYTHING,
    removals: Mapping[ResourceId, Removal] = NOTHING_REMOVED,
    record: Record | None = None,
    beside: Mapping[ResourceId, str] = NOTHING_BESIDE,
    carried: Mapping[ResourceId, Plan] = NOTHING_CARRIED,
    put_off: Set[ResourceId] = NONE_PUT_OFF,
) -> Plans:
    """The plans of the roots in focus and of orphans, each computed on its own, with the objections of the guards.

    The budget of deletes is that of the roots in focus, and only their deletes count against it. A root that is to be removed is deleted in
    place of its ordinary plan, and what is nested in it is left as it is until then. Each object is written for one root. With a `record`
    it is noted what the command works on. `beside`: see `Intent`. `carried` are plans of earlier passes that still count, because they are
    being carried out or their roots are to be planned later: nothing else is planned for these roots. Those in `put_off` are to be planned
    later, and their objects do not count for the budget of deletes: what others have done to all of them is judged alike if it is planned
    in parts.
    """
    ordinary = _ordinary_plans(blueprints, world, now, configuration, memo, to_delete(world, removals), carried)
    plans = with_orphans(with_removals(ordinary, world, removals), blueprints, world, configuration)
    focused = within(plans, world, focus)
    budgeted = guard.within_budget(focused.plans, _without(focused.roots, put_off), limits, judged=carried)
    plans = as_tuple(with_one_writer(budgeted, partial(_failed_calls, world)))
    if any(plan.objections for plan in noteworthy(plans)):
        from engine.root_status import with_denials  # Only where a guard objects.

        plans = with_denials(plans, world, now)
    if beside:
        plans = with_places(plans, beside)
    noted = recording(record, world, plans, removals)
    # A command about certain roots leaves alone what others have left behind.
    unowned = guard.refuse_unowned_cluster(world, blueprints, configuration) if focus.roots is None else ()
    objections = (*unowned, *noted.objections)
    if objections or not noted.plans:
        return Plans(plans, objections, focused.others)
    return Plans((*noted.plans, *plans), (), focused.others, first=noted.plans[0].root if noted.is_first else None)


def _without(roots: Iterable[Observed], put_off: Set[ResourceId]) -> Iterable[Observed]:
    return (observed for observed in roots if observed.root.id not in put_off) if put_off else roots


def _failed_calls(world: World) -> Mapping[ResourceId, Sequence[FailedCall]]:
    """The failed calls of each root."""
    return {observed.root.id: observed.failed_calls or () for observed in world.roots}


def _ordinary_plans(
    blueprints: Sequence[Blueprint[C]],
    world: World,
    now: datetime,
    configuration: C,
    memo: Memo,
    left_out: Set[ResourceId],
    carried: Mapping[ResourceId, Plan],
) -> Revised[Plan]:
    """The plan of each root; of those in `left_out` an empty one. The plans of the last call are kept where nothing has changed.

    A plan that could not be computed is always tried again.
    """
    by_kind, roots = {blueprint.kind.name: blueprint for blueprint in blueprints}, by_root(world.roots)

    def plan_of(observed: Observed) -> Plan:
        root = observed.root.id
        if (plan := carried.get(root)) is not None:
            return plan
        if root in left_out:
            return _nested(Plan(root), observed)
        return _plan_or_error(by_kind[root.kind], observed, now, configuration, memo.scope(root))

    if left_out:
        plans = Revised(roots.roots, map(plan_of, roots))
        memo.forget_unused()
        return plans
    last, also = memo.last_each(ORDINARY), due(memo, now, carried)
    plans = memo.each(ORDINARY, roots, (configuration,), plan_of, also=also)
    memo.remember(CARRIED, frozenset(carried))
    if last is not None and plans.roots is last.roots:
        memo.forget_unused_results()
    else:
        memo.forget_unused(plans.roots)
    return plans


def due(memo: Memo, now: datetime, carried: Collection[ResourceId]) -> list[ResourceId]:
    """The roots to be planned anew at this time although nothing has changed.

    Those whose last plans do not hold any more, and those that were in `carried` when all roots were planned last, and are not now.
    """
    last = memo.last_each(ORDINARY)
    expiring: Iterable[Plan] = last.where(_may_expire) if last is not None else ()
    outdated = [plan.root for plan in expiring if plan.error or ((moment := next_change(plan)) and moment <= now)]
    return [*outdated, *(memo.last(CARRIED) or frozenset()).difference(carried)]


def last_plan(memo: Memo, root: ResourceId) -> Plan:
    """The plan of a root that `plan_all` has made last; if it has made none, an empty one that says so."""
    last: Revised[Plan] | None = memo.last_each(ORDINARY)
    return (last.get(root) if last is not None else None) or Plan(root, notes=(UNPLANNED,), is_unplanned=True)


def _may_expire(plan: Plan) -> bool:
    """Whether the plan does not hold until something changes: it expires, or could not be computed."""
    return plan.error is not None or next_change(plan) is not None


def _with_relevant_incomplete(blueprint: Blueprint[C], observed: Observed, configuration: C) -> Observed:
    """The observation with only those incomplete kinds that the root depends on: permissions for other kinds are not required."""
    relevant = incomplete_kinds(blueprint, observed.incomplete, configuration)
    return observed if relevant == observed.incomplete else replace(observed, incomplete=relevant)


def _plan_or_error(blueprint: Blueprint[C], observed: Observed, now: datetime, configuration: C, memo: Memo) -> Plan:
    """The plan of one root. If our own code fails on it, nothing is planned for it, and other roots are not affected."""
    try:
        return tick(blueprint, observed, now, configuration, memo)
    except Exception as error:
        return Plan(observed.root.id, error=error)


def executable(
    world: World, planned: Plans, excluded: Callable[[Operation], bool] = lambda operation: False, sent: Set[ResourceId] = frozenset()
) -> tuple[Plan, ...]:
    """The plans with the operations that may be executed in this pass; some of them may have none left. Plans without any may be absent.

    Left out are the roots whose plans are being `sent`, and `excluded` operations with those that come after them. Of a plan that a guard
    objects to only its denial is left.
    An object that roots share is created for one of them: the others find it in the next pass and join (N28).
    What is to be carried out before everything else (`Plans.first`) is carried out alone.
    A root that does not exist yet is created alone: its children need its uid, as it needs that of the root it is a part of.
    When a guard objects to the pass as a whole, only plans without a root are executed: they finish deletions that others have
    started.
    """
    plans = [plan for plan in noteworthy(planned.plans) if plan.operations and planned.first in (None, plan.root)]
    if planned.objections and plans:
        roots = {observed.root.id for observed in world.roots}
        plans = [plan for plan in plans if plan.root not in roots]
    allowed = (plan if not plan.objections else _denial(plan) for plan in plans)
    return tuple(_creating_once(allowed, excluded, sent))


def _denial(plan: Plan) -> Plan:
    """Only the write of the status that says why the plan is not carried out; nothing if it is written."""
    return replace(plan, operations=(plan.denial,) if plan.denial is not None else ())


def _creation_first(plan: Plan) -> Plan:
    """Only the creation of the root, if the plan contains it; nothing while the root that it is nested in does not exist."""
    creation = tuple(operation for operation in plan.operations if isinstance(operation, Create) and operation.id == plan.root)
    if not creation:
        return plan
    needs_owner = any(isinstance(owner.uid, Unknown) for operation in creation for owner in operation.owners)
    return replace(plan, operations=() if needs_owner else creation)


def _creating_once(plans: Iterable[Plan], excluded: Callable[[Operation], bool], sent: Set[ResourceId]) -> Iterator[Plan]:
    """What of the plans may be executed, with the creation of an object that roots share in the first one that has it only.

    Of those that are being sent nothing may be: of them only such creations are looked for, for they may be as long as all others together.
    """
    creators: dict[ResourceId, ResourceId] = {}

    def is_created_before(plan: Plan, operation: Operation) -> bool:
        return isinstance(operation, Create) and is_shared(operation) and creators.setdefault(operation.id, plan.root) != plan.root

    for each in plans:
        shared = [operation for operation in each.operations if isinstance(operation, Create) and is_shared(operation)]
        if each.root not in sent:
            left = without(_creation_first(each), excluded)
            yield without(left, partial(is_created_before, each)) if shared else left
        else:
            for operation in shared:
                if not excluded(operation):
                    creators.setdefault(operation.id, each.root)
