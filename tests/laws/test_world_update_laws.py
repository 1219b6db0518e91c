"""The world that is made from the one before and from what has changed is the world that is assembled from everything."""

from functools import partial
from types import MappingProxyType
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.answer import FailedCall
from engine.ids import OwnerRef, ResourceId
from engine.memo import differences
from engine.observed import Live, World, live
from engine.runtime.failed_calls import failed_call
from engine.world import assemble
from engine.world_update import LiveChange, updated
from resources.base import kinds, labels
from resources.registry import BLUEPRINTS
from tests.builders import clique, group, podcliqueset
from tests.engine.runtime.fakes import create
from tests.laws.toy import START, Toy

Lives = dict[ResourceId, Live]
ACTIONS = ("touch", "touch", "touch", "delete", "copy", "orphan", "relabel", "recreate", "adopt", "mix")


def settled() -> Lives:
    """Two sets and everything that they consist of."""
    toy = Toy()
    toy.put(podcliqueset("demo", clique("a", 2), clique("b"), groups=(group("g", "b", replicas=2),)))
    toy.put(podcliqueset("other"))
    toy.settle()
    lives = (live(body) for body in toy.objects.values())
    return {live.id: live for live in lives if live.id.kind == kinds.PODCLIQUESET.name or labels.MANAGED_BY in live.labels}


SETTLED = settled()


def acted(lives: Lives, action: str, chosen: Live, other: Live, number: int) -> list[LiveChange]:
    """Do something to one object. Returns what has changed, as a watch would report it."""
    revised: Any = partial(replace, chosen, revision=f"r{number}")
    new: Live | None
    match action:
        case "touch":
            new = revised()
        case "delete":
            new = None
        case "orphan":
            new = revised(owners=())
        case "relabel":
            new = revised(labels=other.labels)
        case "recreate":
            new = revised(uid=f"uid-new-{number}")
        case "adopt":
            new = revised(owners=(OwnerRef(other.id.kind, other.id.name, other.uid, True),))
        case "mix":
            id = chosen.id._replace(name=f"{chosen.id.name}-{number}")
            new = chosen = revised(id=id, uid=f"uid-mix-{number}", labels=other.labels, owners=other.owners)
        case _:
            new = chosen = revised(id=chosen.id._replace(name=f"{chosen.id.name}-{number}"), uid=f"uid-copy-{number}")
    old = lives.pop(chosen.id, None)
    if new is not None:
        lives[chosen.id] = new
    return [LiveChange(old, new)]


def assembled(lives: Lives, failed: dict[ResourceId, tuple[FailedCall, ...]], previous: World | None = None) -> World:
    """The world of all objects."""
    roots = [live for live in lives.values() if live.id.kind == kinds.PODCLIQUESET.name]
    children = [live for live in lives.values() if live.id.kind != kinds.PODCLIQUESET.name]
    return assemble(BLUEPRINTS, roots, children, {}, previous, failed_calls=MappingProxyType(failed))


def content(world: World) -> Any:
    """Everything in a world, by the identity of its objects."""
    roots = [
        (
            observed.root,
            [(key, list(slice.objects.values()), slice.by_kind) for key, slice in observed.slices.items()],
            dict(observed.foreign),
            observed.mislabelled,
            observed.failed_calls,
        )
        for observed in world.roots
    ]
    return roots, world.orphans, world.incomplete, world.unserved


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_a_world_that_is_updated_is_the_world_that_is_assembled(data: st.DataObject) -> None:
    lives, failed = dict(SETTLED), dict[ResourceId, tuple[FailedCall, ...]]()
    world = assembled(lives, failed)
    for step in range(data.draw(st.integers(1, 4))):
        changes: list[LiveChange] = []
        for index in range(data.draw(st.integers(0, 4))):
            chosen, other = (data.draw(st.sampled_from(sorted(lives.values(), key=lambda live: live.id))) for _ in range(2))
            changes += acted(lives, data.draw(st.sampled_from(ACTIONS)), chosen, other, 10 * step + index)
        failing = data.draw(st.sets(st.sampled_from([observed.root.id for observed in world.roots]))) if world.roots else set()
        failed |= dict.fromkeys(failing, (failed_call(create("a"), None, START),))
        reported = data.draw(st.permutations(changes)) if _distinct(changes) else changes
        before, result = world, updated(BLUEPRINTS, world, reported, failed, data.draw(st.sampled_from((None, failing))))
        world = result or assembled(lives, failed, world)

        assert content(world) == content(assembled(lives, failed))
        untouched = {observed.root.id for observed in before.roots} - {id for id in map(_root, changes) if id is not None}
        if result is not None and not failed:
            kept = {observed.root.id: observed for observed in before.roots}
            assert all(observed is kept[observed.root.id] for observed in world.roots if observed.root.id in untouched)
        if result is not None:
            assert list(differences(before.roots, result.roots) or ()) == differences(tuple(before.roots), tuple(result.roots))
            assert list(result.rootless()) == list(assembled(lives, failed).rootless())


def _distinct(changes: list[LiveChange]) -> bool:
    """Whether each change is of another object, so that their order means nothing."""
    return len({change.id for change in changes}) == len(changes)


def _root(change: LiveChange) -> ResourceId | None:
    """The root that a changed object is, or that its labels name."""
    live = change.new or change.old
    if live is None or live.id.kind == kinds.PODCLIQUESET.name:
        return change.id
    return next((root for blueprint in BLUEPRINTS if (root := blueprint.root_of(live))), None)


def test_a_changed_pod_a_new_one_and_one_that_is_gone_need_no_look_at_all_objects() -> None:
    lives = dict(SETTLED)
    world = assembled(lives, {})
    pods = [live for live in lives.values() if live.id.kind == "Pod"]
    changes = [
        *acted(lives, "touch", pods[0], pods[0], 1),
        *acted(lives, "copy", pods[0], pods[0], 2),
        *acted(lives, "delete", pods[1], pods[1], 3),
    ]

    result = updated(BLUEPRINTS, world, changes, {})

    assert result is not None
    assert content(result) == content(assembled(lives, {}))
