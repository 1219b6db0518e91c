"""Graphs with one service, and its pods, for tests of pods and backends."""

from typing import Any

from resources.base.labels import POD_FORM
from resources.dynamo.model.form import PodForm
from resources.dynamo.model.graph import InferenceGraph, Orchestrator, Role
from resources.dynamo.pods.builder import BuiltPod, built_pod
from resources.ports.configuration import DynamoSettings
from tests.resources.dynamo.reading import graph_in

Body = dict[str, Any]

GROVE = Orchestrator.GROVE
LWS = Orchestrator.COMPONENTS
MAIN, LEADER, WORKER = Role.MAIN, Role.LEADER, Role.WORKER


def graph_of(service: Body, name: str = "decode", graph: str = "g", form: str = "", **spec: Any) -> InferenceGraph:
    """A graph in the namespace `ai` with one service; without a record of the form of its pods unless one is given."""
    annotations = {**({POD_FORM: str(form)} if form else {}), **spec.pop("annotations", {})}
    record = {"annotations": annotations} if annotations else {}
    return graph_in({"name": graph, "namespace": "ai", **record}, {"services": {name: service}, **spec})


def current(service: Body, name: str = "decode", **spec: Any) -> InferenceGraph:
    """A graph with one service, as it is made from now on."""
    return graph_of(service, name, form=PodForm.CURRENT, **spec)


def worker(*args: str, command: tuple[str, ...] | None = ("/bin/sh", "-c"), nodes: int = 2, gpu: str = "4", **fields: Any) -> Body:
    """A worker service; `command` None leaves the default command."""
    container: Body = {"image": "example/worker:1", **({"args": list(args)} if args else {})}
    if command is not None:
        container["command"] = list(command)
    container |= fields.pop("container", {})
    return {
        "componentType": "worker",
        **({"multinode": {"nodeCount": nodes}} if nodes > 1 else {}),
        **({"resources": {"limits": {"gpu": gpu}}} if gpu else {}),
        "extraPodSpec": {"mainContainer": container, **fields.pop("pod", {})},
        **fields,
    }


def pod(graph: InferenceGraph, role: Role = MAIN, orchestrator: Orchestrator = GROVE, **settings: Any) -> BuiltPod:
    """The pod of a role of the first service."""
    return built_pod(graph, graph.services[0], role, orchestrator, DynamoSettings(**settings))


def main_container(built: BuiltPod) -> Body:
    """The container `main` of a pod."""
    container: Body = next(container for container in built.spec["containers"] if container["name"] == "main")
    return container


def main_of(service: Body, role: Role = MAIN, orchestrator: Orchestrator = GROVE, name: str = "decode", **spec: Any) -> Body:
    """The main container of one role of a service."""
    return main_container(pod(graph_of(service, name, **spec), role, orchestrator))


def line(container: Body) -> str:
    """The script of a container that runs `sh -c` with one argument."""
    assert container["command"] in (["/bin/sh", "-c"], ["sh", "-c"]), container["command"]
    (script,) = container["args"]
    return str(script)


def value_of(container: Body, name: str) -> str | None:
    """The value of a variable of a container; None without it."""
    return next((env.get("value") for env in container["env"] if env["name"] == name), None)
