"""Readiness of services on the component path: LeaderWorkerSets and Deployments."""

from typing import Any

import pytest

from engine.observed import Live, live
from resources.dynamo.model.graph import InferenceGraph
from resources.dynamo.model.state import NotReady, ServiceState
from resources.dynamo.readiness_components import component_states
from tests.resources.dynamo.objects.component_graphs import finder, live_of, resources, status
from tests.resources.dynamo.objects.grove_graphs import graph, worker

READY = {"replicas": 1, "updatedReplicas": 1, "readyReplicas": 1}
AVAILABLE = {"replicas": 2, "updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 2}


def state(specified: InferenceGraph, *lives: Live) -> ServiceState:
    """The state of the only service of a graph."""
    (only,) = component_states(specified, finder(*lives))
    return only


def sets(*statuses: dict[str, Any]) -> ServiceState:
    """The state of a service with two replicas, whose LeaderWorkerSets have these statuses."""
    specified = graph(Decode=worker(nodes=2, replicas=2))
    made = resources(specified)
    return state(specified, *(status(made[f"LeaderWorkerSet/g-decode-{index}"], **fields) for index, fields in enumerate(statuses)))


def deployment(**fields: Any) -> ServiceState:
    """The state of a service whose Deployment has this status."""
    specified = graph(Prefill=worker(replicas=2))
    return state(specified, status(resources(specified)["Deployment/g-prefill"], **fields))


def test_a_multinode_service_is_the_sum_of_its_leader_worker_sets_under_the_name_of_the_first() -> None:
    assert sets(READY, {**READY, "updatedReplicas": 0}) == ServiceState(
        service="Decode",
        component_kind="LeaderWorkerSet",
        component_name="g-decode-0",
        replicas=2,
        updated_replicas=1,
        ready_replicas=2,
    )


def test_a_leader_worker_set_is_not_ready_before_its_group_is() -> None:
    assert sets(READY, {"replicas": 1}).reason == ("Some LeaderWorkerSets are not ready: leaderworkerset/g-decode-1: desired=1, ready=0")


def test_a_leader_worker_set_is_not_ready_without_the_condition_available() -> None:
    assert sets({**READY, "available": "False"}, READY).reason == (
        "Some LeaderWorkerSets are not ready: leaderworkerset/g-decode-0: condition Available is not True"
    )


def test_a_leader_worker_set_that_does_not_exist_is_not_found() -> None:
    result = sets(READY)

    assert not result.is_ready
    assert result.reason == "Some LeaderWorkerSets are not ready: leaderworkerset/g-decode-1: resource not found"
    assert (result.replicas, result.ready_replicas) == (1, 1)


def test_a_leader_worker_set_whose_controller_has_not_seen_the_latest_change_is_not_ready() -> None:
    specified = graph(Decode=worker(nodes=2))
    made = resources(specified)["LeaderWorkerSet/g-decode-0"]
    fields = {**READY, "observedGeneration": 1, "conditions": [{"type": "Available", "status": "True"}]}
    changed = live_of(made, status=fields, metadata={**made.body["metadata"], "generation": 2})

    assert state(specified, changed).reason.endswith("leaderworkerset/g-decode-0: its latest change is not observed yet")
    assert state(specified, live_of(made, status=fields, metadata={**made.body["metadata"], "generation": 1})).is_ready


def test_a_leader_worker_set_that_somebody_scaled_to_zero_is_ready() -> None:
    specified = graph(Decode=worker(nodes=2))
    made = resources(specified)["LeaderWorkerSet/g-decode-0"]

    assert state(specified, live_of(made, spec={"replicas": 0})).is_ready


def test_replicas_beyond_the_number_are_not_counted() -> None:
    specified, larger = graph(Decode=worker(nodes=2, replicas=1)), graph(Decode=worker(nodes=2, replicas=2))
    lives = [status(resources(larger)[f"LeaderWorkerSet/g-decode-{index}"], **READY) for index in range(2)]

    assert state(specified, *lives).replicas == 1


@pytest.mark.parametrize("nodes", [1, 2])
def test_a_service_without_replicas_is_ready(nodes: int) -> None:
    assert state(graph(a=worker(nodes=nodes, replicas=0))).is_ready


def test_a_deployment_is_ready_when_all_pods_are_updated_and_available() -> None:
    assert deployment(**AVAILABLE) == ServiceState(
        service="Prefill",
        component_kind="Deployment",
        component_name="g-prefill",
        replicas=2,
        updated_replicas=2,
        ready_replicas=2,
        available_replicas=2,
    )


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"updatedReplicas": 1}, "desired=2, updated=1"),
        ({"availableReplicas": 1}, "desired=2, available=1"),
        ({"replicas": 3}, "desired=2, outdated=1"),
        ({"available": "Unknown"}, "condition Available is not True"),
    ],
)
def test_a_deployment_that_is_not_ready_says_why(change: dict[str, Any], reason: str) -> None:
    assert deployment(**{**AVAILABLE, **change}).reason == f"Deployment is not ready: deployment/g-prefill: {reason}"


