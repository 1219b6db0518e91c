"""Tick: from what is asked for and what is there, what should be done now. The one function behind preview, one-shot and loop."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from engine import guard
from engine.blueprint import Blueprint, holes
from engine.guard import Limits
from engine.memo import Memo
from engine.observed import Observed, World
from engine.orphans import with_strays
from engine.plan import Objection, Plan
from engine.planner import plan, stamped


@dataclass(frozen=True, slots=True, eq=False)
class Survey:
    """The plans of all roots in scope, and what speaks against doing anything at all."""

    plans: tuple[Plan, ...]
    objections: tuple[Objection, ...] = ()


def tick(blueprint: Blueprint, observed: Observed, now: datetime, settings: Any, memo: Memo) -> Plan:
    """The plan of one root, before any guard has seen it."""

    def make() -> Plan:
        parts, seen = memo.scope("parts"), _as_far_as_it_matters(blueprint, observed, settings)
        desired = blueprint.desire(seen, now, settings, parts)
        made = plan(desired, seen, blueprint.reads(settings), parts)
        parts.forget_unused()
        return made

    return stamped(memo.recall_until("plan", (observed, settings), now, make, lambda made: made.wake_at), now)


def survey(blueprints: Sequence[Blueprint], world: World, now: datetime, settings: Any, memo: Memo, limits: Limits) -> Survey:
    """The plans of every root, each made alone, and the guards' objections."""
    by_kind = {blueprint.kind.name: blueprint for blueprint in blueprints}
    plans = with_strays(tuple(_plans(by_kind, world, now, settings, memo)), blueprints, world, settings)
    memo.forget_unused()
    return Survey(guard.within_budget(plans, world, limits), guard.refuse_to_wipe(world, blueprints))


def _as_far_as_it_matters(blueprint: Blueprint, observed: Observed, settings: Any) -> Observed:
    """The root without the holes in what it has nothing to do with: who may not see those is not held back for it."""
    matters = holes(blueprint, observed.incomplete, settings)
    return observed if matters == observed.incomplete else replace(observed, incomplete=matters)


def _plans(by_kind: dict[str, Blueprint], world: World, now: datetime, settings: Any, memo: Memo) -> Iterator[Plan]:
    for observed in world.roots:
        yield _alone(by_kind[observed.root.id.kind], observed, now, settings, memo.scope(observed.root.id))


def _alone(blueprint: Blueprint, observed: Observed, now: datetime, settings: Any, memo: Memo) -> Plan:
    """The plan of one root, whose faults stay its own: one that cannot be computed leaves everything as it is and says so."""
    try:
        return tick(blueprint, observed, now, settings, memo)
    except Exception as error:
        return Plan(observed.root.id, problems=(f"cannot be understood: {type(error).__name__}: {error}",))
