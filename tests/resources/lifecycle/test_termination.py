"""Termination: which breaches recycle a replica of the set, which only a replica of a scaling group, and from when their delay counts."""

from datetime import timedelta
from typing import Any

import pytest

from engine.ids import ResourceId
from engine.plan import Plan
from resources.base import kinds
from tests.builders import clique, group, podcliqueset
from tests.laws.toy import Toy
from tests.resources.status.states import set_pods, up

DELAY = timedelta(minutes=10)
FIRST, SECOND = "demo-0-g-0", "demo-0-g-1"


def demo(replicas: int = 2, minimum: int = 1) -> dict[str, Any]:
    """A standalone clique, and a scaling group of two cliques."""
    groups = (group("g", "b", "c", replicas=replicas, min_available=minimum),)
    return podcliqueset("demo", clique("a"), clique("b"), clique("c"), groups=groups, terminationDelay="10m")


def turn(toy: Toy, seconds: int = 1) -> tuple[Plan, ...]:
    """One pass on a cluster without room: deleted pods go, new ones are not scheduled."""
    plans = toy.plans()
    for plan in plans:
        toy.apply(plan.operations)
    gone(toy)
    toy.now += timedelta(seconds=seconds)
    return plans


def gone(toy: Toy) -> None:
    """Terminating pods disappear."""
    for pod in toy.pods():
        if toy.objects[pod]["metadata"].get("deletionTimestamp"):
            del toy.objects[pod]


def wait(toy: Toy, time: timedelta) -> None:
    """Time passes, and the engine runs at its end."""
    toy.now += time
    for _ in range(8):
        turn(toy)


def cliques(toy: Toy) -> dict[str, str]:
    """The uid of each PodClique."""
    return {id.name: body["metadata"]["uid"] for id, body in toy.objects.items() if id.kind == "PodClique"}


def replaced(toy: Toy, before: dict[str, str]) -> set[str]:
    """The PodCliques that exist with another uid."""
    return {name for name, uid in cliques(toy).items() if before[name] != uid}


def crash(toy: Toy, prefix: str) -> None:
    """The only pod of each clique with that prefix crashes, and the engine records it."""
    set_pods(toy, prefix, *["crashed"] * len([pod for pod in toy.pods() if pod.name.startswith(prefix)]))
    turn(toy)
    turn(toy)


def with_first_replica_recycled() -> Toy:
    """A group of two with minAvailable 1, whose replica 0 was recycled and is pending: nothing can be scheduled."""
    toy = up(demo())
    before = cliques(toy)
    crash(toy, f"{FIRST}-b")
    wait(toy, DELAY)
    assert replaced(toy, before) == {f"{FIRST}-b", f"{FIRST}-c"}
    return toy


def test_a_pending_replica_counts_as_unavailable_when_the_group_falls_below_its_minimum() -> None:
    toy = with_first_replica_recycled()
    before = cliques(toy)

    crash(toy, f"{SECOND}-b")
    wait(toy, DELAY - timedelta(minutes=1))
    assert replaced(toy, before) == set()

    wait(toy, timedelta(minutes=1))
    assert replaced(toy, before) == set(before)


def test_a_pending_replica_alone_is_no_evidence() -> None:
    toy = with_first_replica_recycled()
    before = cliques(toy)

    wait(toy, 3 * DELAY)
    assert replaced(toy, before) == set()


def test_what_was_recycled_as_a_whole_and_stays_pending_is_not_recycled_again() -> None:
    toy = with_first_replica_recycled()
    crash(toy, f"{SECOND}-b")
    wait(toy, DELAY)
    before = cliques(toy)

    wait(toy, 3 * DELAY)
    assert replaced(toy, before) == set()


def test_the_clique_that_proves_the_breach_is_deleted_last_wherever_a_pass_is_cut_off() -> None:
    undisturbed = with_first_replica_recycled()
    crash(undisturbed, f"{SECOND}-b")
    undisturbed.now += DELAY
    cuts = []
    for _ in range(8):
        (plan,) = turn(undisturbed)
        cuts.append(len(plan.operations))

    for number, length in enumerate(cuts):
        for cut in range(length):
            toy = with_first_replica_recycled()
            before = cliques(toy)
            crash(toy, f"{SECOND}-b")
            toy.now += DELAY
            for _ in range(number):
                turn(toy)
            (plan,) = toy.plans()
            toy.apply(plan.operations[:cut])
            gone(toy)
            wait(toy, timedelta(minutes=1))
            assert replaced(toy, before) == set(before), f"pass {number}, cut off after {cut} operations"


