"""Provisional statuses: those of objects that are still coming up; a loss, and what is final, never is."""

import pytest

from engine.memo import Memo
from engine.resource import Want
from resources.base import kinds
from resources.registry import BLUEPRINTS
from tests.builders import clique, group, podcliqueset
from tests.laws.toy import CONFIGURATION, Toy
from tests.resources.status.states import set_pods, up

THREE = podcliqueset("demo", clique("a", 3, minAvailable=2))
GROUPED = podcliqueset("demo", clique("l"), groups=(group("g", "l", replicas=2, minAvailable=1),))


def provisional(toy: Toy) -> set[str]:
    """The kinds of the objects whose desired status is provisional."""
    (observed,) = toy.world().roots
    graph = BLUEPRINTS[0].desire(observed, toy.now, CONFIGURATION, Memo()).graph
    return {id.kind for id, resource in graph.resources.items() if isinstance(resource, Want) and resource.provisional}


def created(*states: str) -> Toy:
    """The set has just been created, and its pods are in these states. No status has been written."""
    toy = Toy()
    toy.put(THREE)
    for _ in range(2):
        for plan in toy.plans():
            toy.apply([operation for operation in plan.operations if operation.verb != "status"])
    set_pods(toy, "demo-0-a", *states)
    return toy


@pytest.mark.parametrize("states", [("unscheduled",) * 3, ("pulling",) * 3, ("ready", "pulling", "unscheduled")])
def test_while_pods_start_the_statuses_of_clique_and_gang_are_provisional(states: tuple[str, ...]) -> None:
    assert provisional(created(*states)) == {"PodClique", "PodGang"}


def test_what_is_complete_is_final() -> None:
    assert provisional(created("ready", "ready", "ready")) == set()


def test_a_gang_that_runs_is_final_although_a_pod_of_its_clique_is_missing() -> None:
    assert provisional(created("ready", "ready", "pulling")) == {"PodClique"}


@pytest.mark.parametrize("states", [("ready", "ready", "unready"), ("ready", "crashed", "crashed"), ("unscheduled",) * 3])
def test_a_loss_is_never_provisional(states: tuple[str, ...]) -> None:
    toy = up(THREE)
    set_pods(toy, "demo-0-a", *states)

    assert provisional(toy) == set()


def test_the_beginning_of_a_breach_is_never_provisional() -> None:
    toy = created("pulling", "pulling", "pulling")
    for plan in toy.plans():
        toy.apply(plan.operations)
    set_pods(toy, "demo-0-a", "crashed", "crashed", "pulling")

    assert "PodClique" not in provisional(toy)


def test_a_group_is_provisional_until_all_its_replicas_are_available() -> None:
    toy = up(GROUPED)
    status = toy.objects[kinds.SCALING_GROUP.id("default", "demo-0-g")]["status"]
    assert status["availableReplicas"] == 2
    assert provisional(toy) == set()

    toy.objects[kinds.SCALING_GROUP.id("default", "demo-0-g")]["status"] = {}
    set_pods(toy, "demo-0-g-1", "pulling")
    assert kinds.SCALING_GROUP.name in provisional(toy)
