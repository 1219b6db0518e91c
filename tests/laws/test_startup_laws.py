"""The law of the start order: a pod that waits for others is created only once its token exists; all other pods are."""

import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as some

from engine.operation import Operation, body_of
from engine.verb import Verb
from resources.base import kinds
from tests.laws.test_tick_laws import sets, some_of
from tests.laws.toy import Toy

TOKEN = kinds.SECRET.id("default", "demo-ic-sat")


@given(sets(), some.randoms(use_true_random=False))
@settings(max_examples=60)
def test_no_pod_that_waits_is_created_without_a_token(manifest: dict[str, Any], chance: random.Random) -> None:
    toy = Toy()
    toy.put(manifest)
    for _ in range(12):
        for plan in toy.plans():
            assert not any(waits(operation) for operation in plan.operations) or has_token(toy)
            toy.apply(some_of(plan, chance))
        match chance.randrange(4):
            case 0 if TOKEN in toy.objects:
                del toy.objects[TOKEN]
            case 1 if TOKEN in toy.objects:
                toy.write(TOKEN, {"data": None})
            case _:
                toy.live()


@given(sets())
@settings(max_examples=60)
def test_a_missing_token_defers_only_the_pods_that_wait(manifest: dict[str, Any]) -> None:
    toy = Toy()
    toy.put(manifest)
    for plan in toy.plans():
        toy.apply(plan.operations)
    (plan,) = toy.plans()
    deferred = {wait.id for wait in plan.deferred}

    assert {id.kind for id in deferred} <= {"Pod"}
    assert not any(waits_in(body) for body in toy.objects.values())
    toy.write(TOKEN, {"data": {"token": "dG9rZW4="}})
    (plan,) = toy.plans()
    assert {operation.id for operation in plan.operations if operation.verb is Verb.CREATE} == deferred


def waits(operation: Operation) -> bool:
    """Whether the operation creates a pod that waits for others."""
    return operation.verb is Verb.CREATE and waits_in(body_of(operation))


def waits_in(body: Any) -> bool:
    """Whether the object is a pod that waits for others."""
    return body["kind"] == "Pod" and any(container["name"] == "grove-initc" for container in body["spec"].get("initContainers", ()))


def has_token(toy: Toy) -> bool:
    """Whether the set's token is filled in."""
    return bool((toy.objects.get(TOKEN, {}).get("data") or {}).get("token"))
