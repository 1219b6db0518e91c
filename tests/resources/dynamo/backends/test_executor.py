"""By what the nodes of vLLM join, and why."""

from typing import Any

import pytest

from resources.base.kinds import DYNAMO_GRAPH_V1BETA1
from resources.base.labels import VLLM_EXECUTORS
from resources.dynamo.backends.executor import BACKEND, ORIGIN, Executor, executor_of, executor_record, running_executor
from resources.dynamo.model.graph import InferenceGraph, read_graph
from tests.resources.dynamo.pods.graphs import GROVE, LEADER, LWS, WORKER, current, graph_of, pod, worker

SCRIPT = "python3 -m dynamo.vllm --model m --tensor-parallel-size 8"
OFFICIAL = "nvcr.io/nvidia/ai-dynamo/vllm-runtime"


def graph(
    annotations: dict[str, str] | None = None,
    service: dict[str, str] | None = None,
    script: str = SCRIPT,
    image: str = "",
    beta: bool = False,
) -> InferenceGraph:
    """A graph with annotations of its own and of its service."""
    container = {"image": image} if image else {}
    made = current(worker(script, container=container, annotations=service or {}), annotations=annotations or {})
    return read_graph(made.id, made.annotations, made.spec, DYNAMO_GRAPH_V1BETA1.api_version) if beta else made


@pytest.mark.parametrize(
    ("fields", "executor", "why"),
    [
        ({}, "ray", "nothing asks for mp"),
        ({"annotations": {BACKEND: "mp"}}, "mp", "the annotation"),
        ({"annotations": {BACKEND: "Mp"}, "service": {BACKEND: "Ray"}}, "ray", "the annotation"),
        ({"annotations": {BACKEND: "ray", VLLM_EXECUTORS: "decode=mp"}, "beta": True}, "ray", "the annotation"),
        ({"script": f"{SCRIPT} --distributed-executor-backend mp"}, "mp", "its command"),
        ({"script": f"{SCRIPT} --distributed_executor_backend=ray", "beta": True}, "ray", "its command"),
        ({"annotations": {VLLM_EXECUTORS: "decode=ray", ORIGIN: "1.2.0"}, "beta": True}, "ray", "it runs so"),
        ({"annotations": {VLLM_EXECUTORS: "other=ray,decode=mp"}}, "mp", "it runs so"),
        ({"annotations": {ORIGIN: "1.0.0"}}, "mp", "version 1.0.0 of Dynamo's operator"),
        ({"annotations": {ORIGIN: "1.6.1-rc.1"}}, "mp", "version 1.6.1-rc.1"),
        ({"annotations": {ORIGIN: "0.9.0"}}, "ray", "nothing asks"),
        ({"beta": True}, "mp", "written as v1beta1"),
        ({"image": f"{OFFICIAL}:1.3.0"}, "mp", "vllm-runtime:1.3.0 has no Ray"),
        ({"image": f"{OFFICIAL}:1.2.1"}, "ray", "nothing asks"),
        ({"image": f"{OFFICIAL}:1.2.1-cuda13@sha256:abc"}, "ray", "nothing asks"),
        ({"image": f"{OFFICIAL}:latest"}, "ray", "nothing asks"),
        ({"image": "example/my-vllm:1.3.0"}, "ray", "nothing asks"),
    ],
)
def test_the_first_that_says_something_decides(fields: dict[str, Any], executor: str, why: str) -> None:
    made = graph(**fields)
    choice = executor_of(made, made.services[0])

    assert choice.executor == executor
    assert why in choice.why
    assert executor_record(made) == f"decode={executor}"


@pytest.mark.parametrize("form", ["", "1", "2"])
def test_older_forms_of_pods_have_ray_whatever_is_said(form: str) -> None:
    made = graph_of(worker(SCRIPT, container={"image": f"{OFFICIAL}:1.3.0"}), form=form, annotations={BACKEND: "mp", ORIGIN: "1.2.0"})

    assert executor_of(made, made.services[0]).executor is Executor.RAY
    assert pod(made, LEADER).spec["containers"][0]["args"] == [f"ray start --head --port=6379 && {SCRIPT}"]


@pytest.mark.parametrize("orchestrator", [GROVE, LWS])
@pytest.mark.parametrize("role", [LEADER, WORKER])
@pytest.mark.parametrize("executor", ["mp", "ray"])
@pytest.mark.parametrize("sizes", ["-tp 8", "-dp 8", "-tp 4"])
def test_pods_show_by_what_they_join(orchestrator: Any, role: Any, executor: str, sizes: str) -> None:
    made = graph({BACKEND: executor}, script=f"python3 -m dynamo.vllm {sizes}")

    assert running_executor(pod(made, role, orchestrator).spec) == executor
    assert running_executor(pod(current(worker("python3 serve.py")), role, orchestrator).spec) is None


def test_services_without_several_nodes_or_vllm_have_no_executor() -> None:
    assert executor_record(current(worker(SCRIPT, nodes=1))) == ""
    assert executor_record(current(worker("python3 -m dynamo.sglang"))) == ""
