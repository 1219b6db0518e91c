"""Tick: from what a user asked for and what exists, what to do now. Preview, one-shot and loop call nothing else."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from engine import guard
from engine.blueprint import Blueprint, incomplete_kinds
from engine.focus import EVERYTHING, NO_OTHERS, Focus, Others, within
from engine.guard import Limits
from engine.ids import ResourceId
from engine.memo import Memo
from engine.observed import Observed, World
from engine.orphans import with_orphans
from engine.plan import Objection, Plan
from engine.planner import plan
from engine.removal import Removal, to_delete, with_removals

NOTHING_REMOVED: Mapping[ResourceId, Removal] = {}


@dataclass(frozen=True, slots=True, eq=False)
class Plans:
    """The plans of all roots in focus, and the objections against applying any of them."""

    plans: tuple[Plan, ...]
    objections: tuple[Objection, ...] = ()
    others: Others = NO_OTHERS
    """The roots outside the focus that have changes."""


def tick(blueprint: Blueprint, observed: Observed, now: datetime, configuration: Any, memo: Memo) -> Plan:
    """The plan of one root, before the guards have judged it. Statuses contain `NOW` instead of `now`."""

    def make() -> Plan:
        part_memo = memo.scope("parts")
        relevant = _with_relevant_incomplete(blueprint, observed, configuration)
        desired = blueprint.desire(relevant, now, configuration, part_memo)
        result = plan(desired, relevant, blueprint.reads(configuration), part_memo)
        part_memo.forget_unused()
        return replace(result, parent=observed.proposer.id) if observed.proposer is not None else result

    return memo.recall_until("plan", (observed, configuration), now, make, lambda result: result.wake_at)


def plan_all(
    blueprints: Sequence[Blueprint],
    world: World,
    now: datetime,
    configuration: Any,
    memo: Memo,
    limits: Limits,
    *,
    focus: Focus = EVERYTHING,
    removals: Mapping[ResourceId, Removal] = NOTHING_REMOVED,
) -> Plans:
    """The plans of the roots in focus and of orphans, each computed on its own, with the objections of the guards.

    The budget of deletes is that of the roots in focus, and only their deletes count against it. A root that is to be removed is deleted
    in place of its ordinary plan, and what is nested in it is left as it is until then.
    """
    by_kind = {blueprint.kind.name: blueprint for blueprint in blueprints}
    left_out = to_delete(world, removals)
    ordinary = (
        Plan(observed.root.id, parent=observed.proposer.id if observed.proposer is not None else None)
        if observed.root.id in left_out
        else _plan_or_error(by_kind[observed.root.id.kind], observed, now, configuration, memo.scope(observed.root.id))
        for observed in world.roots
    )
    plans = with_orphans(with_removals(tuple(ordinary), world, removals), blueprints, world, configuration)
    memo.forget_unused()
    focused = within(plans, world, focus)
    budgeted = guard.within_budget(focused.plans, focused.roots, limits)
    return Plans(budgeted, guard.refuse_unowned_cluster(world, blueprints), focused.others)


def _with_relevant_incomplete(blueprint: Blueprint, observed: Observed, configuration: Any) -> Observed:
    """The observation with only those incomplete kinds that the root depends on: permissions for other kinds are not required."""
    relevant = incomplete_kinds(blueprint, observed.incomplete, configuration)
    return observed if relevant == observed.incomplete else replace(observed, incomplete=relevant)


def _plan_or_error(blueprint: Blueprint, observed: Observed, now: datetime, configuration: Any, memo: Memo) -> Plan:
    """The plan of one root. If our own code fails on it, nothing is planned for it, and other roots are not affected."""
    try:
        return tick(blueprint, observed, now, configuration, memo)
    except Exception as error:
        return Plan(observed.root.id, error=error)
