"""Warnings about DynamoGraphDeployments that are admitted."""

from typing import Any

import pytest

from tests.resources.admission.graphs import WITHOUT_GROVE, created_graph, graph, wide, worker
from tests.resources.admission.requests import issues_of

MISSING_GPUS = (
    "spec.services[decode].resources.limits.gpu: a service on several nodes usually has GPUs; "
    "without their number it is not compared with the parallel sizes of the command"
)
AUTOSCALING = (
    "spec.services[decode].autoscaling is deprecated and ignored. Use DynamoGraphDeploymentScalingAdapter with HPA, KEDA, or Planner for "
    "autoscaling instead. See docs/kubernetes/autoscaling.md"
)
WARNINGS = [
    pytest.param(wide("--tensor-parallel-size", "8"), [], id="all GPUs"),
    pytest.param(
        wide("--tensor-parallel-size", "4"),
        ["spec.services[decode]: tensor parallel size 4, but 2 nodes × 4 GPUs = 8: they must be equal"],
        id="half of the GPUs",
    ),
    pytest.param(wide("--tensor-parallel-size=4", "-pp", "2"), [], id="two kinds"),
    pytest.param(
        wide("--tp_size", "4", "--pp-size", "4", framework="sglang"),
        ["spec.services[decode]: tensor parallel size 4 × pipeline parallel size 4 = 16, but 2 nodes × 4 GPUs = 8: they must be equal"],
        id="more than the GPUs",
    ),
    pytest.param(
        wide("--tp", "8", "--data-parallel-size", "2"),
        ["spec.services[decode]: tensor parallel size 8 × data parallel size 2 = 16, but 2 nodes × 4 GPUs = 8: they must be equal"],
        id="data parallelism of vLLM multiplies",
    ),
    pytest.param(wide("--tp", "8", "--dp", "8", "--enable-dp-attention", framework="sglang"), [], id="that of attention does not"),
    pytest.param(
        wide("--tp", "8", "--dp", "2", framework="sglang"),
        ["spec.services[decode]: tensor parallel size 8 × data parallel size 2 = 16, but 2 nodes × 4 GPUs = 8: they must be equal"],
        id="that of SGLang's replicas does",
    ),
    pytest.param(wide("--tp", "$(TP)"), [], id="a size that is not known"),
    pytest.param(wide("--tp", "9" * 5_000), [], id="a size beyond reason"),
    pytest.param(wide(gpus=None), [MISSING_GPUS], id="no GPUs"),
    pytest.param(
        wide(gpus=None, resources={"requests": {"gpu": "4"}}, framework="trtllm"),
        [
            "spec.services[decode].resources.requests.gpu: pods get GPUs by resources.limits.gpu only; "
            "a request counts the processes of TensorRT-LLM",
        ],
        id="GPUs as a request only",
    ),
    pytest.param(
        worker(componentType="Planner"),
        [
            "spec.services[decode]: planners run as the ServiceAccount planner-serviceaccount; "
            "neither it nor its roles are created, so it must exist"
        ],
        id="the ServiceAccount of planners",
    ),
    pytest.param(
        {**worker(componentType="planner"), "extraPodSpec": {"serviceAccountName": "own", "mainContainer": {"image": "i"}}},
        [],
        id="a planner with its own ServiceAccount",
    ),
    pytest.param(
        worker(componentType="Frontned", subComponentType="decoder"),
        [
            "spec.services[decode].componentType: frontned is none of the types with a meaning; did you mean frontend?",
            "spec.services[decode].subComponentType: decoder is none of the types with a meaning; did you mean decode?",
        ],
        id="types that are typing errors",
    ),
    pytest.param(worker(componentType="encode", subComponentType="router"), [], id="types of others"),
    pytest.param(worker(autoscaling={"enabled": True}), [AUTOSCALING], id="autoscaling"),
    pytest.param(
        worker(scalingAdapter={}),
        ["spec.services[decode].scalingAdapter is off without enabled: true; the number of replicas is spec.services[decode].replicas"],
        id="scaling adapters that are off",
    ),
    pytest.param(
        worker(scalingAdapter={"enabled": True}),
        [
            "spec.services[decode].scalingAdapter: replicas is used when the service is made; then the number is that of "
            "DynamoGraphDeploymentScalingAdapter g-decode or, without it, of the object that runs the service"
        ],
        id="scaling adapters",
    ),
    pytest.param(
        worker(globalDynamoNamespace=True),
        ["spec.services[decode].globalDynamoNamespace is ignored: the Dynamo namespace is that of dynamoNamespace"],
        id="the global namespace",
    ),
    pytest.param(
        {**wide(), "extraPodSpec": {**wide()["extraPodSpec"], "imagePullSecrets": [{"name": "a"}, {"name": "b"}, {"name": "a"}]}},
        ["spec.services[decode].extraPodSpec.imagePullSecrets: a is named 2 times; pods name it once"],
        id="a pull secret that is named twice",
    ),
    pytest.param(worker(replcas=1), ['unknown field "spec.services[decode].replcas"'], id="an unknown field"),
    pytest.param(
        worker(livenessProbe={"perod": 1, "exec": {"command": ["true"]}}),
        ['unknown field "spec.services[decode].livenessProbe.perod"'],
        id="an unknown field of Kubernetes",
    ),
]


@pytest.mark.parametrize(("service", "warnings"), WARNINGS)
def test_a_graph_with_warnings(service: dict[str, Any], warnings: list[str]) -> None:
    decision = created_graph(graph({"decode": service}))

    assert issues_of(decision) == []
    assert list(decision.all_warnings) == warnings


def test_sizes_in_a_shell_line_are_compared() -> None:
    line = {"command": ["/bin/sh", "-c"], "args": ["cd /x && python3 -m dynamo.vllm --tp '4'; echo done"]}
    service = {**wide(), "extraPodSpec": {"mainContainer": {"image": "i", **line}}}

    assert (
        "spec.services[decode]: tensor parallel size 4, but 2 nodes × 4 GPUs = 8: they must be equal"
        in created_graph(graph({"decode": service})).warnings
    )


def test_names_that_are_too_long_are_shortened_with_a_warning() -> None:
    decision = created_graph(graph({"my-service": wide()}, name="my-multinode-deployment"))

    assert decision.allowed
    (warning,) = decision.warnings
    assert warning.startswith("spec.services[my-service]: names in the PodCliqueSet my-multinode-deployment are shortened")
    assert "my-service-ldr becomes my-" in warning


@pytest.mark.parametrize("annotations", [None, WITHOUT_GROVE])
def test_a_service_with_0_replicas_is_admitted_with_a_warning(annotations: dict[str, str] | None) -> None:
    decision = created_graph(graph({"decode": wide(replicas=0), "prefill": wide()}, annotations=annotations))

    assert decision.allowed
    (warning,) = decision.warnings
    assert warning.startswith("spec.services[decode].replicas: with 0 replicas the service has no p")
