"""Strays: objects that somebody has deleted, whose root is gone or is another by now, and that only our finalizer still holds."""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

from engine.blueprint import Blueprint, holes
from engine.ids import ResourceId
from engine.observed import Live, World
from engine.operation import Cause, Expect, Operation
from engine.plan import Plan
from engine.resource import Policy
from engine.verb import Verb

WHY = "is being deleted, and the root that it belonged to is gone"


def with_orphans(plans: Sequence[Plan], blueprints: Sequence[Blueprint], world: World, configuration: Any) -> tuple[Plan, ...]:
    """The plans, and what becomes of strays: what they own goes first, then our finalizers fall.

    Strays of a root that is not there get a plan of their own. What a root's plan does already is no stray. Where not everything was
    seen that matters to a kind of root, nothing of it is let go.
    """
    farewells = _farewells([one for one in blueprints if not holes(one, world.incomplete, configuration)], world, configuration)
    lasting = {kind for blueprint in blueprints for kind, policy in blueprint.policies(configuration).items() if policy.release_last}
    widened = [_widened(plan, farewells.pop(plan.root), lasting) if plan.root in farewells else plan for plan in plans]
    return (*widened, *(Plan(root, operations) for root, operations in sorted(farewells.items())))


def _widened(plan: Plan, farewells: Sequence[Operation], lasting: Set[str]) -> Plan:
    """What outlasts its users is the business of the root that holds it, unless another root had it for itself: that one is gone."""
    held = {held.id for held in plan.deferred if held.id.kind in lasting}
    spoken_of = {operation.id for operation in plan.operations}
    due = (one for one in farewells if one.id not in spoken_of and (one.controller is not None or one.id not in held))
    return replace(plan, operations=(*plan.operations, *due))


@dataclass(frozen=True, slots=True)
class _Estate:
    """What is left of roots that are gone: who owns what, and which kinds there are still of each root."""

    owned: Mapping[str, Sequence[Live]]
    left: Mapping[ResourceId, Set[str]]


def _farewells(blueprints: Sequence[Blueprint], world: World, configuration: Any) -> dict[ResourceId, tuple[Operation, ...]]:
    lives = [*world.orphans, *(one for observed in world.roots for one in observed.foreign.values())]
    strays = [live for live in lives if live.deleting_since is not None]
    if not strays:
        return {}
    owned: dict[str, list[Live]] = {}
    for live in lives:
        for owner in live.owners:
            owned.setdefault(owner.uid, []).append(live)
    found: dict[ResourceId, tuple[Operation, ...]] = {}
    for blueprint in blueprints:
        policies, reads = blueprint.policies(configuration), blueprint.reads(configuration)
        left: dict[ResourceId, set[str]] = {}
        for live in lives:
            root = blueprint.root_of(live)
            if root is not None:
                left.setdefault(root, set()).add(live.id.kind)
        for live in strays:
            root, policy = blueprint.root_of(live), policies.get(live.id.kind)
            if root is None or policy is None:
                continue
            users = reads.get(live.id.kind, frozenset()) if policy.release_last else frozenset()
            if operations := tuple(_farewell(live, policy, _Estate(owned, left), root, users)):
                found[root] = (*found.get(root, ()), *operations)
    return found


def _farewell(live: Live, policy: Policy, estate: _Estate, root: ResourceId, users: Set[str]) -> Iterator[Operation]:
    owned = estate.owned.get(live.uid, ())
    for one in owned:
        if one.deleting_since is None:
            why = f"its owner {live.id} {WHY}"
            yield Operation(Verb.DELETE, one.id, why, Cause.INTENT, expect=Expect(one.uid), controller=one.controller)
    has = live.body["metadata"].get("finalizers") or ()
    held = [finalizer for finalizer in policy.finalizers if finalizer in has]
    # What must outlast its users waits for what its root has left of their kinds, and for others to let go of it.
    too_early = bool(owned) or (policy.release_last and (len(held) < len(has) or not users.isdisjoint(estate.left[root])))
    if held and not too_early:
        body = {"finalizers": held, "of": list(has)}
        yield Operation(Verb.RELEASE, live.id, f"it {WHY}", Cause.INTENT, body=body, expect=Expect(live.uid), controller=live.controller)
