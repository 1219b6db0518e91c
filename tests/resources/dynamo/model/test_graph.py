"""The services of a graph as its user specified them."""

import pytest

from resources.schema.issues import Rejected
from tests.resources.dynamo.pods.graphs import graph_of, worker


@pytest.mark.parametrize(
    ("given", "gpus"),
    [
        ("8", 8),
        ("8.0", 8),
        ("1k", 1000),
        ("0", 0),
        ("", None),
        ("2.5", None),
        ("-1", None),
        ("many", None),
        ("1" * 5_000, None),
    ],
)
def test_gpus_are_a_whole_amount(given: str, gpus: int | None) -> None:
    (service,) = graph_of(worker(gpu="", resources={"limits": {"gpu": given}})).services

    assert service.gpus == gpus


def test_no_graph_has_gpus_that_are_no_amount() -> None:
    with pytest.raises(Rejected, match="gpu"):
        graph_of(worker(gpu="", resources={"limits": {"gpu": True}}))


def test_tensorrt_llm_counts_the_requested_gpus_before_the_limit() -> None:
    (service,) = graph_of(worker(gpu="", resources={"limits": {"gpu": "8"}, "requests": {"gpu": "4"}})).services

    assert (service.gpus, service.requested_gpus) == (8, 4)
