"""The world that is made from the one before and from what has changed is the world that is assembled from everything; so are its plans."""

from functools import partial
from types import MappingProxyType
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.answer import FailedCall
from engine.guard import Limits
from engine.ids import OwnerRef, ResourceId
from engine.memo import Memo, differences
from engine.observed import Live, Observed, World, by_root, live
from engine.plan import Plan
from engine.proposal import compose
from engine.runtime.failed_calls import failed_call
from engine.tick import plan_all
from engine.world import assemble
from engine.world_update import Changes, LiveChange, updated
from resources.base import kinds, labels
from resources.registry import BLUEPRINTS
from tests.builders import clique, group, podcliqueset
from tests.engine.runtime.fakes import create
from tests.laws.graphs import MANAGERS, ROOTS, GraphToy
from tests.laws.toy import REFERENCES, START
from tests.stories.graphs import graph, service

Lives = dict[ResourceId, Live]
Failed = dict[ResourceId, tuple[FailedCall, ...]]
ACTIONS = ("touch", "touch", "touch", "delete", "copy", "orphan", "relabel", "annotate", "recreate", "adopt", "mix", "share", "join")
CONFIGURATION = GraphToy.configuration


def settled() -> Lives:
    """Two sets, a graph, everything that they consist of, and what they may refer to."""
    toy = GraphToy()
    toy.put(podcliqueset("demo", clique("a", 2), clique("b"), groups=(group("g", "b", replicas=2),)))
    toy.put(podcliqueset("other"))
    toy.put(graph() | {"spec": {"services": {"decode": service(1)}}})
    for name in ("first", "second"):
        toy.put({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": {"name": name, "namespace": "default"}})
    toy.settle()
    lives = (live(body) for body in toy.objects.values())
    return {live.id: live for live in lives if live.id.kind in ROOTS | REFERENCES or live.labels.get(labels.MANAGED_BY) in MANAGERS}


SETTLED = settled()


def acted(lives: Lives, action: str, chosen: Live, other: Live, number: int) -> list[LiveChange]:
    """Do something to one object. Returns what has changed, as a watch would report it."""
    revised: Any = partial(replace, chosen, revision=f"r{number}")
    new: Live | None
    owner = OwnerRef(other.id.kind, other.id.name, other.uid, False)
    match action:
        case "touch":
            new = revised()
        case "delete":
            new = None
        case "orphan":
            new = revised(owners=())
        case "relabel":
            new = revised(labels=other.labels)
        case "annotate":
            new = revised(labels={**chosen.labels, "note": str(number)})
        case "recreate":
            new = revised(uid=f"uid-new-{number}")
        case "adopt":
            new = revised(owners=(replace(owner, controller=True),))
        case "share":
            new = revised(owners=(owner,))
        case "join":
            new = revised(owners=(*chosen.owners, owner))
        case "mix":
            id = chosen.id._replace(name=f"{chosen.id.name}-{number}")
            new = chosen = revised(id=id, uid=f"uid-mix-{number}", labels=other.labels, owners=other.owners)
        case _:
            new = chosen = revised(id=chosen.id._replace(name=f"{chosen.id.name}-{number}"), uid=f"uid-copy-{number}")
    old = lives.pop(chosen.id, None)
    if new is not None:
        lives[chosen.id] = new
    return [LiveChange(old, new)]


def is_child(live: Live) -> bool:
    """Whether an object is listed as a child of a root."""
    return live.id.kind not in ROOTS | REFERENCES


def changes_of(changes: list[LiveChange]) -> Changes:
    """The changes by the list in which they are."""
    return Changes(
        [change for change in changes if change.id.kind not in REFERENCES], [change for change in changes if change.id.kind in REFERENCES]
    )


def assembled(lives: Lives, failed: Failed, previous: World | None = None) -> World:
    """The world of all objects."""
    roots = [live for live in lives.values() if live.id.kind in ROOTS]
    references = [live for live in lives.values() if live.id.kind in REFERENCES]
    children = [live for live in lives.values() if is_child(live)]
    return assemble(BLUEPRINTS, roots, children, {}, previous, references=references, failed_calls=MappingProxyType(failed))


def content(world: World) -> Any:
    """Everything in a world, by the identity of its objects."""
    roots = [
        (
            observed.root,
            [(key, list(slice.objects.values()), slice.by_kind) for key, slice in observed.slices.items()],
            list(observed.foreign.items()),
            observed.mislabelled,
            observed.failed_calls,
            list(observed.references.objects.values()),
            (observed.incomplete, observed.unserved, observed.trials),
        )
        for observed in world.roots
    ]
    return roots, world.orphans, world.incomplete, world.unserved, list(world.references.objects.values()), world.references.by_kind


def step(data: st.DataObject, lives: Lives, number: int, actions: tuple[str, ...] = ACTIONS) -> list[LiveChange]:
    """A few changes, in an order in which watches may report them."""
    changes: list[LiveChange] = []
    for index in range(data.draw(st.integers(0, 4))):
        if not lives:
            break
        chosen, other = (data.draw(st.sampled_from(sorted(lives.values(), key=lambda live: live.id))) for _ in range(2))
        changes += acted(lives, data.draw(st.sampled_from(actions)), chosen, other, 10 * number + index)
    is_distinct = len({change.id for change in changes}) == len(changes)
    return list(data.draw(st.permutations(changes))) if is_distinct else changes


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_a_world_that_is_updated_is_the_world_that_is_assembled(data: st.DataObject) -> None:
    lives, failed = dict(SETTLED), Failed()
    world = assembled(lives, failed)
    for number in range(data.draw(st.integers(1, 4))):
        changes = step(data, lives, number)
        failing = data.draw(st.sets(st.sampled_from([observed.root.id for observed in world.roots]))) if world.roots else set()
        failed |= dict.fromkeys(failing, (failed_call(create("a"), None, START),))
        before = world
        result = updated(BLUEPRINTS, world, changes_of(changes), failed, data.draw(st.sampled_from((None, failing))))
        world = result or assembled(lives, failed, world)

        whole = assembled(lives, failed)
        assert content(world) == content(whole)
        assert whole.sharing <= world.sharing
        if result is None:
            continue
        untouched = {observed.root.id for observed in before.roots} - {id for change in changes for id in _roots(change)} - failing
        if not any(change.id.kind in REFERENCES for change in changes):
            kept = {observed.root.id: observed for observed in before.roots}
            assert all(observed is kept[observed.root.id] for observed in world.roots if observed.root.id in untouched)
        if isinstance(old := before.roots, tuple):
            different = set(differences(by_root(old), by_root(result.roots)))
            assert {id for id, now in _by_id(result).items() if now is not _by_id(before).get(id)} <= different
        assert list(result.rootless()) == list(whole.rootless())


def _by_id(world: World) -> dict[ResourceId, Observed]:
    return {observed.root.id: observed for observed in world.roots}


def _roots(change: LiveChange) -> set[ResourceId]:
    """The roots that a changed object is, or that its labels name or have named."""
    lives = [live for live in change if live is not None]
    named = {root for live in lives for blueprint in BLUEPRINTS if (root := blueprint.root_of(live))}
    return {change.id, *named}


def plans_of(world: World, memo: Memo) -> list[str]:
    """The plans of a pass, as text."""
    composed = compose(world, BLUEPRINTS, CONFIGURATION, memo)
    planned = plan_all(BLUEPRINTS, composed, START, CONFIGURATION, memo, Limits())
    return sorted(_shown(plan) for plan in planned.plans)


def _shown(plan: Plan) -> str:
    return repr(replace(plan, error=None)) + repr(type(plan.error))


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_what_is_planned_for_worlds_that_are_updated_is_what_is_planned_for_the_world_alone(data: st.DataObject) -> None:
    """With graphs, which are composed: neither a world nor a memo from the passes before makes a difference."""
    lives, failed, memo = dict(SETTLED), Failed(), Memo()
    world = assembled(lives, failed)
    for number in range(data.draw(st.integers(1, 4))):
        plans_of(world, memo)
        changes = step(data, lives, number)
        world = updated(BLUEPRINTS, world, changes_of(changes), failed, ()) or assembled(lives, failed, world)

        assert plans_of(world, memo) == plans_of(assembled(lives, failed), Memo())


def updated_after(lives: Lives, changes: list[LiveChange], world: World) -> World | None:
    """The updated world, which is that of all objects."""
    result = updated(BLUEPRINTS, world, changes_of(changes), {}, ())
    assert result is None or content(result) == content(assembled(lives, {}))
    return result


def test_a_changed_pod_a_new_one_and_one_that_is_gone_need_no_look_at_all_objects() -> None:
    lives = dict(SETTLED)
    world = assembled(lives, {})
    pods = [live for live in lives.values() if live.id.kind == "Pod"]
    changes = [
        *acted(lives, "touch", pods[0], pods[0], 1),
        *acted(lives, "copy", pods[0], pods[0], 2),
        *acted(lives, "delete", pods[1], pods[1], 3),
    ]

    assert updated_after(lives, changes, world) is not None


def test_roots_that_come_and_go_and_changed_references_need_no_look_at_all_objects() -> None:
    lives = dict(SETTLED)
    world = assembled(lives, {})
    root = lives[kinds.PODCLIQUESET.id("default", "other")]
    template = next(live for live in lives.values() if live.id.kind == kinds.RESOURCE_CLAIM_TEMPLATE.name)
    come = updated_after(lives, acted(lives, "copy", root, root, 1), world)
    assert come is not None
    changed = updated_after(lives, acted(lives, "touch", template, template, 2), come)
    assert changed is not None
    gone = updated_after(lives, acted(lives, "delete", root, root, 3), changed)

    assert gone is not None
    assert len(come.roots) == len(world.roots) + 1 == len(gone.roots) + 1
    assert gone.orphans


def test_orphans_and_foreign_objects_change_without_a_look_at_all_objects() -> None:
    lives = dict(SETTLED)
    pod = next(live for live in lives.values() if live.id.kind == "Pod")
    other = next(live for live in lives.values() if live.id.kind == "Pod" and live is not pod)
    acted(lives, "orphan", pod, pod, 1)
    acted(lives, "mix", lives[pod.id], replace(pod, labels={}, owners=()), 2)
    world = assembled(lives, {})
    rootless = [*world.orphans, *world.rootless()]
    assert len(rootless) == 3
    changes = [
        *acted(lives, "touch", rootless[0], rootless[0], 3),
        *acted(lives, "touch", lives[pod.id], pod, 4),
        *acted(lives, "copy", other, other, 5),
        *acted(lives, "delete", other, other, 6),
    ]
    changed = updated_after(lives, changes, world)
    assert changed is not None
    removed = [change for live in changed.rootless() for change in acted(lives, "delete", live, live, 7)]

    gone = updated_after(lives, removed, changed)

    assert gone is not None
    assert not list(gone.rootless())
