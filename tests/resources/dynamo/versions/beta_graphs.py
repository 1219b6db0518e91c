"""Graphs of v1beta1 for tests, and pairs of the same graph in both versions."""

from typing import Any

Body = dict[str, Any]
GPUS = "nvidia.com/gpu"


def pods(*args: str, gpus: int = 0, command: tuple[str, ...] = ("python3", "-m", "dynamo.vllm"), **more: Any) -> Body:
    """A pod template whose container main runs that command."""
    main: Body = {"name": "main", "image": "example/engine:1", "command": list(command), "args": list(args)}
    if gpus:
        main["resources"] = {"limits": {GPUS: str(gpus)}}
    return {"spec": {"containers": [{**main, **more}]}}


def component(name: str, type: str = "worker", template: Body | None = None, **more: Any) -> Body:
    """A component, by default a worker on one node."""
    return {"name": name, "type": type, "podTemplate": pods() if template is None else template, **more}


def wide(name: str, type: str = "worker", nodes: int = 2, gpus: int = 4, **more: Any) -> Body:
    """A component on several nodes whose parallel size is the number of its GPUs."""
    return component(name, type, pods("--tensor-parallel-size", str(nodes * gpus), gpus=gpus), multinode={"nodeCount": nodes}, **more)


def beta(*components: Body, annotations: dict[str, str] | None = None, **spec: Any) -> Body:
    """A graph of v1beta1."""
    metadata: Body = {"name": "g", "namespace": "ai", **({"annotations": annotations} if annotations else {})}
    return {
        "apiVersion": "nvidia.com/v1beta1",
        "kind": "DynamoGraphDeployment",
        "metadata": metadata,
        "spec": {**spec, "components": list(components)},
    }


def alpha(services: Body, **spec: Any) -> Body:
    """A graph of v1alpha1."""
    return {
        "apiVersion": "nvidia.com/v1alpha1",
        "kind": "DynamoGraphDeployment",
        "metadata": {"name": "g", "namespace": "ai"},
        "spec": {**spec, "services": services},
    }


def _backend(framework: str, sub: bool) -> tuple[Body, Body]:
    """The same graph with a prefill and a decode service on several nodes, in both versions."""
    command, arguments = ["python3", "-m", f"dynamo.{framework}"], ["--model", "m", "--tp-size", "8"]
    container = {"image": "example/engine:1", "command": command, "args": arguments}
    services: Body = {"Frontend": {"componentType": "frontend", "extraPodSpec": {"mainContainer": {"image": "example/front:1"}}}}
    components = [component("Frontend", "frontend", {"spec": {"containers": [{"name": "main", "image": "example/front:1"}]}})]
    for name in ("prefill", "decode"):
        services[name] = {
            "componentType": "worker",
            **({"subComponentType": name} if sub else {}),
            "multinode": {"nodeCount": 2},
            "resources": {"limits": {"gpu": "4"}},
            "envs": [{"name": "OWN", "value": name}],
            "sharedMemory": {"size": "16Gi"},
            "extraPodSpec": {"mainContainer": container},
        }
        main = {"name": "main", **container, "resources": {"limits": {GPUS: "4"}}, "env": [{"name": "OWN", "value": name}]}
        template = {"spec": {"containers": [main]}}
        components.append(component(name, name if sub else "worker", template, multinode={"nodeCount": 2}, sharedMemorySize="16Gi"))
    shared = [{"name": "OWN", "value": "graph"}, {"name": "ALL", "value": "graph"}]
    return (
        alpha(services, envs=shared, backendFramework=framework),
        beta(*components, env=shared, backendFramework=framework),
    )


PAIRS = [_backend("vllm", False), _backend("sglang", True), _backend("trtllm", True)]
"""The same graph in v1alpha1 and v1beta1: several nodes with each backend."""
