"""The laws of a tick where sets are in fabric domains: own ones and shared ones, deleted under them, with a driver that comes and goes."""

import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as some

from engine import world
from engine.guard import Limits
from engine.memo import Memo
from engine.observed import live
from engine.tick import plan_all
from engine.verb import Verb
from providers.fabrics.nvidia_words import COMPUTE_DOMAIN
from resources.base import kinds, labels
from resources.registry import BLUEPRINTS
from tests.laws.fabric_worlds import calm, happen, history, manifests, pass_, rack, users
from tests.laws.rack import Rack
from tests.laws.test_tick_laws import told
from tests.laws.toy import NEIGHBOURS, OTHERS, SETUP

Bodies = list[dict[str, Any]]
CHANCE = some.randoms(use_true_random=False)


def roots(toy: Rack) -> list[Any]:
    """The sets that are there."""
    return [id for id in toy.objects if id.kind == kinds.PODCLIQUESET.name]


@given(manifests(), CHANCE)
@settings(max_examples=20)
def test_fixpoint_whatever_has_happened_it_comes_to_rest(asked: Bodies, chance: random.Random) -> None:
    toy = rack(asked, chance)
    history(toy, asked, chance)
    calm(toy)

    assert [plan.operations for plan in toy.plans()] == [()] * len(roots(toy))


@given(manifests(), CHANCE)
@settings(max_examples=20)
def test_crash_and_races_no_pod_comes_before_its_template_and_no_domain_goes_before_its_pods(asked: Bodies, chance: random.Random) -> None:
    """`judge` looks at every call: of passes that are cut off, of plans whose calls are mixed up, with the driver on and off."""
    toy = Rack()
    for manifest in asked:
        toy.put(manifest)
    history(toy, asked, chance, steps=14)


@given(manifests(), CHANCE)
@settings(max_examples=12)
def test_crash_anywhere_ends_in_the_same_objects(asked: Bodies, chance: random.Random) -> None:
    expected = set(rack(asked).objects)
    toy = Rack()
    for manifest in asked:
        toy.put(manifest)
    for _ in range(12):
        toy.driver = chance.random() < 0.5
        pass_(toy, chance)
        toy.live()
    calm(toy)

    assert ours(toy, expected) == ours(toy, set(toy.objects))


def ours(toy: Rack, ids: set[Any]) -> set[Any]:
    """Apart from who was first to have a name that two sets wanted: then one of them waits, whichever."""
    quarrel = any(alarm.blocking for plan in toy.plans() for alarm in plan.alarms)
    return {id for id in ids if id.kind in (kinds.PODCLIQUESET.name, COMPUTE_DOMAIN.name)} if quarrel else ids


@given(manifests(), CHANCE)
@settings(max_examples=15)
def test_when_all_sets_are_deleted_nothing_of_ours_is_left(asked: Bodies, chance: random.Random) -> None:
    toy = rack(asked, chance)
    history(toy, asked, chance, steps=4)
    for id in roots(toy):
        toy.delete(id)
    calm(toy)

    left = [body for id, body in toy.objects.items() if body["metadata"].get("labels", {}).get(labels.MANAGED_BY)]
    assert (roots(toy), left) == ([], [])


@given(manifests(), CHANCE)
@settings(max_examples=15)
def test_memo_with_and_without_it_every_plan_is_the_same(asked: Bodies, chance: random.Random) -> None:
    toy = rack(asked, chance)
    memo = Memo()
    for _ in range(5):
        happen(toy, asked, chance)
        assert told(toy.plans(memo)) == told(toy.plans(Memo()))
        pass_(toy, chance)
        toy.live()


@given(manifests(), CHANCE)
@settings(max_examples=15)
def test_order_shuffling_what_is_observed_changes_nothing(asked: Bodies, chance: random.Random) -> None:
    toy = rack(asked, chance)
    history(toy, asked, chance, steps=3)
    bodies = list(toy.objects.items())
    straight = told(toy.plans())
    chance.shuffle(bodies)
    toy.objects, toy.previous = dict(bodies), None

    assert told(toy.plans()) == straight


@given(manifests(), CHANCE)
@settings(max_examples=15)
def test_honesty_and_thrift_every_call_has_a_reason_and_what_it_judged(asked: Bodies, chance: random.Random) -> None:
    toy = rack(asked, chance)
    history(toy, asked, chance, steps=3)
    for plan in toy.plans():
        assert all(held.why for held in (*plan.deferred, *plan.pending))
        assert all(alarm.reason and alarm.text for alarm in plan.alarms)
        for operation in plan.operations:
            assert operation.why
            if operation.verb is not Verb.CREATE:
                assert operation.expect.uid == toy.objects[operation.id]["metadata"]["uid"]
            if operation.verb in (Verb.PATCH, Verb.STATUS):
                assert operation.expect.revision == toy.objects[operation.id]["metadata"]["resourceVersion"]


@given(manifests())
@settings(max_examples=15)
def test_neutrality_what_the_driver_and_others_say_of_domains_is_never_spoken_of(asked: Bodies) -> None:
    toy = rack(asked)
    for id in [id for id in toy.objects if id.kind == COMPUTE_DOMAIN.name]:
        metadata = {"labels": {"someone": "else"}, "annotations": {"some": "thing"}}
        finalizers = [*toy.objects[id]["metadata"]["finalizers"], "example.com/mine"]
        spec = {"channel": {"allocationMode": "Single"}}
        status = {"status": "NotReady", "nodes": [{"name": "n", "cliqueID": "a.b", "ipAddress": "10.0.0.1"}]}
        toy.write(id, {"metadata": {**metadata, "finalizers": finalizers}, "spec": spec, "status": status})

    assert [plan.operations for plan in toy.plans()] == [()] * len(asked)


@given(manifests(), CHANCE, some.sampled_from((*sorted(NEIGHBOURS - {"ClusterTopologyBinding"}), "Pod", "PodClique")), some.booleans())
@settings(max_examples=30)
def test_blindness_what_was_not_seen_is_not_touched_nor_is_what_it_may_use(
    asked: Bodies, chance: random.Random, unseen: str, in_part: bool
) -> None:
    toy = rack(asked, chance)
    history(toy, asked, chance, steps=3)
    lives = [live(body) for body in toy.objects.values()]
    seen = [one for one in lives if one.id.kind != unseen or (in_part and chance.random() < 0.5)]
    children = [one for one in seen if one.id.kind not in OTHERS and one.labels.get(labels.MANAGED_BY) == labels.MANAGER]
    around = [one for one in seen if one.id.kind in NEIGHBOURS]
    sets = [one for one in seen if one.id.kind == kinds.PODCLIQUESET.name]
    observed = world.assemble(BLUEPRINTS, sets, children, {unseen: "403"}, references=around)

    for plan in plan_all(BLUEPRINTS, observed, toy.now, SETUP, Memo(), Limits()).plans:
        for operation in plan.operations:
            assert operation.id.kind != unseen
            if operation.id.kind == COMPUTE_DOMAIN.name and operation.verb in (Verb.DELETE, Verb.RELEASE):
                assert unseen not in ("Pod", "PodClique", "ResourceClaim")
                assert users(toy, toy.objects[operation.id]) == []
            if operation.id.kind == "Pod" and operation.verb is Verb.CREATE and operation.body["spec"].get("resourceClaims"):
                assert unseen not in ("ResourceClaimTemplate", COMPUTE_DOMAIN.name) or in_part
