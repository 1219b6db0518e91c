"""The laws of a tick for sets in fabric domains: own and shared ones, deleted while in use, with a driver that stops and starts."""

import random
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from engine import world
from engine.memo import Memo
from engine.observed import Unlisted, live
from engine.operation import body_of
from engine.reason import Reason
from engine.verb import Verb
from providers.fabrics.nvidia.names import COMPUTE_DOMAIN
from resources.base import kinds, labels
from resources.registry import BLUEPRINTS
from tests.laws.cases import cases
from tests.laws.fabric_worlds import calm, disturb, edit_membership, history, manifests, memberships, pass_, rack, scale, users
from tests.laws.rack import Rack
from tests.laws.test_tick_laws import spelled_out
from tests.laws.toy import NOT_CHILDREN, REFERENCES

Bodies = list[dict[str, Any]]
CHANCE = some.randoms(use_true_random=False)


def roots(toy: Rack) -> list[Any]:
    """The sets that exist."""
    return [id for id in toy.objects if id.kind == kinds.PODCLIQUESET.name]


@given(manifests(), CHANCE)
@settings(max_examples=20)
def test_fixpoint_whatever_has_happened_it_settles(sets: Bodies, chance: random.Random) -> None:
    toy = rack(sets, chance)
    history(toy, sets, chance)
    calm(toy)

    assert [plan.operations for plan in toy.plans()] == [()] * len(roots(toy))


@given(manifests(), CHANCE)
@settings(max_examples=20)
def test_crash_and_races_no_pod_is_created_before_its_template_and_no_domain_goes_before_its_pods(
    sets: Bodies, chance: random.Random
) -> None:
    """`check` judges every call of interrupted passes and of plans whose calls are mixed, with the driver on and off."""
    toy = Rack()
    for manifest in sets:
        toy.put(manifest)
    history(toy, sets, chance, steps=14)


@given(manifests(), CHANCE)
@settings(max_examples=12)
def test_crash_anywhere_ends_in_the_same_objects(sets: Bodies, chance: random.Random) -> None:
    expected = set(rack(sets).objects)
    toy = Rack()
    for manifest in sets:
        toy.put(manifest)
    for _ in range(12):
        toy.driver = chance.random() < 0.5
        pass_(toy, chance)
        toy.live()
    calm(toy)

    assert ours(toy, expected) == ours(toy, set(toy.objects))


def ours(toy: Rack, ids: set[Any]) -> set[Any]:
    """The objects; only sets and domains if two sets compete for a name, because either of them may get it."""
    competing = any(alarm.blocking for plan in toy.plans() for alarm in plan.alarms)
    return {id for id in ids if id.kind in (kinds.PODCLIQUESET.name, COMPUTE_DOMAIN.name)} if competing else ids


@pytest.mark.parametrize("guarded", [False, True], ids=["without a webhook", "with a webhook"])
@given(manifests(), CHANCE)
@settings(max_examples=25)
def test_membership_edited_annotations_move_no_pod_into_a_domain_or_out_of_it(guarded: bool, sets: Bodies, chance: random.Random) -> None:
    """N24: after any edits, interrupted passes, scaling and deleted pods, each PodClique that existed before has the claim that it had.

    New replicas have those of the others: automatic domains everywhere or nowhere.
    """
    toy = rack(sets)
    alive = [id for id in roots(toy) if toy.objects[id]["spec"]["replicas"]]
    before = memberships(toy)
    for _ in range(6):
        for id in alive:
            edit_membership(toy, id, chance, guarded=guarded)
            scale(toy, id, chance.randint(1, 3))
        if chance.random() < 0.5 and (pods := toy.pods()):
            toy.delete(chance.choice(pods))
        pass_(toy, chance)
        toy.live()
        toy.now += timedelta(seconds=1)
    calm(toy)
    after = memberships(toy)

    assert {name: claims for name, claims in after.items() if name in before} == {name: before[name] for name in after.keys() & before}
    joined = {(set, clique): bool(*claims) for (set, clique, _), claims in before.items()}
    for (set, clique, _), claims in after.items():
        assert {bool(templates) for templates in claims} == {joined.get((set, clique), any(claims))}


@given(manifests(), CHANCE)
@settings(max_examples=15)
def test_when_all_sets_are_deleted_nothing_of_ours_is_left(sets: Bodies, chance: random.Random) -> None:
    toy = rack(sets, chance)
    history(toy, sets, chance, steps=4)
    for id in roots(toy):
        toy.delete(id)
    calm(toy)

    left = [body for id, body in toy.objects.items() if body["metadata"].get("labels", {}).get(labels.MANAGED_BY)]
    assert (roots(toy), left) == ([], [])


