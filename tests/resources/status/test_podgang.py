"""What a gang says of itself: how far its pods have come, and that all of them have been there once."""

import pytest

from resources.base import kinds
from tests.builders import clique, podcliqueset
from tests.laws.toy import Toy
from tests.resources.status.states import be, conditions, told, up, wanted

NAME = "demo-0"
DEMO = podcliqueset("demo", clique("a", 3, minAvailable=2))
INITIALIZED = {"Initialized": ("True", "PodGangPodsCreated", "PodGang is fully initialized")}


def test_before_its_pods_exist_it_waits_for_them() -> None:
    toy = Toy()
    toy.put(DEMO)
    (plan,) = toy.plans()
    toy.apply([operation for operation in plan.operations if operation.id.kind == "PodGang"])

    status = wanted(toy, kinds.PODGANG, NAME)
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
    be(toy, "demo-0-a", *pods)

    assert wanted(toy, kinds.PODGANG, NAME)["phase"] == phase


def test_once_initialized_it_stays_so_when_a_pod_is_replaced() -> None:
    toy = up(DEMO)
    assert conditions(told(toy, kinds.PODGANG, NAME)) == INITIALIZED
    del toy.objects[toy.pods()[0]]

    assert conditions(wanted(toy, kinds.PODGANG, NAME)) == INITIALIZED
