"""The name of the PodCliqueSet of a graph: the graph's own where names of cliques fit beside it, else that of Dynamo's operator."""

from typing import Any

import pytest

from tests.resources.dynamo.objects.grove_graphs import frontend, graph, worker
from tests.resources.dynamo.objects.test_podcliqueset import admitted, issues, planned


@pytest.mark.parametrize(
    ("name", "services", "expected"),
    [
        ("a" * 31, {"decode": worker(nodes=2)}, "a" * 31),
        ("a" * 40, {"my-service": worker()}, "a" * 40),
        ("a" * 41, {"dec": worker()}, "a" * 41),
        ("a" * 44, {"decode": worker(nodes=2), "f": frontend()}, "a" * 24 + "-da01"),  # 45 - len("decode" + "decode-ldr") = 29
        ("a" * 44, {"my-service": worker()}, "a" * 30 + "-da01"),
        ("deepseek-v4-pro-0813-agg-gb200-agentic", {"VllmDecodeWorker": worker(nodes=4)}, "deep-9359"),
        ("live-verify-accept-len-win-df9e-long", {"a-service-with-a-long-name": worker(nodes=2)}, "liv-3b43"),
    ],
)
def test_a_set_whose_graph_leaves_no_room_for_cliques_has_the_name_that_dynamo_s_operator_gives_it(
    name: str, services: dict[str, Any], expected: str
) -> None:
    made = planned(graph(services, name=name))

    assert made.body["metadata"]["name"] == expected
    assert issues(admitted(made.body)) == []
    assert any(f"the PodCliqueSet of the graph is {expected}" in warning for warning in made.warnings) is (name != expected)
    assert all(clique["labels"]["nvidia.com/dynamo-graph-deployment-name"] == name for clique in made.body["spec"]["template"]["cliques"])
