"""The laws of a tick: what it guarantees for every set and every history."""

import random
from datetime import timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as some

from engine import world
from engine.ids import ResourceId
from engine.memo import Memo
from engine.observed import Unlisted, live
from engine.operation import Cause, Operation, body_of
from engine.plan import Plan
from engine.reason import BLOCKERS, Reason
from engine.verb import Verb
from resources.base import kinds
from resources.registry import BLUEPRINTS
from tests.builders import claim_template, clique, group, podcliqueset, share
from tests.laws.cases import cases
from tests.laws.toy import Toy

ROOT = kinds.PODCLIQUESET.id("default", "demo")
DELETED = ("Service", "PodGang", "ServiceAccount", "Role", "Secret", "ResourceClaim")
"""Kinds of objects that a user deletes at random."""


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
    """Usually no shared claims, otherwise one or two."""
    entries = some.tuples(some.sampled_from(("one", "two")), some.sampled_from(("AllReplicas", "PerReplica")))
    some_entries = some.lists(entries, max_size=2, unique_by=lambda entry: entry[0])
    return some.one_of(some.just([]), some_entries.map(lambda listed: [share(*entry) for entry in listed]))


def up(manifest: dict[str, Any]) -> Toy:
    """A cluster in which the set is running."""
    toy = Toy()
    toy.put(manifest)
    toy.settle()
    return toy


@given(sets())
@cases(40)
def test_fixpoint_once_settled_there_is_nothing_to_do(manifest: dict[str, Any]) -> None:
    toy = up(manifest)

    assert [plan.operations for plan in toy.plans()] == [()]


@given(sets())
@cases(40)
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
@cases(40)
def test_order_shuffling_the_observed_objects_changes_nothing(manifest: dict[str, Any], chance: random.Random) -> None:
    toy = up(manifest)
    disturb(toy, chance)
    bodies = list(toy.objects.items())
    expected = spelled_out(toy.plans())
    chance.shuffle(bodies)
    toy.objects, toy.previous = dict(bodies), None

    assert spelled_out(toy.plans()) == expected


@given(sets(), some.randoms(use_true_random=False))
@cases(40)
def test_memo_with_and_without_it_every_plan_is_the_same(manifest: dict[str, Any], chance: random.Random) -> None:
    toy = up(manifest)
    memo = Memo()
    for _ in range(4):
        disturb(toy, chance)
        with_memo, without = toy.plans(memo), toy.plans(Memo())
        assert spelled_out(with_memo) == spelled_out(without)
        toy.apply(operation for plan in without for operation in plan.operations)
        toy.live()
        toy.now += timedelta(seconds=1)


@given(sets(), some.randoms(use_true_random=False))
@cases(45)
def test_crash_anywhere_ends_in_the_same_objects_none_created_twice(manifest: dict[str, Any], chance: random.Random) -> None:
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
    """Some operations of a plan that its edges allow: what a crash may have applied."""
    done: set[str] = set()
    chosen = []
    for operation in plan.operations:
        if operation.after <= done and chance.random() < 0.6:
            chosen.append(operation)
            done.add(operation.key)
    return chosen


@given(sets(), some.randoms(use_true_random=False))
@cases(40)
def test_deletion_removes_everything_and_nothing_that_a_pod_still_uses(manifest: dict[str, Any], chance: random.Random) -> None:
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
    """Whether the clique has pods."""
    uid = toy.objects[clique]["metadata"]["uid"]
    return any(toy.objects[pod]["metadata"]["ownerReferences"][0]["uid"] == uid for pod in toy.pods())


def claims_in_use(toy: Toy) -> set[str]:
    """The names of the claims that pods use."""
    return {claim["resourceClaimName"] for pod in toy.pods() for claim in toy.objects[pod]["spec"].get("resourceClaims", ())}


@given(sets(), some.randoms(use_true_random=False))
@cases(40)
def test_claims_exist_before_the_pods_that_use_them_and_outlive_them(manifest: dict[str, Any], chance: random.Random) -> None:
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


