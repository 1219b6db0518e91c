"""Scaling: how much work a plan is does not grow faster than what is scaled."""

import sys
from types import FrameType
from typing import Any

from resources.base import kinds
from tests.builders import clique, group, podcliqueset
from tests.laws.toy import Toy

FEW, MANY = 50, 200


def calls_of_plans(replicas: int) -> int:
    """How many functions are called, and generators continued, while a scaling group of one replica gets so many."""
    toy = Toy()
    toy.put(podcliqueset("web", clique("worker", 4), groups=(group("g", "worker", replicas=1),)))
    toy.settle()
    id = kinds.SCALING_GROUP.id("default", "web-0-g")
    calls = 0

    def note(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event == "call"

    for generation in range(2, 5):  # The scaling, and edits while its pods are created.
        toy.write(id, {"spec": {"replicas": replicas}, "metadata": {"generation": generation}})
        world = toy.world()
        sys.setprofile(note)
        plans = toy.plans_of(world)
        sys.setprofile(None)
        for plan in plans:
            toy.apply(plan.operations)
        toy.live()
    assert sum(id.kind == kinds.PODCLIQUE.name for id in toy.objects) == replicas
    return calls


def test_a_group_that_is_scaled_to_four_times_as_many_replicas_takes_about_four_times_the_work() -> None:
    assert calls_of_plans(MANY) < 1.15 * MANY / FEW * calls_of_plans(FEW)
