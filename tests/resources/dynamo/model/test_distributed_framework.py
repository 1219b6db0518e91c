"""The framework of a service on several nodes: from its command, the graph or its image, whatever its type is."""

import pytest

from resources.dynamo.model.framework import Framework, distributed_framework_of, framework_of_image
from resources.dynamo.model.graph import Role
from tests.resources.dynamo.pods.graphs import current, graph_of, main_container, pod, worker

VLLM = "python3 -m dynamo.vllm --tensor-parallel-size 8"


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ("nvcr.io/nvidia/ai-dynamo/vllm-runtime:0.6.1", Framework.VLLM),
        ("registry:5000/sglang-runtime", Framework.SGLANG),
        ("nvcr.io/nvidia/ai-dynamo/tensorrtllm-runtime@sha256:00", Framework.TRTLLM),
        ("example/TensorRT-LLM:1", Framework.TRTLLM),
        ("vllm/server:vllm", Framework.NONE),
        ("example/vllm-sglang", Framework.NONE),
        ("example/myvllmish", Framework.NONE),
        ("", Framework.NONE),
    ],
)
def test_an_image_is_named_after_a_framework(image: str, expected: Framework) -> None:
    assert framework_of_image(image) is expected


@pytest.mark.parametrize("kind", ["", "main", "worker"])
def test_the_command_counts_then_the_graph_then_the_image(kind: str) -> None:
    assert distributed_framework_of(kind, [VLLM], [], "", "sglang-runtime") is Framework.VLLM
    assert distributed_framework_of(kind, ["serve"], [], "trtllm", "sglang-runtime") is Framework.TRTLLM
    assert distributed_framework_of(kind, ["serve"], [], "", "sglang-runtime") is Framework.SGLANG
    assert distributed_framework_of(kind, ["serve"], [], "", "server") is Framework.NONE


@pytest.mark.parametrize("kind", ["frontend", "Planner", "epp"])
def test_a_frontend_has_only_what_its_command_starts(kind: str) -> None:
    assert distributed_framework_of(kind, ["serve"], [], "vllm", "vllm-runtime") is Framework.NONE
    assert distributed_framework_of(kind, [VLLM], [], "sglang", "vllm-runtime") is Framework.VLLM


def test_one_whose_framework_cannot_be_known_is_a_loud_warning() -> None:
    service = worker("serve") | {"componentType": None}

    (warning,) = pod(current(service), Role.LEADER).warnings

    assert "every node runs the same command, as 2 independent servers" in warning


def test_a_graph_without_a_record_says_what_would_change_its_service() -> None:
    service = worker(VLLM) | {"componentType": None}
    built = pod(graph_of(service), Role.LEADER)

    assert main_container(built)["args"] == [VLLM]
    (warning,) = built.warnings
    assert 'annotate the graph with engine.grove.io/pod-form: "6"' in warning
    assert "ray start --head" in main_container(pod(current(service), Role.LEADER))["args"][0]
