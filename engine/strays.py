"""Strays: objects that somebody has deleted, whose root is gone or is another by now, and that only our finalizer still holds."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from engine.blueprint import Blueprint
from engine.ids import ResourceId
from engine.observed import Live, World
from engine.operation import Cause, Expect, Operation, Plan, Verb

WHY = "is being deleted, and the root that it belonged to is gone"


def with_strays(plans: Sequence[Plan], blueprints: Sequence[Blueprint], world: World) -> tuple[Plan, ...]:
    """The plans, and what becomes of strays: what they own goes first, then our finalizers fall.

    Strays of a root that is not there get a plan of their own.
    """
    if world.incomplete:
        return tuple(plans)
    farewells = _farewells(blueprints, world)
    widened = [
        replace(plan, operations=(*plan.operations, *farewells.pop(plan.root))) if plan.root in farewells else plan for plan in plans
    ]
    return (*widened, *(Plan(root, operations) for root, operations in sorted(farewells.items())))


def _farewells(blueprints: Sequence[Blueprint], world: World) -> dict[ResourceId, tuple[Operation, ...]]:
    lives = [*world.orphans, *(one for observed in world.roots for one in observed.context.values())]
    strays = [live for live in lives if live.deleting_since is not None]
    if not strays:
        return {}
    property: dict[str, list[Live]] = {}
    for live in lives:
        for owner in live.owners:
            property.setdefault(owner.uid, []).append(live)
    found: dict[ResourceId, tuple[Operation, ...]] = {}
    for blueprint in blueprints:
        for live in strays:
            root = blueprint.root_of(live)
            operations = tuple(_farewell(blueprint, live, property)) if root is not None else ()
            if root is not None and operations:
                found[root] = (*found.get(root, ()), *operations)
    return found


def _farewell(blueprint: Blueprint, live: Live, property: Mapping[str, Sequence[Live]]) -> Iterator[Operation]:
    ours = blueprint.finalizers.get(live.id.kind, ())
    if not ours:
        return
    owned = property.get(live.uid, ())
    for one in owned:
        if one.deleting_since is None:
            why = f"its owner {live.id} {WHY}"
            yield Operation(Verb.DELETE, one.id, why, Cause.INTENT, expect=Expect(one.uid), controller=one.controller)
    has = live.body["metadata"].get("finalizers") or ()
    held = [finalizer for finalizer in ours if finalizer in has]
    if held and not owned:
        body = {"finalizers": held, "of": list(has)}
        yield Operation(Verb.RELEASE, live.id, f"it {WHY}", Cause.INTENT, body=body, expect=Expect(live.uid), controller=live.controller)
