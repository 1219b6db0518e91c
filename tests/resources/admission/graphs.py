"""Graphs: DynamoGraphDeployments for tests of admission."""

from typing import Any

from providers.schedulers.kai import KaiScheduler
from resources.admission.request import Decision
from resources.base.kinds import DYNAMO_GRAPH
from resources.ports.configuration import Configuration
from resources.ports.references import NoReferences
from tests.resources.admission.requests import SCHEDULERS, SETUP, created, updated

Body = dict[str, Any]

KAI = Configuration({**SCHEDULERS, "kai-scheduler": KaiScheduler()}, "default-scheduler")
WITHOUT_GROVE = {"nvidia.com/enable-grove": "false"}


def worker(*args: str, framework: str = "vllm", **more: Any) -> Body:
    """A worker on one node."""
    container = {"image": "example/worker:1", "command": ["python3", "-m", f"dynamo.{framework}"], "args": list(args)}
    return {"componentType": "worker", "extraPodSpec": {"mainContainer": container}, **more}


def wide(*args: str, nodes: Any = 2, gpus: Any = "4", **more: Any) -> Body:
    """A worker on several nodes; without arguments, its parallel size is the number of its GPUs."""
    if not args and gpus is not None and str(gpus).isdigit() and isinstance(nodes, int):
        args = ("--tensor-parallel-size", str(nodes * int(gpus)))
    resources = {"resources": {"limits": {"gpu": gpus}}} if gpus is not None else {}
    return worker(*args, **{"multinode": {"nodeCount": nodes}, **resources, **more})


def graph(services: Any = None, *, name: str = "g", annotations: dict[str, str] | None = None, **spec: Any) -> Body:
    """A graph with these services, by default one worker on two nodes."""
    return {
        "apiVersion": "nvidia.com/v1alpha1",
        "kind": "DynamoGraphDeployment",
        "metadata": {"name": name, "namespace": "ai", **({"annotations": annotations} if annotations else {})},
        "spec": {"services": {"decode": wide()} if services is None else services, **spec},
    }


def one(name: str = "decode", **more: Any) -> Body:
    """A graph with one worker on one node."""
    return graph({name: worker(**more)})


def created_graph(body: Any, setup: Configuration = SETUP) -> Decision:
    """The decision on the creation of a graph."""
    return created(body, setup, kind=DYNAMO_GRAPH)


def updated_graph(old: Any, new: Any, setup: Configuration = SETUP) -> Decision:
    """The decision on the update of a graph."""
    return updated(old, new, setup, NoReferences(), DYNAMO_GRAPH)
