"""Graphs for stories: one with a frontend, and a decoder on several nodes."""

from typing import Any

SHELL = ["/bin/sh", "-c"]


def service(replicas: int = 1, *, nodes: int = 1, script: str = "python3 -m dynamo.vllm --model m", **fields: Any) -> dict[str, Any]:
    """A service that runs a script. With `nodes` above 1 each replica has so many, with 4 GPUs each."""
    body: dict[str, Any] = {
        "componentType": "worker",
        "replicas": replicas,
        "extraPodSpec": {"mainContainer": {"image": "example/dynamo:1", "command": SHELL, "args": [script]}},
        "resources": {"limits": {"gpu": "4"}},
    }
    return body | ({"multinode": {"nodeCount": nodes}} if nodes > 1 else {}) | fields


def graph(name: str = "chat", annotations: dict[str, str] | None = None, **services: dict[str, Any]) -> dict[str, Any]:
    """A graph of these services; without any, a frontend and two replicas of a decoder on two nodes each."""
    frontend = service(componentType="frontend", script="python3 -m dynamo.frontend", resources={})
    return {
        "apiVersion": "nvidia.com/v1alpha1",
        "kind": "DynamoGraphDeployment",
        "metadata": {"name": name, "namespace": "default", **({"annotations": annotations} if annotations else {})},
        "spec": {"services": services or {"Frontend": frontend, "decode": service(2, nodes=2)}},
    }
