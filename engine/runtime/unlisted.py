"""Unlisted objects: names under which a root may have objects that no list by label shows, since their labels were removed or changed."""

from collections.abc import Iterable, Iterator, Sequence, Set
from typing import Any, NamedTuple

from engine.blueprint import Blueprint, MentioningBlueprint
from engine.ids import ResourceId
from engine.observed import Observed, World
from engine.plan import Plan
from engine.revised import differences
from engine.verb import Verb


class Candidate(NamedTuple):
    """A name to look up for a root."""

    root: ResourceId
    id: ResourceId
    needed: bool
    """Whether the root is to have an object of this name: then it matters whoever has made the existing one."""


def unlisted(
    blueprints: Sequence[Blueprint], world: World, plans: Iterable[Plan], configuration: Any, *, also_new: bool = True
) -> Iterator[Candidate]:
    """What a pass looks up that knows no earlier one: the objects that the plans create, now or later, and those that others mention.

    Not the roots themselves, which are listed whatever their labels are. `also_new`: also for roots that have no object at all.
    """
    by_root = {observed.root.id: observed for observed in world.roots}
    by_kind = {blueprint.kind.name: blueprint for blueprint in blueprints}
    for plan in plans:
        observed = by_root.get(plan.root)
        if observed is None or not (also_new or any(slice.objects for slice in observed.slices.values())):
            continue
        blueprint = by_kind[plan.root.kind]
        needed = [operation.id for operation in plan.operations if operation.verb is Verb.CREATE and operation.id != plan.root]
        if observed.root.uid:
            needed += [wait.id for wait in plan.deferred if not _is_known(blueprint, observed, wait.id)]
        yield from (Candidate(plan.root, id, needed=True) for id in needed)
        if needed and isinstance(blueprint, MentioningBlueprint):
            mentioned = (id for id in blueprint.mentioned(observed, configuration) if not _is_known(blueprint, observed, id))
            yield from (Candidate(plan.root, id, needed=False) for id in mentioned)


def disappeared(previous: World, world: World, deleted: Set[str]) -> Iterator[Candidate]:
    """What a pass looks up that knows the observed world of the one before: the objects of a root that are not listed any more.

    Those that were being deleted, and `deleted` ones (the uids that we have deleted ourselves), are gone. Of the others, which are few, a
    list by label does not show whether they were deleted at once or have lost their labels.
    """
    for before, now in _changed(previous, world):
        if before.root.uid != now.root.uid:
            continue
        for key, slice in before.slices.items():
            remaining = now.slice(key)
            if remaining is slice:
                continue
            for id, live in slice.objects.items():
                if id not in remaining.objects and live.deleting_since is None and live.uid not in deleted:
                    if id not in now.foreign and world.incomplete.keys().isdisjoint(id.keys()):
                        yield Candidate(now.root.id, id, needed=False)


def _is_known(blueprint: Blueprint, observed: Observed, id: ResourceId) -> bool:
    """Whether the pass knows the object, or cannot know it."""
    keys = id.keys()
    return (
        id == observed.root.id
        or id in observed.slice(blueprint.part_of(observed.root.id, id)).objects
        or id in observed.foreign
        or observed.elsewhere(id) is not None
        or not observed.incomplete.isdisjoint(keys)
        or not observed.unserved.isdisjoint(keys)
    )


def _changed(previous: World, world: World) -> Iterator[tuple[Observed, Observed]]:
    """The roots of which something has changed, before and now; not those that came or went."""
    before, now = previous.roots, world.roots
    different = differences(before, now)
    if different is not None and all(before[index].root.id == now[index].root.id for index in different):
        yield from ((before[index], now[index]) for index in different)
        return
    known = {observed.root.id: observed for observed in before}
    for observed in now:
        old = known.get(observed.root.id)
        if old is not None and old is not observed:
            yield old, observed
