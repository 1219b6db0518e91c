"""The status of a graph: its state, its condition, and the replicas of its services."""

from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from engine.health import Obstacle, health, with_health
from engine.observed import Observed, live
from engine.paths import stamp
from engine.resource import NOW
from resources.dynamo.model.state import ServiceState
from resources.dynamo.status import FAILED, INVALID, Failure, readiness_of, status_of

READY = ServiceState("Frontend", "PodClique", "g-0-frontend", 1, 1, ready_replicas=1)
AT = "2026-01-01T00:00:00Z"
WAITING = ServiceState(
    "decode", "PodCliqueScalingGroup", "g-0-decode", 2, 2, available_replicas=1, reason="pcsg/g-0-decode: desired=2, available=1"
)


def root(**status: Any) -> Any:
    """A stored graph."""
    metadata = {"name": "g", "namespace": "default", "uid": "u", "resourceVersion": "1", "generation": 4}
    return live({"apiVersion": "nvidia.com/v1alpha1", "kind": "DynamoGraphDeployment", "metadata": metadata, "status": status})


@pytest.mark.parametrize(
    ("states", "failure", "expected"),
    [
        ((READY,), None, ("successful", "True", "all_resources_are_ready", "All resources are ready")),
        (
            (READY, WAITING),
            None,
            (
                "pending",
                "False",
                "pods_not_ready",
                "Resources not ready: g-0-decode: pcsg/g-0-decode: desired=2, available=1",
            ),
        ),
        ((READY,), Failure(FAILED, "no queue"), ("failed", "False", "failed_to_reconcile_the_resources", "no queue")),
        ((), Failure(INVALID, "Validation failed: x"), ("failed", "False", "ValidationFailed", "Validation failed: x")),
    ],
)
def test_state_and_condition(states: tuple[ServiceState, ...], failure: Failure | None, expected: tuple[str, ...]) -> None:
    status = status_of(root(), states, failure)

    (condition,) = status["conditions"]
    assert (status["state"], condition["status"], condition["reason"], condition["message"]) == expected
    assert (condition["type"], condition["observedGeneration"], condition["lastTransitionTime"]) == ("Ready", 4, NOW)


@pytest.mark.parametrize(
    ("states", "state", "reason"),
    [
        ((replace(WAITING, exists=False),), "initializing", "some_resources_are_not_ready"),
        ((READY, replace(WAITING, exists=False)), "pending", "some_resources_are_not_ready"),
        ((READY, replace(WAITING, has_room=False)), "pending", "insufficient_capacity"),
        ((WAITING, replace(WAITING, has_room=False)), "pending", "mixed_not_ready_reasons"),
        ((replace(WAITING, updated_replicas=1),), "pending", "updating"),
    ],
)
def test_why_a_graph_is_not_ready(states: tuple[ServiceState, ...], state: str, reason: str) -> None:
    status = status_of(root(), states, None)

    assert (status["state"], status["conditions"][0]["reason"]) == (state, reason)


