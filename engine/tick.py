"""Tick: from what is intended for and what is there, what should be done now. The one function behind preview, one-shot and loop."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from engine import guard
from engine.blueprint import Blueprint, holes
from engine.guard import Limits
from engine.memo import Memo
from engine.observed import Observed, World
from engine.orphans import with_orphans
from engine.plan import Objection, Plan
from engine.planner import plan, stamped


@dataclass(frozen=True, slots=True, eq=False)
class Plans:
    """The plans of all roots in scope, and what speaks against doing anything at all."""

    plans: tuple[Plan, ...]
    objections: tuple[Objection, ...] = ()


def tick(blueprint: Blueprint, observed: Observed, now: datetime, configuration: Any, memo: Memo) -> Plan:
    """The plan of one root, before any guard has seen it."""

    def make() -> Plan:
        parts, seen = memo.scope("parts"), _as_far_as_it_matters(blueprint, observed, configuration)
        desired = blueprint.desire(seen, now, configuration, parts)
        made = plan(desired, seen, blueprint.reads(configuration), parts)
        parts.forget_unused()
        return made

    return stamped(memo.recall_until("plan", (observed, configuration), now, make, lambda made: made.wake_at), now)


def plan_all(blueprints: Sequence[Blueprint], world: World, now: datetime, configuration: Any, memo: Memo, limits: Limits) -> Plans:
    """The plans of every root, each made alone, and the guards' objections."""
    by_kind = {blueprint.kind.name: blueprint for blueprint in blueprints}
    plans = with_orphans(tuple(_plans(by_kind, world, now, configuration, memo)), blueprints, world, configuration)
    memo.forget_unused()
    return Plans(guard.within_budget(plans, world, limits), guard.refuse_unowned_cluster(world, blueprints))


def _as_far_as_it_matters(blueprint: Blueprint, observed: Observed, configuration: Any) -> Observed:
    """The root without the holes in what it has nothing to do with: who may not see those is not held back for it."""
    matters = holes(blueprint, observed.incomplete, configuration)
    return observed if matters == observed.incomplete else replace(observed, incomplete=matters)


def _plans(by_kind: dict[str, Blueprint], world: World, now: datetime, configuration: Any, memo: Memo) -> Iterator[Plan]:
    for observed in world.roots:
        yield _alone(by_kind[observed.root.id.kind], observed, now, configuration, memo.scope(observed.root.id))


def _alone(blueprint: Blueprint, observed: Observed, now: datetime, configuration: Any, memo: Memo) -> Plan:
    """The plan of one root, whose faults stay its own: one that cannot be computed leaves everything as it is and says so."""
    try:
        return tick(blueprint, observed, now, configuration, memo)
    except Exception as error:
        return Plan(observed.root.id, problems=(f"cannot be understood: {type(error).__name__}: {error}",))
