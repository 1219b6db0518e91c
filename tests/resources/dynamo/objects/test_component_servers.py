"""The component path against a real API server and the real LeaderWorkerSet controller with its webhooks."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from engine.diff import Difference, Rules, compare
from engine.observed import Slice, slice_of
from engine.observed import live as observed
from engine.operation import Cause
from engine.paths import merge_patch
from engine.resource import Resource
from providers.kubernetes.wire import collection, member
from resources.base.kinds import DEPLOYMENT, LEADER_WORKER_SET, NAMESPACE, SERVICE, VOLCANO_POD_GROUP
from resources.dynamo.model.graph import InferenceGraph
from tests.controlplane.cluster import ControlPlane
from tests.resources.dynamo.objects.component_graphs import resources
from tests.resources.dynamo.objects.grove_graphs import frontend, graph, worker

KINDS = {kind.name: kind for kind in (LEADER_WORKER_SET, VOLCANO_POD_GROUP, DEPLOYMENT, SERVICE)}
AWKWARD = {
    "env": [{"name": "EMPTY", "value": ""}, {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
    "ports": [{"name": "http", "containerPort": 80}],
    "livenessProbe": {"httpGet": {"port": "http"}, "initialDelaySeconds": 0},
    "stdin": False,
}
"""Fields to which a server adds defaults, and zero values that it may leave out."""

pytestmark = pytest.mark.e2e


def specified(image: str = "server:1", nodes: int = 2, **container: Any) -> InferenceGraph:
    """A frontend, a Deployment and two LeaderWorkerSets."""
    main = {"image": image, "command": ["/bin/sh", "-c"], "args": ["serve"], **AWKWARD, **container}
    pod = {"mainContainer": main, "hostNetwork": False, "tolerations": [{"key": "gpu", "operator": "Exists"}]}
    decode = worker(nodes=nodes, replicas=2, extra_pod_spec=pod, sharedMemory={"size": "2048Mi"})
    prefill = worker(replicas=2, extra_pod_spec=pod)
    for service in (decode, prefill):
        service["resources"] = {"limits": {"cpu": "1000m", "memory": "1024Mi", "gpu": "4"}, "requests": {"cpu": "0.5"}}
    return graph(name="component-server", Frontend=frontend(), decode=decode, prefill=prefill)


@pytest.fixture
def plane(scheduling_plane: ControlPlane) -> Iterator[ControlPlane]:
    """The control plane with the namespace of the graph; the objects of the graph are deleted at the end."""
    scheduling_plane.call(collection(NAMESPACE, ""), {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ai"}})
    yield scheduling_plane
    for resource in resources(specified()).values():
        scheduling_plane.call(path_of(resource), method="DELETE")


def path_of(resource: Resource) -> str:
    """The path of the object of a resource."""
    return member(KINDS[resource.id.kind], resource.id.namespace, resource.id.name)


def lives(plane: ControlPlane, graph: InferenceGraph) -> Slice:
    """The live objects of a graph."""
    answers = (plane.call(path_of(resource)) for resource in resources(graph).values())
    return slice_of(observed(json.loads(body)) for code, body in answers if code == 200)


def differences(plane: ControlPlane, graph: InferenceGraph) -> dict[str, Difference]:
    """`<kind>/<name>` -> the difference of the live object, for each that differs."""
    live = lives(plane, graph)
    compared = {
        key: compare(resource.body, live.objects[resource.id].body, Rules(resource.policy, Cause.DRIFT))
        for key, resource in resources(graph, live).items()
    }
    return {key: difference for key, difference in compared.items() if difference.changes}


def create(plane: ControlPlane, graph: InferenceGraph) -> None:
    """Create the objects of a graph as the engine does."""
    for resource in resources(graph).values():
        kind = KINDS[resource.id.kind]
        code, answer = plane.call(f"{collection(kind, resource.id.namespace)}?fieldManager=engine", resource.body)
        assert code == 201, answer


def apply(plane: ControlPlane, graph: InferenceGraph) -> None:
    """Change the objects of a graph so that they match."""
    for key, difference in differences(plane, graph).items():
        path = path_of(resources(graph)[key])
        while True:  # The controller may write at the same time.
            body = json.loads(plane.call(path)[1])
            code, answer = plane.call(f"{path}?fieldManager=engine", merge_patch(body, difference.patch), method="PUT")
            if code != 409:
                break
        assert code == 200, answer


def test_a_second_pass_finds_no_difference_to_what_server_and_webhooks_made_of_the_objects(plane: ControlPlane) -> None:
    create(plane, specified())
    assert differences(plane, specified()) == {}

    for changed in (specified("server:2"), specified("server:2", env=[], ports=[]), specified("server:2", nodes=3)):
        assert differences(plane, changed)
        apply(plane, changed)
        assert differences(plane, changed) == {}
