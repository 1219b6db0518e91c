"""The generation of workers: the suffix of their Dynamo namespace, on request."""

from typing import Any

import pytest

from resources.dynamo.model.generation import GENERATION, SUFFIX_VARIABLE
from resources.dynamo.model.graph import InferenceGraph, Orchestrator
from resources.dynamo.objects.labels import pod_labels
from resources.dynamo.pods.builder import built_pod
from resources.ports.configuration import DynamoSettings
from tests.resources.dynamo.pods.graphs import main_container, worker
from tests.resources.dynamo.reading import graph_in

ASKED = {"engine.grove.io/worker-suffix": "enabled"}


def graph(annotations: dict[str, str] | None = None, *, image: str = "1", replicas: int = 1, **decode: Any) -> InferenceGraph:
    """A graph with a frontend, a prefill worker of that image and a decoder."""
    prefill = {**worker("p", nodes=1, container={"image": f"example/worker:{image}"}), "replicas": replicas}
    services = {"front": {"componentType": "frontend"}, "prefill": prefill, "decode": {**worker("d"), **decode}}
    return graph_in({"name": "g", "namespace": "ai", "annotations": annotations or {}}, {"services": services})


def suffixes(graph: InferenceGraph) -> dict[str, set[str | None]]:
    """The suffix and the label of the pods of each service."""
    found: dict[str, set[str | None]] = {}
    for service in graph.services:
        for role in service.roles:
            env = main_container(built_pod(graph, service, role, Orchestrator.GROVE, DynamoSettings()))["env"]
            values = {each["name"]: each.get("value") for each in env}
            found.setdefault(service.name, set()).update((values.get(SUFFIX_VARIABLE), pod_labels(graph, service, role).get(GENERATION)))
    return found


@pytest.mark.parametrize("annotations", [{}, {"engine.grove.io/worker-suffix": "no"}])
def test_without_a_request_pods_have_no_suffix(annotations: dict[str, str]) -> None:
    assert suffixes(graph(annotations)) == {"front": {None}, "prefill": {None}, "decode": {None}}


def test_all_workers_have_the_suffix_of_their_generation_and_others_none() -> None:
    found = suffixes(graph(ASKED))

    assert found["front"] == {None}
    assert found["prefill"] == found["decode"]
    (suffix,) = found["decode"]
    assert suffix is not None and len(suffix) == 8


def test_an_edit_of_one_worker_is_another_generation_of_all_and_scaling_is_none() -> None:
    first = suffixes(graph(ASKED))

    assert suffixes(graph(ASKED, replicas=3)) == first
    assert suffixes(graph(ASKED, labels={"team": "a"}, extraPodMetadata={"annotations": {"nvidia.com/restartAt": "1"}})) == first
    other = suffixes(graph(ASKED, image="2"))
    assert other["prefill"] == other["decode"] != first["decode"]


def test_a_suffix_of_the_user_is_kept() -> None:
    own = graph(ASKED, envs=[{"name": SUFFIX_VARIABLE, "value": "mine"}])

    assert "mine" in suffixes(own)["decode"]