def test_a_deployment_whose_pods_are_refused_says_with_which_words() -> None:
    refused = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "exceeded quota: few"}

    assert deployment(**{**AVAILABLE, "updatedReplicas": 0}, conditions=[refused]).reason.endswith(
        ": its pods are refused: exceeded quota: few"
    )
    long = {**refused, "message": "\x1b[31m" + "x" * 40_000}
    assert len(short := deployment(**{**AVAILABLE, "updatedReplicas": 0}, conditions=[long]).reason) < 500 and "\x1b" not in short


@pytest.mark.parametrize(("change", "reason"), [({}, "FailedCreate"), ({"updatedReplicas": 0}, "FailedDelete")])
def test_a_deployment_that_lacks_no_pods_or_cannot_delete_them_is_not_refused_any(change: dict[str, int], reason: str) -> None:
    failure = {"type": "ReplicaFailure", "status": "True", "reason": reason, "message": "denied"}

    assert "refused" not in deployment(**{**AVAILABLE, **change}, conditions=[failure]).reason


def test_a_deployment_that_does_not_exist_is_not_found() -> None:
    assert state(graph(a=worker())).reason == "Deployment is not ready: deployment/g-a: resource not found"


def test_a_deployment_that_others_scale_is_compared_with_its_own_number() -> None:
    specified = graph(a=worker())
    made = resources(specified)["Deployment/g-a"]
    ready = {**AVAILABLE, "conditions": [{"type": "Available", "status": "True"}]}

    assert state(specified, live_of(made, spec={"replicas": 2}, status=ready)).is_ready
    assert not state(specified, live_of(made, spec={"replicas": 3}, status=ready)).is_ready


def test_a_status_of_any_shape_is_read() -> None:
    specified = graph(a=worker(nodes=2))
    made = resources(specified)["LeaderWorkerSet/g-a-0"]

    for odd in (None, "x", {"readyReplicas": "1", "conditions": {}}, {"readyReplicas": 1, "conditions": ["x"]}):
        assert not state(specified, live_of(made, status=odd)).is_ready


@pytest.mark.parametrize(
    ("condition", "cause"),
    [
        ({"status": "False", "reason": "Unschedulable", "message": "minCount (2) cannot be satisfied"}, NotReady.NO_ROOM),
        ({"status": "False", "reason": "SchedulerError"}, NotReady.NO_ROOM),
        ({"status": "True", "reason": "Scheduled"}, NotReady.STARTING),
    ],
)
def test_a_service_whose_pod_group_of_kubernetes_finds_no_nodes_lacks_room(condition: dict[str, Any], cause: NotReady) -> None:
    specified = graph(Decode=worker(nodes=2))
    made = resources(specified)["LeaderWorkerSet/g-decode-0"]
    body = {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "g-decode-0", "namespace": made.id.namespace},
    }
    group = live({**body, "status": {"conditions": [{"type": "PodGroupInitiallyScheduled", **condition}]}})

    assert state(specified, status(made, replicas=1, updatedReplicas=1), group).cause is cause
