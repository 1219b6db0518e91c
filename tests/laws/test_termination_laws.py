"""The laws of gang termination: after the delay the whole gang is recycled, each object once, even if interrupted; never sooner."""

import random
from datetime import timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as some

from engine.ids import ResourceId
from engine.memo import Memo
from engine.plan import Plan
from resources.base import kinds
from tests.builders import clique, group, podcliqueset
from tests.laws.cases import cases
from tests.laws.test_tick_laws import some_of
from tests.laws.toy import Toy

ROOT = kinds.PODCLIQUESET.id("default", "demo")
DELAY = timedelta(minutes=10)


def demo(group_replicas: int = 2, minimum: int = 1, sets: int = 1) -> dict[str, Any]:
    """A standalone clique, and a scaling group of two."""
    cliques = [clique("a", 2), clique("b"), clique("c", 2)]
    groups = (group("g", "b", "c", replicas=group_replicas, min_available=minimum),)
    return podcliqueset("demo", *cliques, groups=groups, replicas=sets, terminationDelay="10m")


def up(manifest: dict[str, Any]) -> Toy:
    """A cluster in which the set has been running for a while."""
    toy = Toy()
    toy.put(manifest)
    toy.settle()
    toy.now += timedelta(minutes=1)
    return toy


def crash(toy: Toy, *cliques: str) -> None:
    """The pods of these cliques stop being ready and do not recover."""
    for pod in toy.pods():
        if toy.objects[pod]["metadata"]["labels"]["grove.io/podclique"] in cliques:
            conditions = [{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": "False"}]
            containers = [{"name": "main", "started": True, "ready": False}]
            toy.write(pod, {"status": {"phase": "Running", "conditions": conditions, "containerStatuses": containers}})


def run_pass(toy: Toy, chance: random.Random | None = None) -> tuple[Plan, ...]:
    """Make a pass, complete or interrupted anywhere, and let a second go by; returns its plans."""
    plans = toy.plans()
    for plan in plans:
        toy.apply(some_of(plan, chance) if chance else plan.operations)
    toy.live()
    toy.now += timedelta(seconds=1)
    return plans


def uids(toy: Toy, kind: str = "PodClique") -> dict[ResourceId, str]:
    """The uids of the objects of one kind."""
    return {id: body["metadata"]["uid"] for id, body in toy.objects.items() if id.kind == kind}


def test_a_gang_is_recycled_only_after_its_delay() -> None:
    toy = up(demo())
    before = uids(toy)
    crash(toy, "demo-0-a")
    run_pass(toy)
    onset = toy.now
    while toy.now < onset + DELAY - timedelta(seconds=2):
        (plan,) = run_pass(toy)
        assert uids(toy) == before
    assert plan.wake_at is not None and plan.wake_at <= onset + DELAY

    toy.now = onset + DELAY
    toy.settle()

    after = uids(toy)
    assert after.keys() == before.keys()
    assert all(after[id] != before[id] for id in before)
    assert all(toy.objects[pod]["metadata"]["creationTimestamp"] > onset.strftime("%Y-%m-%dT%H:%M:%SZ") for pod in toy.pods())


def test_a_breached_clique_is_pending_until_its_gang_is_recycled() -> None:
    toy = up(demo())
    crash(toy, "demo-0-a")
    run_pass(toy)
    (plan,) = run_pass(toy)

    timed = [wait for wait in plan.pending if wait.until]
    assert [wait.id.name for wait in timed] == ["demo-0-a"]
    assert "its gang is recycled if that lasts 10m0s" in timed[0].why
    assert timed[0].until == plan.wake_at


@given(seed=some.integers(0, 2**32))
@cases(25)
def test_interrupted_anywhere_the_whole_gang_is_recycled_once(seed: int) -> None:
    chance = random.Random(seed)
    minimum = chance.choice([1, 2, 3])
    toy = up(demo(group_replicas=3, minimum=minimum))
    before = uids(toy)
    victims = chance.choice([["demo-0-a"], [f"demo-0-g-{index}-b" for index in range(3)], ["demo-0-a", "demo-0-g-2-c"]])
    crash(toy, *victims)
    for _ in range(4):
        run_pass(toy)
    toy.now += DELAY
    made = len(toy.created)
    for _ in range(120):
        plans = run_pass(toy, chance)
        if not any(plan.operations or plan.pending for plan in plans):
            break

    after = uids(toy)
    assert after.keys() == before.keys()
    assert all(after[id] != before[id] for id in before)
    cliques = [id for id in toy.created[made:] if id.kind == "PodClique"]
    assert len(cliques) == len(set(cliques))


def test_a_group_replica_beyond_the_minimum_is_recycled_alone() -> None:
    toy = up(demo(group_replicas=3, minimum=2))
    before = uids(toy)
    crash(toy, "demo-0-g-2-b")
    for _ in range(3):
        run_pass(toy)
    toy.now += DELAY
    toy.settle()

    changed = {id.name for id, uid in uids(toy).items() if before[id] != uid}
    assert changed == {"demo-0-g-2-b", "demo-0-g-2-c"}


def test_a_gang_that_never_had_its_minimum_is_not_recycled() -> None:
    toy = Toy()
    toy.put(demo())
    for _ in range(5):
        for plan in toy.plans():
            toy.apply(plan.operations)
        toy.now += timedelta(seconds=1)
    before = uids(toy)
    toy.now += DELAY * 3
    for plan in toy.plans():
        toy.apply(plan.operations)

    assert uids(toy) == before


def test_a_gang_that_recovers_in_time_is_not_recycled() -> None:
    toy = up(demo())
    before = uids(toy)
    crash(toy, "demo-0-a")
    run_pass(toy)
    toy.now += DELAY / 2
    for pod in toy.pods():
        conditions = [{"type": kind, "status": "True"} for kind in ("PodScheduled", "Ready")]
        toy.write(pod, {"status": {"phase": "Running", "conditions": conditions, "containerStatuses": []}})
    toy.settle()
    toy.now += DELAY
    toy.settle()

    assert uids(toy) == before


def test_a_replica_of_the_set_is_recycled_without_the_others() -> None:
    toy = up(demo(sets=2))
    before = uids(toy)
    crash(toy, "demo-1-a")
    run_pass(toy)
    toy.now += DELAY
    toy.settle()

    assert {id.name[:6] for id, uid in uids(toy).items() if before[id] != uid} == {"demo-1"}


def test_services_gangs_and_groups_outlive_a_recycling() -> None:
    toy = up(demo())
    before = {kind: uids(toy, kind) for kind in ("Service", "PodGang", "PodCliqueScalingGroup")}
    crash(toy, "demo-0-a")
    run_pass(toy)
    toy.now += DELAY
    toy.settle()

    assert {kind: uids(toy, kind) for kind in before} == before


@given(seed=some.integers(0, 2**32))
@cases(25)
def test_until_its_wake_time_a_plan_stays_the_same(seed: int) -> None:
    chance = random.Random(seed)
    toy = up(demo())
    crash(toy, "demo-0-a")
    run_pass(toy)
    run_pass(toy)
    (plan,) = toy.plans()
    assert plan.wake_at is not None
    span = (plan.wake_at - toy.now).total_seconds()
    toy.now += timedelta(seconds=chance.uniform(0, span * 0.999))
    (later,) = toy.plans(Memo())

    assert [operation.key for operation in later.operations] == [operation.key for operation in plan.operations]
    assert later.wake_at == plan.wake_at
