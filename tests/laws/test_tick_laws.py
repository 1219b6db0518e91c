"""The laws of a tick: what it promises whatever is asked for and whatever has happened."""

import random
from datetime import timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as some

from engine import world
from engine.guard import Limits
from engine.ids import ResourceId
from engine.memo import Memo
from engine.observed import live
from engine.operation import Operation
from engine.plan import Plan
from engine.tick import plan_all
from engine.verb import Verb
from resources.base import kinds
from resources.registry import BLUEPRINTS
from tests.builders import claim_template, clique, group, podcliqueset, share
from tests.laws.toy import SETUP, Toy

ROOT = kinds.PODCLIQUESET.id("default", "demo")
TAKEN = ("Service", "PodGang", "ServiceAccount", "Role", "Secret", "ResourceClaim")
"""What somebody takes away under us."""


@some.composite
def sets(draw: Any) -> dict[str, Any]:
    """A small PodCliqueSet of any shape."""
    counts = draw(some.lists(some.integers(1, 3), min_size=1, max_size=3))
    shared = {"resourceSharing": draw(shares())}
    cliques = [clique(f"c{number}", count, minAvailable=draw(some.integers(1, count)), **shared) for number, count in enumerate(counts)]
    for number, entry in enumerate(cliques):
        entry["spec"]["startsAfter"] = draw(some.lists(some.sampled_from(cliques[:number]).map(name_of), unique=True)) if number else []
    order = draw(some.sampled_from(("AnyOrder", "InOrder", "Explicit")))
    members = draw(some.integers(0, len(cliques)))
    groups: tuple[dict[str, Any], ...] = ()
    if members:
        replicas = draw(some.integers(1, 3))
        names = [f"c{number}" for number in range(members)]
        groups = (group("g", *names, replicas=replicas, min_available=draw(some.integers(1, replicas)), resourceSharing=draw(shares())),)
    more = {"resourceClaimTemplates": [claim_template("one"), claim_template("two")], "resourceSharing": draw(shares())}
    startup = {"cliqueStartupType": f"CliqueStartupType{order}"}
    return podcliqueset("demo", *cliques, groups=groups, replicas=draw(some.integers(0, 3)), **startup, **more)


def name_of(entry: dict[str, Any]) -> str:
    """The name of a clique of the template."""
    return str(entry["name"])


def shares() -> some.SearchStrategy[list[dict[str, Any]]]:
    """Nothing, most of the time; else one claim or two that are shared."""
    entries = some.tuples(some.sampled_from(("one", "two")), some.sampled_from(("AllReplicas", "PerReplica")))
    some_entries = some.lists(entries, max_size=2, unique_by=lambda entry: entry[0])
    return some.one_of(some.just([]), some_entries.map(lambda listed: [share(*entry) for entry in listed]))


def up(manifest: dict[str, Any]) -> Toy:
    """A cluster in which the set is up."""
    toy = Toy()
    toy.put(manifest)
    toy.settle()
    return toy


@given(sets())
@settings(max_examples=60, deadline=None)
def test_fixpoint_once_settled_there_is_nothing_to_do(manifest: dict[str, Any]) -> None:
    toy = up(manifest)

    assert [plan.operations for plan in toy.plans()] == [()]


@given(sets())
@settings(max_examples=60, deadline=None)
def test_fixpoint_after_a_plan_is_applied_only_states_are_left(manifest: dict[str, Any]) -> None:
    toy = Toy()
    toy.put(manifest)
    for plan in toy.plans():
        toy.apply(plan.operations)
    (again,) = toy.plans()
    if any(operation.id == ROOT and operation.verb is Verb.PATCH for operation in again.operations):
        raise AssertionError("the set is admitted twice")

    assert {operation.verb for operation in again.operations} <= {Verb.STATUS}


