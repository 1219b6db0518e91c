"""Readiness on the Grove path: what is counted for each service, and the reasons of those that are not ready."""

from typing import Any

import pytest

from engine.ids import ResourceId
from engine.observed import Live, live
from resources.dynamo.model.graph import InferenceGraph
from resources.dynamo.model.state import ServiceState
from resources.dynamo.readiness_grove import service_states
from tests.resources.dynamo.objects.grove_graphs import frontend, graph, worker


def observed(kind: str, name: str, desired: Any, **status: Any) -> dict[str, Live]:
    """One live object of Grove, by its name."""
    metadata = {"name": name, "namespace": "ai"}
    return {
        name: live({"apiVersion": "grove.io/v1alpha1", "kind": kind, "metadata": metadata, "spec": {"replicas": desired}, "status": status})
    }


def states(graph: InferenceGraph, *objects: dict[str, Live]) -> dict[str, ServiceState]:
    """The states of the services of a graph, of which these objects exist."""
    by_id = {item.id: item for entry in objects for item in entry.values()}

    def find(id: ResourceId) -> Live | None:
        return by_id.get(id)

    return {state.service: state for state in service_states(graph, find)}


def test_a_multinode_service_is_ready_when_all_replicas_of_its_group_are_available() -> None:
    group = observed("PodCliqueScalingGroup", "g-0-decode", 2, replicas=2, updatedReplicas=1, availableReplicas=2)

    state = states(graph(Decode=worker(nodes=2, replicas=2)), group)["Decode"]

    assert state.is_ready
    assert state.status == {
        "componentKind": "PodCliqueScalingGroup",
        "componentName": "g-0-decode",
        "replicas": 2,
        "updatedReplicas": 1,
        "availableReplicas": 2,
    }


def test_a_multinode_service_that_lacks_replicas_says_how_many() -> None:
    group = observed("PodCliqueScalingGroup", "g-0-decode", 2, replicas=2, availableReplicas=1)

    state = states(graph(decode=worker(nodes=2, replicas=2)), group)["decode"]

    assert (state.is_ready, state.reason) == (False, "pcsg/g-0-decode: desired=2, available=1")


def test_a_single_node_service_is_ready_when_all_pods_of_its_clique_are_ready() -> None:
    clique = observed("PodClique", "g-0-frontend", 2, replicas=2, updatedReplicas=2, readyReplicas=2)

    state = states(graph(Frontend=frontend(replicas=2)), clique)["Frontend"]

    assert state.is_ready
    assert state.status == {
        "componentKind": "PodClique",
        "componentName": "g-0-frontend",
        "replicas": 2,
        "updatedReplicas": 2,
        "readyReplicas": 2,
    }


def test_a_single_node_service_that_lacks_pods_says_how_many() -> None:
    clique = observed("PodClique", "g-0-frontend", 2, replicas=2, readyReplicas=1)

    assert states(graph(Frontend=frontend(replicas=2)), clique)["Frontend"].reason == "podclique/g-0-frontend: desired=2, ready=1"


@pytest.mark.parametrize(
    ("service", "reason"),
    [(frontend(), "podclique/g-0-web: resource not found"), (worker(nodes=2), "pcsg/g-0-web: resource not found")],
    ids=["one node", "several nodes"],
)
def test_a_service_whose_object_does_not_exist_is_not_ready(service: dict[str, Any], reason: str) -> None:
    state = states(graph(web=service))["web"]

    assert state.reason == reason
    assert state.status["replicas"] == state.status["updatedReplicas"] == 0


@pytest.mark.parametrize("service", [frontend(replicas=0), worker(nodes=2, replicas=0)], ids=["one node", "several nodes"])
def test_a_service_with_0_replicas_is_ready(service: dict[str, Any]) -> None:
    assert states(graph(web=service))["web"].is_ready


def test_replicas_that_the_graph_asks_for_and_that_are_not_written_yet_count() -> None:
    clique = observed("PodClique", "g-0-frontend", 1, replicas=1, readyReplicas=1)

    assert states(graph(Frontend=frontend(replicas=3)), clique)["Frontend"].reason == "podclique/g-0-frontend: desired=3, ready=1"


def test_replicas_that_the_graph_leaves_to_others_are_those_of_the_object() -> None:
    clique = observed("PodClique", "g-0-frontend", 4, replicas=4, readyReplicas=3)

    assert states(graph(Frontend=frontend()), clique)["Frontend"].reason == "podclique/g-0-frontend: desired=4, ready=3"


def test_services_are_in_the_order_of_their_names() -> None:
    clique = observed("PodClique", "g-0-b", 1, readyReplicas=1)
    services = states(graph(c=frontend(), b=frontend(), A=worker(nodes=2)), clique)

    assert {name: state.reason for name, state in services.items()} == {
        "A": "pcsg/g-0-a: resource not found",
        "b": "",
        "c": "podclique/g-0-c: resource not found",
    }
    assert list(services) == ["A", "b", "c"]


@pytest.mark.parametrize("status", [None, [], "x", {"readyReplicas": "1"}, {"readyReplicas": True}, {"readyReplicas": None}])
def test_a_status_of_the_wrong_shape_counts_as_nothing(status: Any) -> None:
    body = {"apiVersion": "grove.io/v1alpha1", "kind": "PodClique", "metadata": {"name": "g-0-web", "namespace": "ai"}, "status": status}

    assert states(graph(web=frontend(replicas=1)), {"": live(body)})["web"].reason == "podclique/g-0-web: desired=1, ready=0"


def test_a_service_whose_pods_find_no_node_lacks_room() -> None:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    pods = [
        live({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"{owner}-0", "namespace": "ai", "labels": {label: owner}},
            "spec": {},
            "status": {"conditions": [condition] if is_refused else []},
        })
        for label, owner, is_refused in (
            ("grove.io/podcliquescalinggroup", "g-0-decode", True),
            ("grove.io/podclique", "g-0-frontend", False),
        )
    ]  # fmt: skip
    objects = observed("PodCliqueScalingGroup", "g-0-decode", 1) | observed("PodClique", "g-0-frontend", 1)
    by_id = {item.id: item for item in objects.values()}

    found = service_states(graph(Frontend=frontend(), Decode=worker(nodes=2)), by_id.get, lambda: pods)

    assert {state.service: state.cause.value for state in found} == {"Decode": "insufficient_capacity", "Frontend": "pods_not_ready"}
