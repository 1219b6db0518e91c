"""A world assigns every object to the root that owns it, whatever its labels say."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from msgspec.structs import replace

from engine.guard import Limits
from engine.ids import ResourceId
from engine.memo import Memo
from engine.observed import Live, World, live
from engine.operation import Cause
from engine.plan import Plan
from engine.resource_plan import LABELS_RESTORED
from engine.tick import plan_all
from engine.verb import Verb
from engine.world import assemble, with_foreign
from resources.base import kinds, labels
from resources.registry import BLUEPRINTS
from tests.builders import clique, group, podcliqueset
from tests.laws.toy import CONFIGURATION, START, Toy

DEMO = kinds.PODCLIQUESET.id("default", "demo")
OTHER = kinds.PODCLIQUESET.id("default", "other")
SERVICE = kinds.SERVICE.id("default", "demo-0")


def settled() -> Toy:
    """A cluster in which two sets are running: one with a clique of its own and a scaling group, and a small one."""
    toy = Toy()
    toy.put(podcliqueset("demo", clique("a", 2), clique("b"), groups=(group("g", "b", replicas=2),)))
    toy.put(podcliqueset("other"))
    toy.settle()
    return toy


def relabel(toy: Toy, id: ResourceId, changed: dict[str, str | None]) -> Live:
    """Change labels as a user would; None removes one."""
    toy.write(id, {"metadata": {"labels": changed}})
    return live(toy.objects[id])


def unlabel(toy: Toy, id: ResourceId) -> Live:
    """Remove all labels, as a user would."""
    return relabel(toy, id, dict.fromkeys(toy.objects[id]["metadata"]["labels"]))


def plans_after_look_up(toy: Toy, *names: ResourceId) -> tuple[Plan, ...]:
    """The plans of a pass that has looked these objects up because their names are taken."""
    return toy.plans_of(with_foreign(toy.world(), BLUEPRINTS, {DEMO: [live(toy.objects[id]) for id in names]}, Memo()))


def root_of(world: World, root: ResourceId) -> Any:
    """What is observed of one root."""
    return next(observed for observed in world.roots if observed.root.id == root)


def test_objects_whose_labels_were_removed_get_them_back_and_are_not_created_again() -> None:
    toy = settled()
    before = {id: body["metadata"]["labels"] for id, body in toy.objects.items() if "labels" in body["metadata"]}
    unlabel(toy, SERVICE)

    first, _ = toy.plans()
    assert [operation.key for operation in first.operations if operation.id == SERVICE] == ["create /Service/default/demo-0"]

    second, _ = plans_after_look_up(toy, SERVICE)
    (restored,) = second.operations
    assert (restored.verb, restored.id, restored.why, restored.cause) == (Verb.PATCH, SERVICE, LABELS_RESTORED, Cause.DRIFT)

    toy.apply(second.operations)
    assert toy.objects[SERVICE]["metadata"]["labels"] == before[SERVICE]
    assert [plan.operations for plan in toy.plans()] == [(), ()]


@pytest.mark.parametrize("kind", ["Service", "PodClique", "PodGang", "PodCliqueScalingGroup", "Pod", "ServiceAccount", "Secret"])
def test_restoring_labels_deletes_nothing_and_ends_with_the_labels_and_objects_as_before(kind: str) -> None:
    toy = settled()
    before = {id: (body["metadata"]["uid"], body["metadata"].get("labels")) for id, body in toy.objects.items()}
    changed = [id for id in toy.objects if id.kind == kind and id.name.startswith("demo")]
    for id in changed:
        unlabel(toy, id)
    for _ in range(4):
        for plan in plans_after_look_up(toy, *changed):
            toy.apply(plan.operations)
    toy.settle()

    assert changed
    assert {id: (body["metadata"]["uid"], body["metadata"].get("labels")) for id, body in toy.objects.items()} == before


def test_an_object_whose_label_names_another_set_stays_with_the_set_that_controls_it() -> None:
    toy = settled()
    relabel(toy, SERVICE, {labels.PART_OF: "other"})
    world = toy.world()

    assert root_of(world, DEMO).find(SERVICE) is not None
    assert root_of(world, DEMO).mislabelled == {SERVICE}
    assert SERVICE not in root_of(world, OTHER).foreign
    demo, other = toy.plans_of(world)
    assert [(operation.verb, operation.id, operation.why) for operation in demo.operations] == [(Verb.PATCH, SERVICE, LABELS_RESTORED)]
    assert other.operations == ()


def test_the_pods_of_a_clique_stay_with_its_set_when_the_labels_of_the_clique_name_another_one() -> None:
    toy = settled()
    clique = kinds.PODCLIQUE.id("default", "demo-0-a")
    relabel(toy, clique, {labels.PART_OF: "gone"})
    observed = root_of(toy.world(), DEMO)

    assert toy.world().orphans == ()
    assert observed.mislabelled == {clique}
    assert {id for id in toy.pods() if observed.find(id)} == {id for id in toy.pods() if id.name.startswith("demo")}


def test_a_world_in_which_only_labels_were_restored_shares_everything_else() -> None:
    toy = settled()
    relabel(toy, SERVICE, {labels.PART_OF: "other"})
    before = toy.world()

    assert root_of(toy.world(), DEMO) is root_of(before, DEMO)
    relabel(toy, SERVICE, {labels.PART_OF: "demo"})
    assert root_of(toy.world(), DEMO).mislabelled == frozenset()
    assert root_of(toy.world(), OTHER) is root_of(before, OTHER)


@pytest.mark.parametrize(
    "owner",
    [
        None,
        {"apiVersion": "apps/v1", "kind": "Deployment", "name": "theirs", "uid": "their-uid", "controller": True},
        {"apiVersion": "grove.io/v1alpha1", "kind": "PodCliqueSet", "name": "demo", "uid": "an-earlier-uid", "controller": True},
    ],
)
def test_an_object_that_somebody_else_controls_is_foreign_whatever_its_labels(owner: dict[str, Any] | None) -> None:
    toy = settled()
    del toy.objects[SERVICE]
    metadata: dict[str, Any] = {"name": SERVICE.name, "namespace": "default", "uid": "theirs", "ownerReferences": [owner] if owner else []}
    own_labels = {labels.MANAGED_BY: labels.MANAGER, labels.PART_OF: "demo"}
    unlabelled = live({"apiVersion": "v1", "kind": "Service", "metadata": metadata})
    labelled = live({"apiVersion": "v1", "kind": "Service", "metadata": {**metadata, "labels": own_labels}})
    roots = [live(toy.objects[DEMO])]

    for world in (
        with_foreign(assemble(BLUEPRINTS, roots, [], {}), BLUEPRINTS, {DEMO: [unlabelled]}, Memo()),
        assemble(BLUEPRINTS, roots, [labelled], {}),
    ):
        (observed,) = world.roots
        assert (observed.find(SERVICE), list(observed.foreign), observed.mislabelled) == (None, [SERVICE], frozenset())
        (plan,) = plan_all(BLUEPRINTS, world, START, CONFIGURATION, Memo(), Limits()).plans
        (wait,) = (wait for wait in plan.blocked if wait.id == SERVICE)
        assert wait.why == "Service default/demo-0 already exists but is not controlled by PodCliqueSet default/demo"


def test_an_object_that_was_listed_and_looked_up_is_taken_from_the_list() -> None:
    toy = settled()
    listed = toy.world()
    looked_up = live(toy.objects[SERVICE])

    assert root_of(with_foreign(listed, BLUEPRINTS, {DEMO: [looked_up]}, Memo()), DEMO).find(SERVICE) is root_of(listed, DEMO).find(SERVICE)


@some.composite
def listings(draw: Any) -> dict[ResourceId, dict[str, Any]]:
    """Objects as a list of the cluster has them: sets that may be gone or made anew, and what anybody has labelled and owns."""
    names = ("demo", "other")
    uids = {name: draw(some.sampled_from((f"{name}-1",) * 5 + (f"{name}-2", ""))) for name in names}
    listed: list[tuple[Any, ...]] = [(kinds.PODCLIQUESET, name, uid, None, "", True) for name, uid in uids.items() if uid]
    for name in names:
        for kind, suffix in ((kinds.SERVICE, "0"), (kinds.PODCLIQUE, "0-a"), (kinds.POD, "0-a-x"), (kinds.POD, "1-a-y")):
            label, owner, controls = name, f"{name}-1", True
            match draw(some.integers(0, 9)):
                case 0:
                    continue
                case 1 | 2:
                    label = draw(some.sampled_from((*names, "gone", None)))
                case 3 | 4:
                    owner = draw(some.sampled_from(("PodClique-demo-0-a", "demo-1", "other-1", "stranger", "")))
                case 5:
                    controls = False
            listed.append((kind, f"{name}-{suffix}", f"{kind.name}-{name}-{suffix}", label, owner, controls))
    return {
        kind.id("default", name): {
            "apiVersion": kind.api_version,
            "kind": kind.name,
            "metadata": {
                "name": name,
                "namespace": "default",
                "uid": uid,
                "labels": {labels.PART_OF: label} if label else {},
                "ownerReferences": [{"kind": "Any", "name": "any", "uid": owner, "controller": controls}] if owner else [],
            },
        }
        for kind, name, uid, label, owner, controls in listed
    }


@some.composite
def histories(draw: Any) -> list[dict[ResourceId, dict[str, Any]]]:
    """Lists one after the other; from one to the next only a few objects differ."""
    history = [draw(listings())]
    for other in draw(some.lists(listings(), min_size=1, max_size=4)):
        changed = draw(some.sets(some.sampled_from(sorted({*history[-1], *other})), max_size=2)) if {*history[-1], *other} else set()
        both = {id: (other if id in changed else history[-1]).get(id) for id in {*history[-1], *other}}
        history.append({id: body for id, body in sorted(both.items()) if body is not None})
    return history


def content(world: World) -> Any:
    """What a world says, without regard to which objects it shares with an earlier one."""

    def versions(lives: Any) -> dict[ResourceId, tuple[str, str]]:
        return {live.id: (live.uid, live.revision) for live in lives}

    return versions(world.orphans), [
        (
            versions([root.root]),
            {key: versions(slice.objects.values()) for key, slice in root.slices.items()},
            versions(root.foreign.values()),
            root.mislabelled,
        )
        for root in world.roots
    ]


@given(histories())
@settings(max_examples=300)
def test_a_world_is_the_same_whether_or_not_an_earlier_one_is_known(history: list[dict[ResourceId, dict[str, Any]]]) -> None:
    previous: World | None = None
    known: dict[ResourceId, Live] = {}
    for number, bodies in enumerate([*history, history[-1]]):
        # A client returns the same object as long as nothing about it has changed.
        for id, body in bodies.items():
            if id not in known or {**known[id].body["metadata"], "resourceVersion": ""} != {**body["metadata"], "resourceVersion": ""}:
                known[id] = live({**body, "metadata": {**body["metadata"], "resourceVersion": str(number + 1)}})
        roots = [known[id] for id in bodies if id.kind == kinds.PODCLIQUESET.name]
        children = [known[id] for id in bodies if id.kind != kinds.PODCLIQUESET.name]
        current = assemble(BLUEPRINTS, roots, children, {}, previous)

        assert content(current) == content(assemble(BLUEPRINTS, roots, children, {}))
        if bodies is history[-1] and number == len(history):
            assert previous is not None and all(new is old for new, old in zip(current.roots, previous.roots, strict=True))
        previous = current


def test_objects_of_a_set_that_was_made_anew_under_its_name_are_foreign_to_the_new_one() -> None:
    toy = settled()
    *children, root = sorted(
        (live(body) for id, body in toy.objects.items() if id == DEMO or id.kind == "Service"), key=lambda each: each.id == DEMO
    )
    before = assemble(BLUEPRINTS, [root], children, {})
    after = assemble(BLUEPRINTS, [replace(root, uid="another")], children, {}, before)

    assert root_of(before, DEMO).foreign == {} and root_of(before, DEMO).find(SERVICE) is not None
    assert SERVICE in root_of(after, DEMO).foreign and root_of(after, DEMO).find(SERVICE) is None