def is_explained(operation: Operation) -> bool:
    """Whether an operation has a sentence and a reason, and the reason agrees with the cause."""
    causes = {Reason.STATUS_CHANGED: {Cause.STATUS}, Reason.MISSING: {Cause.DRIFT}, Reason.DRIFTED: {Cause.DRIFT}}
    may_be_drift = {Cause.DRIFT, Cause.INTENT} if operation.reason is Reason.ORPHANED else {Cause.INTENT}
    is_operation = operation.reason not in BLOCKERS | {Reason.UNSPECIFIED}
    return bool(operation.why) and is_operation and operation.cause in causes.get(operation.reason, may_be_drift)


@given(sets(), some.randoms(use_true_random=False))
@cases(40)
def test_honesty_every_operation_and_every_wait_has_a_reason(manifest: dict[str, Any], chance: random.Random) -> None:
    toy = up(manifest)
    disturb(toy, chance)
    for plan in toy.plans():
        assert all(map(is_explained, plan.operations))
        assert all(wait.why for wait in (*plan.deferred, *plan.pending))


@given(sets(), some.randoms(use_true_random=False))
@cases(40)
def test_preconditions_a_delete_carries_the_observed_uid_and_a_patch_the_revision(manifest: dict[str, Any], chance: random.Random) -> None:
    toy = up(manifest)
    disturb(toy, chance)
    for plan in toy.plans():
        for operation in plan.operations:
            if operation.verb is not Verb.CREATE:
                assert operation.expect.uid == toy.objects[operation.id]["metadata"]["uid"]
            if operation.verb in (Verb.PATCH, Verb.STATUS):
                assert operation.expect.revision == toy.objects[operation.id]["metadata"]["resourceVersion"]


@given(sets())
@cases(30)
def test_neutrality_fields_of_others_are_left_alone(manifest: dict[str, Any]) -> None:
    toy = up(manifest)
    for id in list(toy.objects):
        foreign = {"metadata": {"labels": {"someone": "else"}, "annotations": {"kubectl.kubernetes.io/restartedAt": "now"}}}
        if id != ROOT:
            toy.write(id, foreign)

    assert [plan.operations for plan in toy.plans()] == [()]


@given(sets(), some.randoms(use_true_random=False))
@cases(30)
def test_an_incomplete_list_leads_to_no_write_of_its_kind_and_no_unintended_delete(manifest: dict[str, Any], chance: random.Random) -> None:
    toy = up(manifest)
    disturb(toy, chance)
    unlisted = chance.choice([kind.name for kind in BLUEPRINTS[0].children(toy.configuration)])
    lives = [live(body) for body in toy.objects.values()]
    roots = [live for live in lives if live.id == ROOT]
    children = [live for live in lives if live.id != ROOT and live.id.kind != unlisted]

    for plan in toy.plans_of(world.assemble(BLUEPRINTS, roots, children, {unlisted: Unlisted("403")})):
        for operation in plan.operations:
            assert operation.id.kind != unlisted
            assert not (operation.verb is Verb.DELETE and not operation.intended)


def disturb(toy: Toy, chance: random.Random) -> None:
    """One random event."""
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
            deletable = sorted(id for id in toy.objects if id.kind in DELETED)
            if deletable:
                del toy.objects[chance.choice(deletable)]
        case _:
            cliques = sorted(id for id in toy.objects if id.kind == "PodClique")
            if cliques:
                toy.delete(chance.choice(cliques))


def names(toy: Toy) -> set[ResourceId]:
    """The objects that exist."""
    return set(toy.objects)


def spelled_out(plans: tuple[Plan, ...]) -> list[Any]:
    """Plans as values that can be compared."""
    return [
        (
            [(each.key, each.why, each.cause, body_of(each), sorted(each.after), each.expect) for each in plan.operations],
            sorted(plan.deferred, key=str),
            sorted(plan.pending, key=str),
        )
        for plan in plans
    ]