def test_a_graph_of_v1beta1_has_components_and_the_observed_generation() -> None:
    stored = root(components={"old": {}})
    newer = live({**stored.body, "apiVersion": "nvidia.com/v1beta1"})

    status = status_of(newer, (READY,), None)

    entry = {"componentKind": "PodClique", "componentNames": ["g-0-frontend"], "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1}
    assert status["components"] == {"old": None, "Frontend": entry}
    assert (status["observedGeneration"], "services" in status) == (4, False)


def test_a_graph_of_v1alpha1_has_the_observed_generation_which_is_no_reason_to_write() -> None:
    first = status_of(root(), (READY,), None)
    assert first["observedGeneration"] == 4

    stored = stamp(first, AT)
    dropped = {key: value for key, value in stored.items() if key != "observedGeneration"}

    assert status_of(root(**stored), (READY,), None) == stored
    assert status_of(root(**dropped), (READY,), None) == dropped
    assert status_of(root(**dropped), (WAITING,), None)["observedGeneration"] == 4
    assert status_of(root(**{**stored, "observedGeneration": 3}), (READY,), None)["observedGeneration"] == 4


def test_services_have_their_counts_and_those_that_are_gone_are_removed() -> None:
    status = status_of(root(services={"old": {"componentKind": "PodClique"}}), (READY, WAITING), None)

    assert status["services"] == {
        "old": None,
        "Frontend": {
            "componentKind": "PodClique",
            "componentName": "g-0-frontend",
            "replicas": 1,
            "updatedReplicas": 1,
            "readyReplicas": 1,
        },
        "decode": {
            "componentKind": "PodCliqueScalingGroup",
            "componentName": "g-0-decode",
            "replicas": 2,
            "updatedReplicas": 2,
            "availableReplicas": 1,
        },
    }


def test_a_condition_that_does_not_change_keeps_its_time_and_those_of_others_stay() -> None:
    ours = {
        "type": "Ready",
        "status": "True",
        "reason": "all_resources_are_ready",
        "message": "",
        "lastTransitionTime": AT,
    }
    other = {"type": "Theirs", "status": "True", "reason": "x", "message": "", "lastTransitionTime": AT}

    ready, theirs = status_of(root(conditions=[ours, other]), (READY,), None)["conditions"]

    assert ready["lastTransitionTime"] == AT
    assert theirs == other


@pytest.mark.parametrize("status", [{"conditions": "text"}, {"services": ["x"]}, {"conditions": None, "services": None}])
def test_a_status_of_any_shape_is_replaced(status: dict[str, Any]) -> None:
    assert status_of(root(**status), (READY,), None)["state"] == "successful"


def a_set(generation: int, stalled: str = "True") -> Observed:
    """The set of a graph, with the condition `Stalled` of its first generation."""
    condition = {"type": "Stalled", "status": stalled, "reason": "NameConflict", "message": "Service/g-0 exists", "observedGeneration": 1}
    metadata = {"name": "g", "namespace": "default", "uid": "s", "generation": generation}
    body = {"apiVersion": "grove.io/v1alpha1", "kind": "PodCliqueSet", "metadata": metadata, "status": {"conditions": [condition]}}
    return Observed(live(body), {})


def test_a_graph_is_stalled_while_its_set_is() -> None:
    assert readiness_of((WAITING,), None, (a_set(1),)).obstacle == Obstacle("NameConflict", "PodCliqueSet g: Service/g-0 exists")
    assert readiness_of((WAITING,), None, (a_set(2),)).obstacle is None
    assert readiness_of((WAITING,), None, (a_set(1, "False"),)).obstacle is None


def test_a_graph_keeps_the_reasons_of_ready_and_has_reconciling_or_stalled_beside_it() -> None:
    def types(states: tuple[ServiceState, ...], sets: tuple[Observed, ...]) -> list[tuple[str, str, str]]:
        status = status_of(root(), states, None)
        judged = health(readiness_of(states, None, sets), (), (), root(), datetime(2026, 1, 1, tzinfo=UTC))
        return [(each["type"], each["status"], each["reason"]) for each in with_health(status, judged, root())["conditions"]]

    assert types((READY,), ()) == [("Ready", "True", "all_resources_are_ready")]
    assert types((WAITING,), ()) == [("Reconciling", "True", "pods_not_ready"), ("Ready", "False", "pods_not_ready")]
    assert types((WAITING,), (a_set(1),)) == [("Stalled", "True", "NameConflict"), ("Ready", "False", "pods_not_ready")]


@pytest.mark.parametrize(
    ("status", "message"),
    [
        ({"observedGeneration": 2}, ""),
        ({"observedGeneration": 2, "updateProgress": {"updateStartedAt": AT, "updateEndedAt": AT}}, ""),
        ({"observedGeneration": 1}, "spec not yet processed: generation=2, observedGeneration=1"),
        (
            {"observedGeneration": 2, "replicas": 1, "updatedReplicas": 0, "updateProgress": {"updateStartedAt": AT}},
            "performing rolling update: replicas=1, updated=0",
        ),
    ],
)
def test_a_graph_is_not_ready_before_its_set_runs_the_current_generation(status: dict[str, Any], message: str) -> None:
    metadata = {"name": "g", "namespace": "default", "uid": "v", "resourceVersion": "1", "generation": 2}
    sets = [Observed(live({"apiVersion": "grove.io/v1alpha1", "kind": "PodCliqueSet", "metadata": metadata, "status": status}), {})]

    written, readiness = status_of(root(), (READY,), None, sets=sets), readiness_of((READY,), None, sets)

    (condition,) = written["conditions"]
    ready = ("successful", "True", "all_resources_are_ready", "All resources are ready")
    updating = ("pending", "False", "updating", f"Resources not ready: g: podcliqueset/g: {message}")
    assert (written["state"], condition["status"], condition["reason"], condition["message"]) == (updating if message else ready)
    assert (readiness.ready, readiness.reason) == (not message, condition["reason"])
