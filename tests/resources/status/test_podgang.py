"""The status of a PodGang: its phase, and whether all its pods have existed."""

import pytest

from resources.base import kinds
from tests.builders import clique, podcliqueset
from tests.laws.toy import Toy
from tests.resources.status.states import conditions, desired_status, live_status, set_pods, up

NAME = "demo-0"
DEMO = podcliqueset("demo", clique("a", 3, minAvailable=2))
INITIALIZED = {"Initialized": ("True", "PodGangPodsCreated", "PodGang is fully initialized")}


def test_it_is_not_initialized_before_its_pods_exist() -> None:
    toy = Toy()
    toy.put(DEMO)
    (plan,) = toy.plans()
    toy.apply([operation for operation in plan.operations if operation.id.kind == "PodGang"])

    status = desired_status(toy, kinds.PODGANG, NAME)
    assert status["phase"] == "Pending"
    assert conditions(status) == {"Initialized": ("False", "PodGangPodsCreationPending", "Not all constituent pods have been created yet")}


@pytest.mark.parametrize(
    ("pods", "phase"),
    [
        (("ready", "ready", "unscheduled"), "Running"),
        (("ready", "pulling", "unscheduled"), "Starting"),
        (("ready", "unscheduled", "unscheduled"), "Pending"),
    ],
)
def test_its_phase_follows_its_minimum(pods: tuple[str, ...], phase: str) -> None:
    toy = up(DEMO)
    set_pods(toy, "demo-0-a", *pods)

    assert desired_status(toy, kinds.PODGANG, NAME)["phase"] == phase


def test_it_stays_initialized_while_a_pod_is_replaced() -> None:
    toy = up(DEMO)
    assert conditions(live_status(toy, kinds.PODGANG, NAME)) == INITIALIZED
    del toy.objects[toy.pods()[0]]

    assert conditions(desired_status(toy, kinds.PODGANG, NAME)) == INITIALIZED
