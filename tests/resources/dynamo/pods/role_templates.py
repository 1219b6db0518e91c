"""Services whose roles have pod templates of their own, for tests."""

from typing import Any

from tests.resources.dynamo.versions.beta_graphs import GPUS, Body

SIZE = ("--tensor-parallel-size", "8")
JOINED = ("--nnodes", "2", "--node-rank", "$(DYNAMO_RANK)", "--master-addr", "$(DYNAMO_LEADER_ADDRESS)")
VLLM = ("python3", "-m", "dynamo.vllm")


def template(*args: str, command: tuple[str, ...] = VLLM, metadata: Body | None = None, pod: Body | None = None, **main: Any) -> Body:
    """A pod template whose container main runs that command on four GPUs."""
    container: Body = {"name": "main", "image": "example/engine:1", "command": list(command), "args": list(args)}
    container |= {"resources": {"limits": {GPUS: "4"}}, **main}
    return {**({"metadata": metadata} if metadata else {}), "spec": {**(pod or {}), "containers": [container]}}


def of_roles(leader: Body, worker: Body, **fields: Any) -> Body:
    """The fields of a service, or a component, on two nodes whose roles have these templates."""
    roles = [{"name": "leader", "podTemplate": leader}, {"name": "worker", "podTemplate": worker}]
    return {"multinode": {"nodeCount": 2}, "roles": roles, **fields}


def joined(**fields: Any) -> Body:
    """The same of vLLM, whose user joins the nodes."""
    return of_roles(template(*SIZE, *JOINED), template(*SIZE, *JOINED, "--headless"), **fields)
