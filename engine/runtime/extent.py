"""Extent: how much a pass has to plan anew."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from engine.blueprint import Blueprint, root_of
from engine.ids import ResourceId
from engine.intent import Intent
from engine.observed import World
from engine.runtime.memory import Memory
from engine.runtime.provider import Observation
from engine.tick import outdated
from engine.world_update import LiveChange, position_of

FEW = 50
"""With more changes than these nobody looks at them one by one: the pass counts as one over everything."""


def extent(blueprints: Sequence[Blueprint], memory: Memory, observation: Observation, intent: Intent, now: datetime) -> int:
    """How many objects the roots have that a pass over this observation plans anew; all that were observed if that is not known."""
    everything, world = len(observation.children), memory.world
    changes, failed = observation.changes_since(memory.observed), memory.failed_calls.changed_since(memory.failures)
    if world is None or changes is None or failed is None or len(changes) + len(failed) > FEW or intent.manifests or intent.removals:
        return everything
    roots = [set(_roots_of(blueprints, world, change)) for change in changes]
    if not all(roots):
        return everything
    expired = {position for id in (*failed, *outdated(memory.memo, now)) if (position := position_of(world, id)) is not None}
    return sum(world.roots[position].count() for position in expired.union(*roots))


def _roots_of(blueprints: Sequence[Blueprint], world: World, change: LiveChange) -> Iterator[int]:
    """The positions of the root that has changed, and of the root that the labels of the object name. None of a root that is gone."""
    live = change.new or change.old
    own = position_of(world, change.id)
    if live is None or (own is not None and change.new is None):
        return
    named: ResourceId | None = root_of(blueprints, live)
    for position in (own, position_of(world, named) if named is not None else None):
        if position is not None:
            yield position