@given(manifests(), CHANCE)
@settings(max_examples=15)
def test_memo_with_and_without_it_every_plan_is_the_same(sets: Bodies, chance: random.Random) -> None:
    toy = rack(sets, chance)
    memo = Memo()
    for _ in range(5):
        disturb(toy, sets, chance)
        assert spelled_out(toy.plans(memo)) == spelled_out(toy.plans(Memo()))
        pass_(toy, chance)
        toy.live()


@given(manifests(), CHANCE)
@settings(max_examples=15)
def test_order_shuffling_what_is_observed_changes_nothing(sets: Bodies, chance: random.Random) -> None:
    toy = rack(sets, chance)
    history(toy, sets, chance, steps=3)
    bodies = list(toy.objects.items())
    straight = spelled_out(toy.plans())
    chance.shuffle(bodies)
    toy.objects, toy.previous = dict(bodies), None

    assert spelled_out(toy.plans()) == straight


@given(manifests(), CHANCE)
@settings(max_examples=15)
def test_honesty_and_thrift_every_call_has_a_reason_and_what_it_judged(sets: Bodies, chance: random.Random) -> None:
    toy = rack(sets, chance)
    history(toy, sets, chance, steps=3)
    for plan in toy.plans():
        assert all(wait.why for wait in (*plan.deferred, *plan.pending))
        assert all(alarm.reason and alarm.text for alarm in plan.alarms)
        for operation in plan.operations:
            assert operation.why and operation.reason is not Reason.UNSPECIFIED
            if operation.verb is not Verb.CREATE:
                assert operation.expect.uid == toy.objects[operation.id]["metadata"]["uid"]
            if operation.verb in (Verb.PATCH, Verb.STATUS):
                assert operation.expect.revision == toy.objects[operation.id]["metadata"]["resourceVersion"]


@given(manifests())
@settings(max_examples=15)
def test_neutrality_fields_that_the_driver_and_others_set_on_domains_are_left_alone(sets: Bodies) -> None:
    toy = rack(sets)
    for id in [id for id in toy.objects if id.kind == COMPUTE_DOMAIN.name]:
        metadata = {"labels": {"someone": "else"}, "annotations": {"some": "thing"}}
        finalizers = [*toy.objects[id]["metadata"]["finalizers"], "example.com/mine"]
        spec = {"channel": {"allocationMode": "Single"}}
        status = {"status": "NotReady", "nodes": [{"name": "n", "cliqueID": "a.b", "ipAddress": "10.0.0.1"}]}
        toy.write(id, {"metadata": {**metadata, "finalizers": finalizers}, "spec": spec, "status": status})

    assert [plan.operations for plan in toy.plans()] == [()] * len(sets)


@given(manifests(), CHANCE, some.sampled_from((*sorted(REFERENCES - {"ClusterTopologyBinding"}), "Pod", "PodClique")), some.booleans())
@cases(20)
def test_incomplete_lists_objects_of_unlisted_kinds_and_domains_they_may_use_are_not_written(
    sets: Bodies, chance: random.Random, unlisted: str, in_part: bool
) -> None:
    toy = rack(sets, chance)
    history(toy, sets, chance, steps=3)
    lives = [live(body) for body in toy.objects.values()]
    listed = [live for live in lives if live.id.kind != unlisted or (in_part and chance.random() < 0.5)]
    children = [live for live in listed if live.id.kind not in NOT_CHILDREN and live.labels.get(labels.MANAGED_BY) == labels.MANAGER]
    references = [live for live in listed if live.id.kind in REFERENCES]
    roots = [live for live in listed if live.id.kind == kinds.PODCLIQUESET.name]
    observed = world.assemble(BLUEPRINTS, roots, children, {unlisted: Unlisted("403")}, references=references)

    for plan in toy.plans_of(observed):
        for operation in plan.operations:
            assert operation.id.kind != unlisted
            if operation.id.kind == COMPUTE_DOMAIN.name and operation.verb in (Verb.DELETE, Verb.RELEASE):
                assert unlisted not in ("Pod", "PodClique", "ResourceClaim")
                assert users(toy, toy.objects[operation.id]) == []
            if operation.id.kind == "Pod" and operation.verb is Verb.CREATE and body_of(operation)["spec"].get("resourceClaims"):
                assert unlisted not in ("ResourceClaimTemplate", COMPUTE_DOMAIN.name) or in_part
