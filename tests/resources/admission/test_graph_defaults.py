"""Defaults of DynamoGraphDeployments, and values that are read as values of another type."""

from typing import Any

import pytest

from tests.resources.admission.graphs import created_graph, graph, one, wide, worker


def test_a_number_in_quotes_and_an_amount_without_are_accepted_and_stored_with_the_right_type() -> None:
    body = graph({"decode": wide("--tp", "4", nodes="2", gpus=2, replicas="3")})

    decision = created_graph(body)

    assert decision.allowed and decision.body is not None
    service = decision.body["spec"]["services"]["decode"]
    assert (service["multinode"]["nodeCount"], service["replicas"], service["resources"]["limits"]["gpu"]) == (2, 3, "2")
    assert decision.warnings == (
        'spec.services[decode].replicas: "3" is read as the number 3',
        'spec.services[decode].multinode.nodeCount: "2" is read as the number 2',
        'spec.services[decode].resources.limits.gpu: 2 is read as the text "2"',
    )
    assert created_graph(decision.body).body is decision.body


def test_a_service_that_is_null_is_told() -> None:
    body = graph({"decode": worker("--tp", "2"), "prefill": None})

    decision = created_graph(body)

    assert decision.allowed and decision.body is not None
    assert list(decision.body["spec"]["services"]) == ["decode"]
    assert decision.warnings == ("spec.services[prefill]: null counts as absent, so nothing is created for it; write {} for its defaults",)


@pytest.mark.parametrize("value", ["two", "", "2.0", 2.0, True, "9" * 5_000, [2], {}])
def test_what_is_no_number_is_not_read_as_one(value: Any) -> None:
    (issue,) = created_graph(one(multinode={"nodeCount": value})).issues

    assert issue.field == "spec.services[decode].multinode.nodeCount"


def test_amounts_of_other_resources_become_text() -> None:
    body = created_graph(one(resources={"requests": {"cpu": 0.5, "custom": {"example.com/nic": 1}}})).body

    assert body is not None
    assert body["spec"]["services"]["decode"]["resources"]["requests"] == {"cpu": "0.5", "custom": {"example.com/nic": "1"}}


def test_without_a_node_count_several_nodes_are_two() -> None:
    body = created_graph(graph({"decode": worker("--tp", "2", multinode={}, resources={"limits": {"gpu": "1"}})})).body

    assert body is not None
    assert body["spec"]["services"]["decode"]["multinode"] == {"nodeCount": 2}
