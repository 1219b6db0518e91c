"""The laws of a focus: it leaves out, and changes nothing of what it leaves in; what belongs to others is never touched."""

import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as some

from engine.focus import Focus
from engine.guard import Limits
from engine.ids import ResourceId
from engine.memo import Memo
from engine.observed import World
from engine.operation import Operation, is_shared
from engine.tick import Plans, executable, plan_all
from engine.verb import Verb
from resources.base import kinds
from resources.registry import BLUEPRINTS
from tests.laws.fabric_worlds import history, manifests, rack
from tests.laws.rack import Rack
from tests.laws.test_tick_laws import spelled_out

Bodies = list[dict[str, Any]]
CHANCE = some.randoms(use_true_random=False)
EVERY_DELETE = Limits(max_deletes=1000)


def planned(toy: Rack, world: World, **options: Any) -> Plans:
    """The plans for a world, whatever they delete."""
    return plan_all(BLUEPRINTS, world, toy.now, toy.configuration, Memo(), EVERY_DELETE, **options)


def some_roots(toy: Rack, chance: random.Random) -> Focus:
    """A focus on some of the sets."""
    return Focus(frozenset(id for id in toy.objects if id.kind == kinds.PODCLIQUESET.name and chance.random() < 0.5))


def sent(world: World, plans: Plans) -> dict[ResourceId, dict[str, Operation]]:
    """What a pass sends: root -> its operations by key."""
    return {plan.root: {operation.key: operation for operation in plan.operations} for plan in executable(world, plans)}


@given(manifests(), CHANCE)
@settings(max_examples=15)
def test_plans_in_focus_are_those_of_the_whole_and_nothing_else_is_sent_but_a_create_that_another_would_have_made(
    sets: Bodies, chance: random.Random
) -> None:
    toy = rack(sets, chance)
    history(toy, sets, chance)
    world, focus = toy.world(), some_roots(toy, chance)

    whole, part = planned(toy, world), planned(toy, world, focus=focus)
    everything, ours = sent(world, whole), sent(world, part)

    assert spelled_out(part.plans) == spelled_out(tuple(plan for plan in whole.plans if plan.root in (focus.roots or ())))
    for root, operations in ours.items():
        more = [operation for key, operation in operations.items() if key not in everything[root]]
        first = [operation for operation in more if operation.verb is Verb.CREATE and is_shared(operation)]
        after = {operation.key for operation in first}
        assert everything[root].keys() <= operations.keys()
        assert all(operation in first or not after.isdisjoint(operation.after) for operation in more)


@given(manifests(), CHANCE)
@settings(max_examples=15)
def test_what_belongs_to_others_is_never_touched(sets: Bodies, chance: random.Random) -> None:
    toy = rack(sets, chance)
    history(toy, sets, chance)
    focus = some_roots(toy, chance)
    for _ in range(8):
        world = toy.world()
        others = [observed for observed in world.roots if observed.root.id not in (focus.roots or ())]
        theirs = {live.id for observed in others for live in observed.lives()} - {id for observed in others for id in observed.foreign}
        uids = {observed.root.uid for observed in others}
        for plan in executable(world, planned(toy, world, focus=focus)):
            for operation in plan.operations:
                assert operation.id not in theirs
                assert set_owners(toy, operation.id, uids) <= after_call(toy, operation, uids)
        toy.live()


def set_owners(toy: Rack, id: ResourceId, uids: set[str]) -> set[str]:
    """Which of these uids own an object."""
    body = toy.objects.get(id)
    return {owner["uid"] for owner in (body["metadata"].get("ownerReferences") or () if body else ())} & uids


def after_call(toy: Rack, operation: Operation, uids: set[str]) -> set[str]:
    """The same after this call."""
    toy.call(operation)
    return set_owners(toy, operation.id, uids)