def test_the_breach_of_a_group_begins_when_too_many_of_its_replicas_are_breached() -> None:
    toy = up(demo())
    before = cliques(toy)
    crash(toy, f"{FIRST}-b")
    wait(toy, DELAY / 2)
    crash(toy, f"{SECOND}-b")

    wait(toy, DELAY - timedelta(minutes=1))
    assert replaced(toy, before) == set()

    wait(toy, timedelta(minutes=1))
    assert replaced(toy, before) == set(before)


def test_a_clique_that_somebody_deletes_does_not_make_an_older_breach_one_of_the_group() -> None:
    toy = up(demo())
    before = cliques(toy)
    crash(toy, f"{FIRST}-b")
    toy.now += DELAY - timedelta(seconds=5)
    toy.delete(kinds.PODCLIQUE.id("default", f"{SECOND}-b"))

    wait(toy, timedelta(seconds=5))
    assert replaced(toy, before) == {f"{SECOND}-b"}


@pytest.mark.parametrize("scheduled", [1, 2])
def test_only_a_group_that_had_its_minimum_terminates_the_replica_of_the_set(scheduled: int) -> None:
    toy = Toy()
    toy.put(demo(replicas=3, minimum=2))
    for _ in range(4):
        turn(toy)
    set_pods(toy, "demo-0-a", "ready")
    for index in range(scheduled):
        set_pods(toy, f"demo-0-g-{index}", "ready", "ready")
    turn(toy, 60)
    turn(toy)
    before = cliques(toy)

    crash(toy, f"{FIRST}-b")
    wait(toy, DELAY)
    assert replaced(toy, before) == ({f"{FIRST}-b", f"{FIRST}-c"} if scheduled == 1 else set(before))


def test_a_replica_of_a_recycled_group_that_breaks_before_the_group_has_its_minimum_again_is_recycled_alone() -> None:
    toy = up(demo(replicas=3, minimum=2))
    for index in range(3):
        crash(toy, f"demo-0-g-{index}-b")
    wait(toy, DELAY)
    set_pods(toy, FIRST, "ready", "ready")
    turn(toy, 60)
    before = cliques(toy)

    crash(toy, f"{FIRST}-b")
    wait(toy, 2 * DELAY)
    assert replaced(toy, before) == {f"{FIRST}-b", f"{FIRST}-c"}


def test_the_verdict_names_the_group_and_since_when_it_is_below_its_minimum() -> None:
    toy = with_first_replica_recycled()
    crash(toy, f"{SECOND}-b")
    toy.now += DELAY
    status: dict[str, Any] = toy.objects[ResourceId("grove.io", "PodCliqueScalingGroup", "default", "demo-0-g")]["status"]
    (onset,) = [entry["lastTransitionTime"] for entry in status["conditions"] if entry["type"] == "MinAvailableBreached"]

    (plan,) = toy.plans()
    why = f"replica 0 is recycled: demo-0-g has been below minAvailable since {onset}"
    assert {operation.why for operation in plan.operations if operation.id.kind == "Pod"} == {why}


def test_a_clique_that_is_scaled_below_its_minimum_is_in_no_breach_until_it_loses_one_of_its_own_pods() -> None:
    toy = up(podcliqueset("demo", clique("a", 3, minAvailable=3), terminationDelay="10m"))
    id, before = kinds.PODCLIQUE.id("default", "demo-0-a"), cliques(toy)
    toy.write(id, {"spec": {"replicas": 1}, "metadata": {"generation": toy.objects[id]["metadata"]["generation"] + 1}})
    wait(toy, 2 * DELAY)
    conditions = {each["type"]: each["status"] for each in toy.objects[id]["status"]["conditions"]}
    assert (conditions["MinAvailableBreached"], len(toy.pods()), replaced(toy, before)) == ("False", 1, set())

    crash(toy, "demo-0-a")
    wait(toy, DELAY)
    assert replaced(toy, before) == {"demo-0-a"}