@given(sets(), some.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_order_shuffling_what_is_observed_changes_nothing(manifest: dict[str, Any], chance: random.Random) -> None:
    toy = up(manifest)
    disturb(toy, chance)
    bodies = list(toy.objects.items())
    straight = told(toy.plans())
    chance.shuffle(bodies)
    toy.objects, toy.previous = dict(bodies), None

    assert told(toy.plans()) == straight


@given(sets(), some.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_memo_with_and_without_it_every_plan_is_the_same(manifest: dict[str, Any], chance: random.Random) -> None:
    toy = up(manifest)
    memo = Memo()
    for _ in range(4):
        disturb(toy, chance)
        remembered, fresh = toy.plans(memo), toy.plans(Memo())
        assert told(remembered) == told(fresh)
        toy.apply(operation for plan in fresh for operation in plan.operations)
        toy.live()
        toy.now += timedelta(seconds=1)


@given(sets(), some.randoms(use_true_random=False))
@settings(max_examples=80, deadline=None)
def test_crash_anywhere_ends_in_the_same_objects_none_made_twice(manifest: dict[str, Any], chance: random.Random) -> None:
    expected = names(up(manifest))
    toy = Toy()
    toy.put(manifest)
    for _ in range(60):
        plans = toy.plans()
        if not any(plan.operations or plan.pending for plan in plans):
            break
        for plan in plans:
            toy.apply(some_of(plan, chance))
        toy.live()

    assert names(toy) == expected
    assert len(toy.created) == len(set(toy.created))


def some_of(plan: Plan, chance: random.Random) -> list[Operation]:
    """A part of a plan that its edges allow: what a crash may leave done."""
    done: set[str] = set()
    chosen = []
    for operation in plan.operations:
        if operation.after <= done and chance.random() < 0.6:
            chosen.append(operation)
            done.add(operation.key)
    return chosen


@given(sets(), some.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_deletion_is_the_plan_for_nothing_and_takes_no_object_from_under_a_pod(manifest: dict[str, Any], chance: random.Random) -> None:
    toy = up(manifest)
    toy.delete(ROOT)
    for _ in range(80):
        plans = toy.plans()
        if not toy.objects:
            break
        for plan in plans:
            for operation in some_of(plan, chance):
                assert not (operation.id.kind == "PodClique" and has_pods(toy, operation.id))
                assert operation.id.name not in claims_in_use(toy) or operation.id.kind != "ResourceClaim"
                toy.call(operation)
        toy.live()

    assert toy.objects == {}


def has_pods(toy: Toy, clique: ResourceId) -> bool:
    """Whether pods of the clique are left."""
    uid = toy.objects[clique]["metadata"]["uid"]
    return any(toy.objects[pod]["metadata"]["ownerReferences"][0]["uid"] == uid for pod in toy.pods())


def claims_in_use(toy: Toy) -> set[str]:
    """The names of the claims that pods use."""
    return {one["resourceClaimName"] for pod in toy.pods() for one in toy.objects[pod]["spec"].get("resourceClaims", ())}


@given(sets(), some.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_claims_outlive_the_pods_that_use_them_and_are_there_before_them(manifest: dict[str, Any], chance: random.Random) -> None:
    toy = up(manifest)
    scalable = sorted(id for id in toy.objects if id.kind in ("PodClique", "PodCliqueScalingGroup", "PodCliqueSet"))
    for _ in range(8):
        id = chance.choice(scalable)
        if id in toy.objects and not toy.objects[id]["metadata"].get("deletionTimestamp"):
            generation = toy.objects[id]["metadata"]["generation"] + 1
            toy.write(id, {"spec": {"replicas": chance.randrange(4)}, "metadata": {"generation": generation}})
        for plan in toy.plans():
            toy.apply(some_of(plan, chance))
            assert claims_in_use(toy) <= {id.name for id in toy.objects if id.kind == "ResourceClaim"}
        if chance.random() < 0.5:
            toy.live()


@given(sets(), some.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_honesty_every_operation_and_every_hold_has_a_reason(manifest: dict[str, Any], chance: random.Random) -> None:
    toy = up(manifest)
    disturb(toy, chance)
    for plan in toy.plans():
        assert all(operation.why for operation in plan.operations)
        assert all(held.why for held in (*plan.deferred, *plan.pending))


@given(sets(), some.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_thrift_a_delete_carries_the_uid_it_judged_and_a_patch_the_revision(manifest: dict[str, Any], chance: random.Random) -> None:
    toy = up(manifest)
    disturb(toy, chance)
    for plan in toy.plans():
        for operation in plan.operations:
            if operation.verb is not Verb.CREATE:
                assert operation.expect.uid == toy.objects[operation.id]["metadata"]["uid"]
            if operation.verb in (Verb.PATCH, Verb.STATUS):
                assert operation.expect.revision == toy.objects[operation.id]["metadata"]["resourceVersion"]


@given(sets())
@settings(max_examples=40, deadline=None)
def test_neutrality_fields_of_others_are_never_spoken_of(manifest: dict[str, Any]) -> None:
    toy = up(manifest)
    for id in list(toy.objects):
        theirs = {"metadata": {"labels": {"someone": "else"}, "annotations": {"kubectl.kubernetes.io/restartedAt": "now"}}}
        if id != ROOT:
            toy.write(id, theirs)

    assert [plan.operations for plan in toy.plans()] == [()]


@given(sets(), some.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_an_incomplete_listing_never_leads_to_a_delete_of_what_was_not_seen(manifest: dict[str, Any], chance: random.Random) -> None:
    toy = up(manifest)
    disturb(toy, chance)
    unseen = chance.choice([kind.name for kind in BLUEPRINTS[0].children(SETUP)])
    lives = [live(body) for body in toy.objects.values()]
    roots = [one for one in lives if one.id == ROOT]
    children = [one for one in lives if one.id != ROOT and one.id.kind != unseen]
    seen = world.assemble(BLUEPRINTS, roots, children, {unseen: "403"})

    for plan in plan_all(BLUEPRINTS, seen, toy.now, SETUP, Memo(), Limits()).plans:
        for operation in plan.operations:
            assert operation.id.kind != unseen
            assert not (operation.verb is Verb.DELETE and not operation.intended)


def disturb(toy: Toy, chance: random.Random) -> None:
    """Something that happens in clusters."""
    pods = toy.pods()
    match chance.randrange(5):
        case 0 if pods:
            toy.delete(chance.choice(pods))
        case 1 if pods:
            toy.write(chance.choice(pods), {"status": {"phase": "Failed", "conditions": []}})
        case 2:
            scalable = [id for id in toy.objects if id.kind in ("PodClique", "PodCliqueScalingGroup", "PodCliqueSet")]
            id = chance.choice(sorted(scalable))
            generation = toy.objects[id]["metadata"]["generation"] + 1
            toy.write(id, {"spec": {"replicas": chance.randrange(4)}, "metadata": {"generation": generation}})
        case 3:
            others = sorted(id for id in toy.objects if id.kind in TAKEN)
            if others:
                del toy.objects[chance.choice(others)]
        case _:
            cliques = sorted(id for id in toy.objects if id.kind == "PodClique")
            if cliques:
                toy.delete(chance.choice(cliques))


def names(toy: Toy) -> set[ResourceId]:
    """Which objects there are."""
    return set(toy.objects)


def told(plans: tuple[Plan, ...]) -> list[Any]:
    """Plans, spelled out."""
    return [
        (
            [(one.key, one.why, one.cause, one.body, sorted(one.after), one.expect) for one in plan.operations],
            sorted(plan.deferred, key=str),
            sorted(plan.pending, key=str),
        )
        for plan in plans
    ]
