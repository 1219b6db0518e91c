"""Graphs for the tests of the objects on the Grove path."""

from typing import Any

from engine.resource import Body
from resources.dynamo.model.graph import InferenceGraph
from tests.resources.dynamo.reading import graph_in

COMMANDS = {
    "vllm": "python3 -m dynamo.vllm --model m --tensor-parallel-size 8",
    "sglang": "python3 -m dynamo.sglang --model-path m --tp-size 8",
    "trtllm": "python3 -m dynamo.trtllm --model-path m --tensor-parallel-size 8",
    "noop": "python3 serve.py",
}
"""Framework -> the shell line that starts it; `noop` stands for none."""

GPUS = {"limits": {"gpu": "4"}}


def graph(services: Body | None = None, *, name: str = "g", annotations: Body | None = None, pvcs: Any = (), **more: Any) -> InferenceGraph:
    """A graph in the namespace `ai` with these services."""
    metadata = {"name": name, "namespace": "ai", "annotations": annotations or {}}
    return graph_in(metadata, {"pvcs": list(pvcs), "services": {**(services or {}), **more}})


def worker(framework: str = "vllm", *, nodes: int = 1, extra_pod_spec: Body | None = None, **fields: Any) -> dict[str, Any]:
    """A worker service of that framework; with several nodes if `nodes` is above 1."""
    container = {"image": f"example/{framework}:1", "command": ["/bin/sh", "-c"], "args": [COMMANDS[framework]]}
    multinode = {"multinode": {"nodeCount": nodes}} if nodes > 1 else {}
    return {
        "componentType": "worker",
        "resources": GPUS,
        "extraPodSpec": {"mainContainer": container, **(extra_pod_spec or {})},
        **multinode,
        **fields,
    }


def frontend(**fields: Any) -> dict[str, Any]:
    """A frontend service."""
    container = {"image": "example/frontend:1", "command": ["/bin/sh", "-c"], "args": ["python3 -m dynamo.frontend"]}
    return {"componentType": "frontend", "extraPodSpec": {"mainContainer": container}, **fields}


def disaggregated(framework: str) -> InferenceGraph:
    """A frontend, prefill workers on one node each, and two decode workers on two nodes each."""
    return graph(
        name="my-dgd",
        Frontend=frontend(replicas=1),
        prefill=worker(framework, replicas=2, subComponentType="prefill"),
        decode=worker(framework, nodes=2, replicas=2, subComponentType="decode"),
    )
